//! The interactive chat: prompt, turn, repeat.

use std::cell::RefCell;
use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::StreamExt as _;
use switchboard::Event;
use switchboard_agent::message::Role;
use switchboard_agent::provider::Provider;
use switchboard_agent::{Agent, Prompt, Session as Conversation, SessionId};
use switchboard_config::text::visible;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::interval;

use super::editor::{self, Editor, EditorEvent, Read};
use super::mcp_command;
use super::slash::{self, COMMANDS, Command, Meaning};
use super::turn::Turn;
use super::{attach, complete, cost, failure, prompts, sessions, welcome};
use crate::agent;
use crate::current::Current;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::live::{self, TICK};
use crate::printer::{Table, paint, style};
use crate::session::CommandHost;
use crate::startup;
use crate::terminal;
use anstyle::Style;

/// Name of the history file in the state folder.
const HISTORY_FILE: &str = "chat_history";
/// Sessions offered by `/resume`.
const MAX_SESSIONS: usize = 15;

struct Chat<'s> {
    agent: Agent,
    conversation: Conversation,
    provider: Arc<dyn Provider>,
    session: &'s CommandHost<'s>,
    interrupts: Interrupts,
    editor: Editor,
    current: &'s Current,
    /// Configuration changes and logins to report before the next prompt.
    notices: &'s RefCell<Vec<String>>,
    /// Missing servers that have been reported.
    reported: HashSet<String>,
}

/// What to do after a line.
enum Next {
    Prompt,
    Leave(Exit),
}

/// Runs the chat until the user leaves.
pub(super) async fn run(
    agent: Agent,
    conversation: Conversation,
    provider: Arc<dyn Provider>,
    session: &CommandHost<'_>,
    interrupts: Interrupts,
) -> Outcome {
    terminal::save();
    session.sampling.set(&provider);
    let context = session.context;
    let history = context.environment.state.join(HISTORY_FILE);
    let messages = conversation.messages().await;
    let messages = messages.iter().filter(|message| message.role == Role::User);
    let messages = messages.count() as u64;
    welcome::print(
        provider.model(),
        (messages > 0).then_some(messages),
        session,
    );
    let (current, notices) = (Current::default(), RefCell::default());
    let mut chat = Chat {
        agent,
        conversation,
        provider,
        session,
        interrupts,
        editor: Editor::start(history, &context.printer)?,
        current: &current,
        notices: &notices,
        reported: HashSet::new(),
    };
    // Nothing may be printed while the user types, so messages are queued.
    let following = current.follow_files(session, |line| notices.borrow_mut().push(line));
    let logins = follow_logins(session, |line| notices.borrow_mut().push(line));
    let outcome = tokio::select! {
        outcome = chat.talk() => outcome,
        never = following => match never {},
        never = logins => match never {},
    };
    // Restore the terminal whatever the editor was doing.
    terminal::restore();
    if let Ok(Exit::Done | Exit::Interrupted) = outcome {
        chat.farewell().await;
    }
    outcome
}

/// Announces completed logins, including those of other processes; never returns.
async fn follow_logins(session: &CommandHost<'_>, mut notify: impl FnMut(String)) -> Infallible {
    let mut events = session.host.events();
    loop {
        match events.recv().await {
            Ok(Event::LoggedIn { server, tools }) => {
                let name = visible(server.as_str()).into_owned();
                let tools = startup::counted(tools, "tool");
                notify(format!("logged in to {name}: {tools}"));
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Chat<'_> {
    async fn talk(&mut self) -> Outcome {
        loop {
            self.print_notices();
            let line = match self.read_line("› ", true).await? {
                Read::Line(line) => line,
                Read::Cleared => continue,
                Read::Interrupted => return Ok(Exit::Interrupted),
                Read::Ended => return Ok(Exit::Done),
            };
            if line.trim().is_empty() {
                continue;
            }
            self.print_notices();
            match self.line(&line).await {
                Ok(Next::Prompt) => {}
                Ok(Next::Leave(exit)) => return Ok(exit),
                // A failure does not end the chat, unless the terminal is gone.
                Err(failure) if failure.silent => return Err(failure),
                Err(failure) => self.session.context.printer.failure(&failure),
            }
            self.session.context.printer.note("");
        }
    }

    fn print_notices(&self) {
        for line in self.notices.take() {
            self.session.context.printer.note(paint(style::QUIET, line));
        }
    }

    /// Reads a line, answering completion requests meanwhile.
    async fn read_line(&mut self, prompt: &str, remembered: bool) -> Result<Read, Failure> {
        let printer = &self.session.context.printer;
        let prompt = printer.styled(style::HINT, prompt);
        // Servers may ask questions at any time. Waiting ones are shown before the prompt; later ones wait while the
        // user types.
        let _lock = loop {
            tokio::select! {
                lock = live::lock_terminal(printer) => break lock,
                exit = self.interrupts.first() => {
                    self.interrupts.acknowledge();
                    if exit != Exit::Interrupted {
                        return Err(Failure::interrupted(exit));
                    }
                    live::dismiss();
                }
            }
        };
        let _typing = live::typing();
        let mut reading = self.editor.read(&prompt, remembered).await?;
        loop {
            let event = tokio::select! {
                exit = self.interrupts.first() => {
                    self.interrupts.acknowledge();
                    // In terminals without raw mode, Ctrl-C arrives as a signal.
                    if exit == Exit::Interrupted {
                        printer.note("");
                        return Ok(Read::Interrupted);
                    }
                    return Err(Failure::interrupted(exit));
                }
                event = reading.next() => event?,
            };
            match event {
                EditorEvent::Read(read) => return Ok(read),
                EditorEvent::Completion(question) => {
                    let completing = complete::complete(&question.line, self.session);
                    let completions = editor::in_time(completing).await;
                    let _ = question.answer.send(completions);
                }
            }
        }
    }

    async fn line(&mut self, line: &str) -> Result<Next, Failure> {
        if !line.trim_start().starts_with('/') {
            let session = self.session;
            let Some(prompt) = self
                .unless_interrupted(attach::prompt(line, session))
                .await?
            else {
                return Ok(Next::Prompt);
            };
            return self.turn(prompt?).await;
        }
        let Some(prompts) = self
            .unless_interrupted(prompts::for_line(line, self.session))
            .await?
        else {
            return Ok(Next::Prompt);
        };
        let names: Vec<&str> = prompts.names().collect();
        match slash::read(line, &names) {
            None => self.turn(line.into()).await,
            Some(Meaning::Command(command, arguments)) => {
                let mut interrupts = self.interrupts.clone();
                let outcome = tokio::select! {
                    exit = interrupts.first() => {
                        interrupts.acknowledge();
                        if exit == Exit::Interrupted {
                            self.session.context.printer.note(paint(style::QUIET, "interrupted"));
                            return Ok(Next::Prompt);
                        }
                        return Err(Failure::interrupted(exit));
                    }
                    outcome = self.command(command, arguments) => outcome,
                };
                outcome
            }
            Some(Meaning::Prompt(name, arguments)) => {
                let Some(command) = prompts.get(name)? else {
                    return Ok(Next::Prompt);
                };
                let filling = command.fill_in(arguments, self.session);
                let Some(prompt) = self.unless_interrupted(filling).await? else {
                    return Ok(Next::Prompt);
                };
                self.turn(prompt?).await
            }
            Some(Meaning::Unknown { name, near }) => {
                let failure = Failure::usage(format!("unknown command `/{}`", visible(name)));
                Err(match near {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None if name.starts_with("mcp__") => failure
                        .hint("/help lists prompts, and /mcp shows which servers are connected"),
                    None => failure.hint("/help shows all commands"),
                })
            }
        }
    }

    /// Awaits work before a turn; `None` if interrupted.
    async fn unless_interrupted<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, Failure> {
        let mut interrupts = self.interrupts.clone();
        tokio::select! {
            exit = interrupts.first() => {
                interrupts.acknowledge();
                if exit == Exit::Interrupted { Ok(None) } else { Err(Failure::interrupted(exit)) }
            }
            done = work => Ok(Some(done)),
        }
    }

    /// Runs one turn. Ctrl-C ends it; the messages so far remain in the session.
    async fn turn(&mut self, prompt: Prompt) -> Result<Next, Failure> {
        let printer = &self.session.context.printer;
        // Input typed during the turn appears at the next prompt.
        let _silent = terminal::silent();
        printer.note("");
        let mut turn = Turn::new(printer, &mut self.reported);
        let mut events = self.conversation.stream(prompt);
        let mut ticks = interval(TICK);
        let outcome = loop {
            tokio::select! {
                biased;
                exit = self.interrupts.first() => {
                    // Dropping the stream cancels its requests, and the servers are notified.
                    drop(events);
                    // Also dismiss questions from servers, which are not part of the turn.
                    live::dismiss();
                    self.interrupts.acknowledge();
                    turn.finish()?;
                    if exit != Exit::Interrupted {
                        break Err(Failure::interrupted(exit));
                    }
                    printer.note(paint(style::QUIET, "interrupted; the text so far is saved"));
                    break Ok(());
                }
                event = events.next() => match event {
                    Some(Ok(event)) => turn.event(event)?,
                    Some(Err(error)) => {
                        turn.finish()?;
                        break Err(failure::of(&error));
                    }
                    None => {
                        turn.finish()?;
                        break Ok(());
                    }
                },
                _ = ticks.tick() => turn.tick()?,
            }
        };
        outcome.map(|()| Next::Prompt)
    }

    async fn command(&mut self, command: Command, arguments: &str) -> Result<Next, Failure> {
        match command {
            Command::Help => self.help().await?,
            Command::Mcp => mcp_command::run(arguments, self.current, self.session).await?,
            Command::Tools => mcp_command::all_tools(self.session).await?,
            Command::Cost => {
                let window = self.provider.model().window;
                cost::print(&self.conversation, window, self.session).await?;
            }
            Command::Resume => self.resume(arguments).await?,
            Command::New => {
                let session = self.session;
                self.agent = self.newest_agent();
                self.conversation = self.agent.session(&session.context.project);
                session.context.printer.note("new session");
            }
            Command::Compact => {
                let done = self.conversation.compact().await;
                done.map_err(|error| failure::of(&error))?;
                self.session.context.printer.note("session compacted");
            }
            Command::Model => self.model(arguments).await?,
            Command::Exit => return Ok(Next::Leave(Exit::Done)),
        }
        Ok(Next::Prompt)
    }

    async fn help(&self) -> Result<(), Failure> {
        let mut table = Table::default();
        for entry in &COMMANDS {
            let name = format!("/{} {}", entry.name, entry.arguments);
            table.row([(style::NAME, name.trim_end()), (Style::new(), entry.about)]);
            if entry.command == Command::Mcp {
                for (name, about) in mcp_command::HELP {
                    let name = format!("/mcp {name}");
                    table.row([(style::NAME, &name), (Style::new(), about)]);
                }
            }
        }
        let prompts = prompts::all(self.session).await;
        for prompt in &prompts.commands {
            let name = format!("/{} {}", prompt.name, prompt.usage());
            table.row([
                (style::NAME, name.trim_end()),
                (Style::new(), &prompt.about()),
            ]);
        }
        for prompt in &prompts.withheld {
            let name = format!("/{}", prompt.name);
            table.row([(style::NAME, &name), (style::WARNING, &prompt.about())]);
        }
        table.row([
            (style::NAME, "@SERVER:URI"),
            (Style::new(), "attach a resource"),
        ]);
        table.row([
            (style::NAME, "\\ at the end of a line"),
            (Style::new(), "continue on the next line"),
        ]);
        self.session.context.printer.data(table)
    }

    async fn resume(&mut self, typed: &str) -> Result<(), Failure> {
        let stored = self
            .agent
            .sessions()
            .await
            .map_err(|error| failure::of(&error))?;
        let id = if typed.is_empty() {
            let printer = &self.session.context.printer;
            let shown: Vec<_> = stored.into_iter().take(MAX_SESSIONS).collect();
            if shown.is_empty() {
                printer.note("no sessions yet");
                return Ok(());
            }
            let mut table = Table::default();
            for (index, session) in shown.iter().enumerate() {
                let title = sessions::title(session);
                table.row([
                    (style::NAME, &(index + 1).to_string()),
                    (style::QUIET, &crate::time::shown(session.written_at)),
                    (Style::new(), &terminal::fitted(&title, 60)),
                ]);
            }
            printer.data(table)?;
            let Read::Line(choice) = self.read_line("number › ", false).await? else {
                return Ok(());
            };
            let index: Option<usize> = choice.trim().parse().ok();
            let chosen = index.and_then(|index| shown.get(index.checked_sub(1)?));
            match chosen {
                Some(session) => session.id.clone(),
                None if choice.trim().is_empty() => return Ok(()),
                None => {
                    return Err(Failure::usage(format!(
                        "no session number `{}`",
                        visible(choice.trim())
                    )));
                }
            }
        } else {
            let unknown = || {
                Failure::failed(format!("no session `{}`", visible(typed)))
                    .hint("/resume lists all sessions")
            };
            SessionId::parse(typed).ok_or_else(unknown)?
        };
        self.agent = self.newest_agent();
        let resumed = self.agent.resume(&id).await;
        self.conversation = resumed.map_err(|error| failure::of(&error))?;
        self.conversation.set_provider(Arc::clone(&self.provider));
        let printer = &self.session.context.printer;
        for message in self
            .conversation
            .messages()
            .await
            .iter()
            .rev()
            .take(2)
            .rev()
        {
            let text = message.all_text();
            let short: String = text.chars().take(400).collect();
            if !short.trim().is_empty() {
                let who = match message.role {
                    Role::User => "you",
                    Role::Assistant => "model",
                };
                let text = crate::questions::safe(&short.replace('\n', " "));
                printer.note(paint(style::QUIET, format!("{who}: {text}")));
            }
        }
        printer.note("resumed");
        Ok(())
    }

    async fn model(&mut self, name: &str) -> Result<(), Failure> {
        let context = self.session.context;
        if !name.is_empty() {
            let newest = self.current.newest();
            let configured = newest.as_deref().unwrap_or(self.session.servers);
            let provider = agent::provider(Some(name), configured, context).await?;
            self.session.sampling.set(&provider);
            self.provider = provider;
            self.agent = self.newest_agent();
            // The session continues with an agent built from the current configuration.
            let messages = self.conversation.messages().await;
            self.conversation = if messages.is_empty() {
                self.agent.session(&context.project)
            } else {
                let resumed = self.agent.resume(self.conversation.id()).await;
                resumed.map_err(|error| failure::of(&error))?
            };
        }
        let model = self.provider.model();
        context.printer.note(format!(
            "{} ({}), context window {} tokens",
            paint(style::NAME, visible(&model.id)),
            visible(&model.provider),
            model.window,
        ));
        Ok(())
    }

    /// Builds an agent from the current configuration.
    fn newest_agent(&self) -> Agent {
        let newest = self.current.newest();
        let configured = newest.as_deref().unwrap_or(self.session.servers);
        agent::of_servers(configured, self.session, &self.provider)
    }

    /// Prints how to resume the session.
    async fn farewell(&self) {
        let messages = self.conversation.messages().await;
        if !messages.is_empty() {
            let id = self.conversation.id();
            let reported = format!("resume with: switchboard chat --resume {id}");
            self.session
                .context
                .printer
                .note(paint(style::QUIET, reported));
        }
    }
}

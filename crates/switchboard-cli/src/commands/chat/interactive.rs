//! The chat itself: a prompt, a turn, and again.

use std::cell::RefCell;
use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::StreamExt as _;
use switchboard::events::Event;
use switchboard_agent::message::Role;
use switchboard_agent::provider::Provider;
use switchboard_agent::session::{Prompt, SessionId};
use switchboard_agent::{Agent, Session as Conversation};
use switchboard_config::text::visible;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::interval;

use super::editor::{self, Editor, Heard, Read};
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
use crate::session::Session;
use crate::startup;
use crate::terminal;
use anstyle::Style;

/// What was typed before, in the state folder.
const HISTORY_FILE: &str = "chat_history";
/// So many conversations are offered to choose from.
const OFFERED: usize = 15;

/// A chat.
struct Chat<'s> {
    agent: Agent,
    conversation: Conversation,
    provider: Arc<dyn Provider>,
    session: &'s Session<'s>,
    interrupts: Interrupts,
    editor: Editor,
    current: &'s Current,
    /// What happened to the configuration meanwhile.
    news: &'s RefCell<Vec<String>>,
    /// Servers that cannot be used, of which the person knows.
    told: HashSet<String>,
}

/// What comes after a line.
enum Next {
    Prompt,
    Leave(Exit),
}

/// Chats until the person leaves.
pub(super) async fn run(
    agent: Agent,
    conversation: Conversation,
    provider: Arc<dyn Provider>,
    session: &Session<'_>,
    interrupts: Interrupts,
) -> Outcome {
    terminal::remember();
    session.sampling.lend(&provider);
    let context = session.context;
    let history = context.environment.state.join(HISTORY_FILE);
    let messages = conversation.messages().await;
    let said = messages.iter().filter(|message| message.role == Role::User);
    let said = said.count() as u64;
    welcome::tell(provider.model(), (said > 0).then_some(said), session);
    let (current, news) = (Current::default(), RefCell::default());
    let mut chat = Chat {
        agent,
        conversation,
        provider,
        session,
        interrupts,
        editor: Editor::start(history, &context.printer)?,
        current: &current,
        news: &news,
        told: HashSet::new(),
    };
    // While somebody types, nothing may be written.
    let following = current.follow_files(session, |line| news.borrow_mut().push(line));
    let logins = follow_logins(session, |line| news.borrow_mut().push(line));
    let outcome = tokio::select! {
        outcome = chat.talk() => outcome,
        never = following => match never {},
        never = logins => match never {},
    };
    // Whatever the editor was doing, the terminal is as it was.
    terminal::restore();
    if let Ok(Exit::Done | Exit::Interrupted) = outcome {
        chat.farewell().await;
    }
    outcome
}

/// Announces completed logins, including those of other processes; never returns.
async fn follow_logins(session: &Session<'_>, mut tell: impl FnMut(String)) -> Infallible {
    let mut events = session.host.events();
    loop {
        match events.recv().await {
            Ok(Event::LoggedIn { server, tools }) => {
                let name = visible(server.as_str()).into_owned();
                let tools = startup::counted(tools, "tool");
                tell(format!("logged in to {name}: {tools}"));
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

impl Chat<'_> {
    async fn talk(&mut self) -> Outcome {
        loop {
            self.tell_news();
            let line = match self.read_line("› ", true).await? {
                Read::Line(line) => line,
                Read::Cleared => continue,
                Read::Interrupted => return Ok(Exit::Interrupted),
                Read::Ended => return Ok(Exit::Done),
            };
            if line.trim().is_empty() {
                continue;
            }
            self.tell_news();
            match self.line(&line).await {
                Ok(Next::Prompt) => {}
                Ok(Next::Leave(exit)) => return Ok(exit),
                // A chat goes on after what went wrong, unless nobody is there any more.
                Err(failure) if failure.silent => return Err(failure),
                Err(failure) => self.session.context.printer.failure(&failure),
            }
            self.session.context.printer.note("");
        }
    }

    fn tell_news(&self) {
        for line in self.news.take() {
            self.session.context.printer.note(paint(style::QUIET, line));
        }
    }

    /// Reads a line, and answers meanwhile what Tab asks.
    async fn read_line(&mut self, prompt: &str, remembered: bool) -> Result<Read, Failure> {
        let printer = &self.session.context.printer;
        let prompt = printer.styled(style::HINT, prompt);
        // Servers may ask something at any time. They are let in before the prompt, and wait while somebody types.
        let _floor = loop {
            tokio::select! {
                floor = live::floor(printer) => break floor,
                exit = self.interrupts.first() => {
                    self.interrupts.answer();
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
            let heard = tokio::select! {
                exit = self.interrupts.first() => {
                    self.interrupts.answer();
                    // A terminal that cannot do more sends a signal for Ctrl-C.
                    if exit == Exit::Interrupted {
                        printer.note("");
                        return Ok(Read::Interrupted);
                    }
                    return Err(Failure::interrupted(exit));
                }
                heard = reading.next() => heard?,
            };
            match heard {
                Heard::Read(read) => return Ok(read),
                Heard::Completion(question) => {
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
                        interrupts.answer();
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
                let failure = Failure::usage(format!("there is no command `/{}`", visible(name)));
                Err(match near {
                    Some(near) => failure.hint(format!("did you mean `{near}`?")),
                    None if name.starts_with("mcp__") => failure.hint(
                        "/help shows the prompts there are, and /mcp which servers are connected",
                    ),
                    None => failure.hint("/help shows all commands"),
                })
            }
        }
    }

    /// Waits for something before a turn; `None` if it was interrupted.
    async fn unless_interrupted<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, Failure> {
        let mut interrupts = self.interrupts.clone();
        tokio::select! {
            exit = interrupts.first() => {
                interrupts.answer();
                if exit == Exit::Interrupted { Ok(None) } else { Err(Failure::interrupted(exit)) }
            }
            done = work => Ok(Some(done)),
        }
    }

    /// One turn. Ctrl-C ends it, and what was said and done so far stays in the conversation.
    async fn turn(&mut self, prompt: Prompt) -> Result<Next, Failure> {
        let printer = &self.session.context.printer;
        // What is typed meanwhile is there at the next prompt.
        let _silent = terminal::silent();
        printer.note("");
        let mut turn = Turn::new(printer, &mut self.told);
        let mut events = self.conversation.stream(prompt);
        let mut ticks = interval(TICK);
        let outcome = loop {
            tokio::select! {
                biased;
                exit = self.interrupts.first() => {
                    // The servers are told by this.
                    drop(events);
                    // What they ask by the way is no part of the turn.
                    live::dismiss();
                    self.interrupts.answer();
                    turn.finish()?;
                    if exit != Exit::Interrupted {
                        break Err(Failure::interrupted(exit));
                    }
                    printer.note(paint(style::QUIET, "interrupted; the text so far is kept"));
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
                cost::tell(&self.conversation, window, self.session).await?;
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
            (Style::new(), "goes on in the next line"),
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
            let shown: Vec<_> = stored.into_iter().take(OFFERED).collect();
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
                        "there is no number `{}`",
                        visible(choice.trim())
                    )));
                }
            }
        } else {
            let unknown = || {
                Failure::failed(format!("no session `{}`", visible(typed)))
                    .hint("/resume shows those there are")
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
            self.session.sampling.lend(&provider);
            self.provider = provider;
            self.agent = self.newest_agent();
            // The conversation goes on under the agent that the files lead to now.
            let said = self.conversation.messages().await;
            self.conversation = if said.is_empty() {
                self.agent.session(&context.project)
            } else {
                let resumed = self.agent.resume(self.conversation.id()).await;
                resumed.map_err(|error| failure::of(&error))?
            };
        }
        let model = self.provider.model();
        context.printer.note(format!(
            "{} ({}), a window of {} tokens",
            paint(style::NAME, visible(&model.id)),
            visible(&model.provider),
            model.window,
        ));
        Ok(())
    }

    /// An agent by what the files say now.
    fn newest_agent(&self) -> Agent {
        let newest = self.current.newest();
        let configured = newest.as_deref().unwrap_or(self.session.servers);
        agent::of_servers(configured, self.session, &self.provider)
    }

    /// How to come back.
    async fn farewell(&self) {
        let said = self.conversation.messages().await;
        if !said.is_empty() {
            let id = self.conversation.id();
            let told = format!("resume with: switchboard chat --resume {id}");
            self.session.context.printer.note(paint(style::QUIET, told));
        }
    }
}

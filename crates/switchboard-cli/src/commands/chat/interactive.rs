//! The interactive chat: prompt, turn, repeat.

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt as _, StreamExt as _};
use switchboard::Event;
use switchboard_agent::message::{Message, Role};
use switchboard_agent::provider::{Provider, Usage};
use switchboard_agent::{
    Agent, Prompt, Session as Conversation, SessionEvent, SessionId, SessionSummary,
};
use switchboard_config::text::visible;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::time::interval;

use super::plain::PlainLines;
use super::results::Results;
use super::slash::{self, Command, Meaning};
use super::status::Status;
use super::text_commands::Subject;
use super::turn::Turn;
use super::ui::{Entered, Ui};
use super::{attach, failure, prompts, sessions, setup, status_command, welcome};
use super::{earlier, look, mcp_command};
use crate::agent;
use crate::current::Current;
use crate::dialog::Dialog;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::input::History;
use crate::interrupt::Interrupts;
use crate::live::{self, Line, TICK};
use crate::printer::{Table, paint, style};
use crate::screen;
use crate::session::CommandHost;
use crate::startup::counted;
use crate::terminal;
use crate::theme::{self, Theme};
use anstyle::Style;

/// Name of the history file in the state folder.
const HISTORY_FILE: &str = "chat_history";
/// Name of the file in the state folder that has the name of the theme.
const THEME_FILE: &str = "chat_theme";
/// Sessions offered by `/resume`.
const MAX_SESSIONS: usize = 100;

struct Chat<'s> {
    agent: Agent,
    conversation: Conversation,
    provider: Arc<dyn Provider>,
    session: &'s CommandHost<'s>,
    interrupts: Interrupts,
    front: Front<'s>,
    current: &'s Current,
    /// Configuration changes and logins to report before the next prompt.
    notices: &'s RefCell<Vec<String>>,
    /// Missing servers that have been reported.
    reported: HashSet<String>,
    results: RefCell<Results>,
    /// What was entered during a turn and waits for its end.
    waiting: VecDeque<Entered>,
    /// Usage of the session at the end of the last turn.
    spent: Usage,
}

/// Where input comes from.
enum Front<'s> {
    /// A terminal with a live area.
    Screen {
        ui: &'s Ui,
        entered: mpsc::UnboundedReceiver<Entered>,
    },
    /// A terminal without a movable cursor.
    Plain(PlainLines),
}

/// The outcome of reading a line.
enum Read {
    Line(String),
    /// The full text of the last result is wanted.
    Expand,
    /// Ctrl-C, twice on a screen.
    Interrupted,
    /// Ctrl-D.
    Ended,
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
    if !agent::is_missing(provider.model()) {
        session.sampling.set(&provider);
    }
    let context = session.context;
    let is_screen = context.printer.can_draw;
    // Held until the chat ends: between two modes, the kernel would interpret keys that are meant for the chat.
    let _raw = if is_screen {
        let failure = |error| Failure::failed("cannot set the mode of the terminal").because(error);
        Some(terminal::raw().map_err(failure)?)
    } else {
        None
    };
    theme::load(&context.environment.state.join(THEME_FILE));
    let earlier = conversation.messages().await;
    let is_typed =
        |message: &&Message| message.role == Role::User && !earlier::text(message).is_empty();
    let messages = earlier.iter().filter(is_typed).count() as u64;
    let history = History::load(context.environment.state.join(HISTORY_FILE));
    let status = Status {
        model: provider.model().id.clone(),
        window: provider.model().window,
        ..Status::default()
    };
    let (ui, entered) = Ui::new(history, status, interrupts.clone());
    let front = if is_screen {
        screen::start(context.printer.colors.stdout);
        Front::Screen { ui: &ui, entered }
    } else {
        Front::Plain(PlainLines::start()?)
    };
    welcome::print(
        provider.model(),
        (messages > 0).then_some(messages),
        session,
    );
    earlier::print(&earlier, &context.printer)?;
    let (current, notices) = (Current::default(), RefCell::default());
    let mut chat = Chat {
        agent,
        conversation,
        provider,
        session,
        interrupts,
        front,
        current: &current,
        notices: &notices,
        reported: HashSet::new(),
        results: RefCell::default(),
        waiting: VecDeque::new(),
        spent: Usage::default(),
    };
    chat.update_status().await;
    // Without a live area, nothing may be printed while the user types, so messages are queued.
    let notify = |line: String| {
        if screen::is_active() {
            context.printer.note(paint(style::QUIET, line));
        } else {
            notices.borrow_mut().push(line);
        }
    };
    let following = current.follow_files(session, notify);
    let logins = follow_logins(session, notify);
    let outcome = tokio::select! {
        outcome = chat.talk() => outcome,
        never = following => match never {},
        never = logins => match never {},
        failed = show(&ui, is_screen, session) => match failed {
            Ok(never) => match never {},
            Err(failure) => Err(failure),
        },
    };
    screen::stop();
    // Restore the terminal whatever was reading it.
    terminal::restore();
    if let Ok(Exit::Done | Exit::Interrupted) = outcome {
        chat.farewell().await;
    }
    outcome
}

/// Connects the servers while the user types, and runs the live area; never returns without a failure.
async fn show(ui: &Ui, is_screen: bool, session: &CommandHost<'_>) -> Result<Infallible, Failure> {
    if !is_screen {
        return std::future::pending().await;
    }
    let starting = async {
        session.host.start_all().await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        outcome = ui.run(session) => outcome,
        never = starting => match never {},
    }
}

/// Announces completed logins, including those of other processes; never returns.
async fn follow_logins(session: &CommandHost<'_>, mut notify: impl FnMut(String)) -> Infallible {
    let mut events = session.host.events();
    loop {
        match events.recv().await {
            Ok(Event::LoggedIn { server, tools }) => {
                let name = visible(server.as_str()).into_owned();
                let tools = counted(tools, "tool");
                notify(format!("logged in to {name}: {tools}"));
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// The input as it was shown, as text.
fn echoed(rows: &[Line]) -> String {
    rows.iter().map(|row| live::painted(row) + "\n").collect()
}

/// Awaits work before or after a turn; `None` if interrupted.
async fn unless_interrupted<T>(
    interrupts: &Interrupts,
    work: impl Future<Output = T>,
) -> Result<Option<T>, Failure> {
    let mut interrupts = interrupts.clone();
    tokio::select! {
        exit = interrupts.first() => {
            interrupts.acknowledge();
            if exit == Exit::Interrupted { Ok(None) } else { Err(Failure::interrupted(exit)) }
        }
        done = work => Ok(Some(done)),
    }
}

impl Front<'_> {
    /// What the user enters next; never ends without a live area.
    async fn entered(&mut self) -> Entered {
        match self {
            Self::Screen { entered, .. } => match entered.recv().await {
                Some(entered) => entered,
                None => std::future::pending().await,
            },
            Self::Plain(_) => std::future::pending().await,
        }
    }
}

impl Chat<'_> {
    /// Shows the model and the cost of the session, which a turn or a command may have changed.
    async fn update_status(&mut self) {
        let spent = self.conversation.usage().await;
        self.spent = spent;
        let Front::Screen { ui, .. } = &self.front else {
            return;
        };
        let model = self.provider.model();
        ui.set_status(|status| {
            status.model.clone_from(&model.id);
            status.window = model.window;
            status.cost = spent.cost.map(|cost| cost.to_string());
            if spent.total() == 0 {
                status.used = None;
            }
        });
    }

    async fn talk(&mut self) -> Outcome {
        let is_missing = agent::is_missing(self.provider.model());
        let is_screen = matches!(self.front, Front::Screen { .. });
        let mut search = setup::Search::new(is_missing && is_screen, self.session);
        loop {
            self.print_notices();
            let line = match self.next_line(&mut search).await? {
                Read::Line(line) => line,
                Read::Expand => {
                    look::show("", &self.results, self.session).await?;
                    continue;
                }
                Read::Interrupted => return Ok(Exit::Interrupted),
                Read::Ended => return Ok(Exit::Done),
            };
            if line.trim().is_empty() {
                continue;
            }
            self.print_notices();
            self.set_working(true);
            let outcome = self.line(&line).await;
            self.set_working(false);
            self.update_status().await;
            match outcome {
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

    fn set_working(&self, is_working: bool) {
        if let Front::Screen { ui, .. } = &self.front {
            ui.set_working(is_working);
        }
    }

    /// Reads a line. A model that was slow to answer joins meanwhile.
    async fn next_line(&mut self, search: &mut setup::Search<'_>) -> Result<Read, Failure> {
        loop {
            if !agent::is_missing(self.provider.model()) {
                search.stop();
            }
            let provider = tokio::select! {
                biased;
                read = self.read_line() => return read,
                provider = search.found() => provider,
            };
            self.join_model(provider).await?;
            self.update_status().await;
        }
    }

    async fn read_line(&mut self) -> Result<Read, Failure> {
        let Front::Screen { ui, entered } = &mut self.front else {
            return self.read_plain_line().await;
        };
        let ui = *ui;
        let waiting = &mut self.waiting;
        loop {
            let next = tokio::select! {
                exit = self.interrupts.first() => {
                    self.interrupts.acknowledge();
                    if exit != Exit::Interrupted {
                        return Err(Failure::interrupted(exit));
                    }
                    if ui.is_asking() {
                        live::dismiss();
                    } else if ui.interrupted() {
                        return Ok(Read::Interrupted);
                    }
                    continue;
                }
                next = async {
                    match waiting.pop_front() {
                        Some(next) => Some(next),
                        None => entered.recv().await,
                    }
                } => next,
            };
            return Ok(match next {
                Some(Entered::Line { text, echo }) => {
                    ui.taken(&text);
                    self.session.context.printer.ask(echoed(&echo));
                    Read::Line(text)
                }
                Some(Entered::Expand) => Read::Expand,
                Some(Entered::End) | None => Read::Ended,
            });
        }
    }

    async fn read_plain_line(&mut self) -> Result<Read, Failure> {
        let Front::Plain(lines) = &self.front else {
            return Ok(Read::Ended);
        };
        let printer = &self.session.context.printer;
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
        printer.ask(paint(style::HINT, "› "));
        tokio::select! {
            exit = self.interrupts.first() => {
                self.interrupts.acknowledge();
                if exit == Exit::Interrupted {
                    printer.note("");
                    return Ok(Read::Interrupted);
                }
                Err(Failure::interrupted(exit))
            }
            line = lines.read() => Ok(line?.map_or(Read::Ended, Read::Line)),
        }
    }

    async fn line(&mut self, line: &str) -> Result<Next, Failure> {
        if !line.trim_start().starts_with('/') {
            let session = self.session;
            let attaching = attach::prompt(line, session);
            let Some(prompt) = unless_interrupted(&self.interrupts, attaching).await? else {
                return Ok(Next::Prompt);
            };
            return self.turn(prompt?).await;
        }
        let finding = prompts::for_line(line, self.session);
        let Some(prompts) = unless_interrupted(&self.interrupts, finding).await? else {
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
                let Some(prompt) = unless_interrupted(&self.interrupts, filling).await? else {
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

    /// Runs one turn. Ctrl-C ends it; the messages so far remain in the session. Commands that only show something run
    /// meanwhile; what else is entered waits for the end.
    async fn turn(&mut self, prompt: Prompt) -> Result<Next, Failure> {
        if agent::is_missing(self.provider.model()) {
            self.find_model().await?;
        }
        let Self {
            conversation,
            provider,
            session,
            interrupts,
            front,
            current,
            results,
            waiting,
            spent,
            ..
        } = self;
        let printer = &session.context.printer;
        // Without a live area, input typed during the turn appears at the next prompt.
        let _silent = match front {
            Front::Plain(_) => terminal::silent(),
            Front::Screen { .. } => None,
        };
        printer.note("");
        let mut turn = Turn::new(session.context, &mut self.reported, Some(results));
        let mut events = conversation.stream(prompt);
        let mut ticks = interval(TICK);
        let mut look: Option<LocalBoxFuture<'_, Result<(), Failure>>> = None;
        let outcome = loop {
            tokio::select! {
                biased;
                exit = interrupts.first() => {
                    // Dropping the stream cancels its requests, and the servers are notified.
                    drop(events);
                    // Also dismiss questions from servers, which are not part of the turn.
                    live::dismiss();
                    look = None;
                    interrupts.acknowledge();
                    turn.finish()?;
                    if let Err(error) = conversation.settle().await {
                        break Err(failure::of(&error));
                    }
                    if exit != Exit::Interrupted {
                        break Err(Failure::interrupted(exit));
                    }
                    printer.note(paint(style::QUIET, "interrupted; the text so far is saved"));
                    break Ok(());
                }
                entered = front.entered(), if look.is_none() => {
                    let subject = Subject {
                        conversation,
                        provider: &**provider,
                        current,
                        session,
                        spent: *spent,
                    };
                    match look::read(entered) {
                        Ok(wanted) => {
                            if let (Some(line), Front::Screen { ui, .. }) = (&wanted.line, &*front) {
                                ui.taken(&line.text);
                                turn.make_room();
                                printer.ask(echoed(&line.echo));
                            }
                            look = Some(wanted.run(subject, results).boxed_local());
                        }
                        Err(other) => waiting.push_back(other),
                    }
                }
                done = async { match &mut look { Some(look) => look.await, None => std::future::pending().await } } => {
                    look = None;
                    if let Err(failure) = done {
                        printer.failure(&failure);
                    }
                    printer.note("");
                }
                event = events.next() => match event {
                    Some(Ok(event)) => {
                        if let (SessionEvent::Usage { usage, parent }, Front::Screen { ui, .. }) =
                            (&event, &*front)
                        {
                            let used = parent.is_none().then(|| usage.total());
                            ui.set_status(|status| status.used = used.or(status.used));
                        }
                        turn.event(event)?;
                    }
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
        // A view that is still open stays until the user leaves it.
        if let Some(look) = look
            && let Some(Err(failure)) = unless_interrupted(interrupts, look).await?
        {
            printer.failure(&failure);
        }
        outcome.map(|()| Next::Prompt)
    }

    async fn command(&mut self, command: Command, arguments: &str) -> Result<Next, Failure> {
        match command {
            Command::Mcp if !look::only_shows(command, arguments) => {
                mcp_command::run(arguments, self.current, self.session).await?;
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
            Command::Theme => self.theme(arguments)?,
            Command::Vi => self.vi()?,
            Command::Exit => return Ok(Next::Leave(Exit::Done)),
            other => {
                let subject = Subject {
                    conversation: &self.conversation,
                    provider: &*self.provider,
                    current: self.current,
                    session: self.session,
                    spent: self.spent,
                };
                look::run(other, arguments, subject, &self.results).await?;
            }
        }
        Ok(Next::Prompt)
    }

    async fn resume(&mut self, typed: &str) -> Result<(), Failure> {
        let stored = self
            .agent
            .sessions()
            .await
            .map_err(|error| failure::of(&error))?;
        let id = if typed.is_empty() {
            let shown: Vec<_> = stored.into_iter().take(MAX_SESSIONS).collect();
            if shown.is_empty() {
                self.session.context.printer.note("no sessions yet");
                return Ok(());
            }
            match self.pick_session(&shown).await? {
                Some(id) => id,
                None => return Ok(()),
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
        printer.note("");
        earlier::print(&self.conversation.messages().await, printer)?;
        printer.note("resumed");
        Ok(())
    }

    /// Lets the user choose a session; `None` if none was chosen.
    async fn pick_session(&self, shown: &[SessionSummary]) -> Result<Option<SessionId>, Failure> {
        let printer = &self.session.context.printer;
        let failure = |error| Failure::failed("cannot show the sessions").because(error);
        let here = &self.session.context.project;
        let room = screen::size().columns.saturating_sub(36).max(20);
        let row = |session: &SessionSummary| {
            let place = if session.workspace == *here {
                String::new()
            } else {
                let folder = session.workspace.file_name().unwrap_or_default();
                format!("  in {}", visible(&folder.to_string_lossy()))
            };
            let count = counted(
                usize::try_from(session.messages).unwrap_or(usize::MAX),
                "message",
            );
            vec![
                (
                    style::QUIET,
                    format!("{}  ", crate::time::shown(session.written_at)),
                ),
                (
                    Style::new(),
                    terminal::fitted(&sessions::title(session), room).into_owned(),
                ),
                (style::QUIET, format!("  {count}{place}")),
            ]
        };
        let rows: Vec<Line> = shown.iter().map(row).collect();
        let mut dialog = Dialog::open_wanted("sessions", printer)
            .await
            .map_err(failure)?;
        dialog.say(vec![(style::NAME, "resume".to_owned())]);
        let picked = dialog.pick(&rows, 0).await.map_err(failure)?;
        Ok(picked.and_then(|index| Some(shown.get(index)?.id.clone())))
    }

    /// Shows or changes the colours.
    fn theme(&self, name: &str) -> Result<(), Failure> {
        let context = self.session.context;
        if name.is_empty() {
            let mut table = Table::default();
            for (name, about) in theme::NAMES {
                let mark = if Theme::current().name() == name {
                    "●"
                } else {
                    " "
                };
                table.row([
                    (style::GOOD, mark),
                    (style::NAME, name),
                    (style::QUIET, about),
                ]);
            }
            return context.printer.table(&table);
        }
        let names = theme::NAMES.map(|(name, _)| name).join(", ");
        let unknown = || {
            Failure::usage(format!("no theme `{}`", visible(name)))
                .hint(format!("use one of {names}"))
        };
        Theme::named(name).ok_or_else(unknown)?.set();
        let file = context.environment.state.join(THEME_FILE);
        let saved = theme::save(&file, name);
        if let Err(error) = saved {
            let message = format!("the theme lasts until the chat ends: {error}");
            context.printer.warning(message, None);
        }
        screen::resized();
        context.printer.note(format!("theme: {name}"));
        Ok(())
    }

    /// Switches between the keys of Emacs and vi.
    fn vi(&self) -> Result<(), Failure> {
        let Front::Screen { ui, .. } = &self.front else {
            return Err(Failure::usage("this terminal edits lines itself"));
        };
        let keys = if ui.toggle_vi() { "vi" } else { "Emacs" };
        let note = format!("{keys} keys; /vi switches");
        self.session.context.printer.note(note);
        Ok(())
    }

    async fn model(&mut self, name: &str) -> Result<(), Failure> {
        let context = self.session.context;
        if !name.is_empty() {
            let newest = self.current.newest();
            let configured = newest.as_deref().unwrap_or(self.session.servers);
            let provider = agent::provider(Some(name), configured, context).await?;
            self.use_model(provider).await?;
        } else if agent::is_missing(self.provider.model()) {
            self.find_model().await?;
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

    /// Looks for a model on this machine; fails with the ways to set one up.
    async fn find_model(&mut self) -> Result<(), Failure> {
        let newest = self.current.newest();
        let configured = newest.as_deref().unwrap_or(self.session.servers);
        let provider = setup::later(configured, self.session).await?;
        self.join_model(provider).await
    }

    /// Continues with a model that was found on this machine.
    async fn join_model(&mut self, provider: Arc<dyn Provider>) -> Result<(), Failure> {
        let found = format!("found {}", status_command::model_text(provider.model()));
        let printer = &self.session.context.printer;
        printer.note(paint(style::QUIET, found));
        self.use_model(provider).await
    }

    /// Continues the session with this model and an agent built from the current configuration.
    async fn use_model(&mut self, provider: Arc<dyn Provider>) -> Result<(), Failure> {
        self.session.sampling.set(&provider);
        self.provider = provider;
        self.agent = self.newest_agent();
        let messages = self.conversation.messages().await;
        self.conversation = if messages.is_empty() {
            self.agent.session(&self.session.context.project)
        } else {
            let resumed = self.agent.resume(self.conversation.id()).await;
            resumed.map_err(|error| failure::of(&error))?
        };
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

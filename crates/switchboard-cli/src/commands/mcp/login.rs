//! `switchboard mcp login`: from a server that requires a login to one that is connected.
//!
//! The server is tried first: one that lets us in needs no login. Then the person is sent to the authorization server,
//! and the answer comes from the browser or is pasted. At the end the server is connected once, which is the proof.

use std::io::{self, BufRead as _, Read as _};
use std::time::Duration;

use serde_json::json;
use switchboard::auth::interactive::browser::{self, Opening};
use switchboard::auth::interactive::logins::LoginTarget;
use switchboard::auth::interactive::paste::PasteError;
use switchboard::auth::interactive::{Attempt, BeginError, hint};
use switchboard::auth::{
    AuthSettings, Callback, LoginError, LoginErrorKind, ProtectedServer, is_logged_in,
};
use switchboard::connectors::ConnectorError;
use switchboard::names::ServerName;
use switchboard::status::ServerState;
use switchboard_config::entry::ServerEntry;
use switchboard_config::resolve::Server;
use switchboard_config::text::visible;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::cli::LoginArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::journal;
use crate::printer::{Printer, paint, style};
use crate::questions;
use crate::servers::{Servers, look_closer};
use crate::session::{self, Session};
use crate::startup::counted;
use crate::terminal;

/// An address that is broken into more lines is not put together.
const MOST_LINES: usize = 8;
/// More than anybody pastes.
const MAXIMUM_INPUT: u64 = 256 * 1024;
/// How long a login within something else waits for the browser.
const PATIENCE_WITHIN: Duration = Duration::from_secs(300);

pub(super) fn run(arguments: &LoginArguments, context: &Context) -> Outcome {
    let servers = Servers::load(context, Some(&arguments.name))?;
    let (server, target) = target(&servers, &arguments.name, context)?;
    if let Some(key) = static_credentials(server.effective()) {
        let name = visible(&arguments.name);
        let message = format!("the server `{name}` is not logged in to");
        return Err(Failure::failed(message)
            .because(format!("its entry has its credentials in `{key}`"))
            .hint(format!("remove `{key}` from the entry to log in instead")));
    }
    session::run(context, &servers, async |session| {
        let command = LoginCommand {
            arguments,
            session,
            name: arguments.name.as_str().into(),
            is_within: false,
        };
        command.run(target).await
    })
}

/// Logs in to a server of a session that goes on afterwards.
pub(crate) async fn within(name: &str, servers: &Servers, session: &Session<'_>) -> Outcome {
    let (_, target) = target(servers, name, session.context)?;
    let arguments = LoginArguments {
        name: name.to_owned(),
        no_browser: false,
        scopes: Vec::new(),
        timeout: PATIENCE_WITHIN,
    };
    let command = LoginCommand {
        arguments: &arguments,
        session,
        name: name.into(),
        is_within: true,
    };
    command.run(target).await
}

/// The server of that name and how to log in to it; a failure where there is nothing to log in to.
pub(super) fn target<'s>(
    servers: &'s Servers,
    name: &str,
    context: &Context,
) -> Result<(&'s Server, LoginTarget), Failure> {
    let local = || {
        let name = visible(name);
        Failure::failed(format!("there is nothing to log in to at `{name}`"))
            .because("it is a server on this machine")
    };
    let Some(server) = servers.config.server(name) else {
        return Err(local());
    };
    let connectors = servers.connectors(context);
    match LoginTarget::of(server, &connectors, &servers.config.settings) {
        Ok(Some(target)) => Ok((server, target)),
        Ok(None) => Err(local()),
        Err(error) => Err(unusable(name, &error)),
    }
}

struct LoginCommand<'c> {
    arguments: &'c LoginArguments,
    session: &'c Session<'c>,
    name: ServerName,
    /// Whether the program goes on afterwards, so that nobody may keep reading the standard input.
    is_within: bool,
}

/// What can happen while a login waits. Everything it waits for is one of these.
enum Heard {
    Answer(Callback),
    Line(Option<String>),
    BrowserFailed,
    TimedOut,
}

impl LoginCommand<'_> {
    async fn run(&self, target: LoginTarget) -> Outcome {
        let LoginTarget {
            server,
            fetcher,
            address,
        } = target;
        let reached = self.session.start_one(self.name.as_str()).await;
        let vault = self.session.servers.vault(self.session.context);
        let state = self
            .session
            .host
            .status(&self.name)
            .map(|status| status.state);
        let kept = is_logged_in(&server, &*vault).await;
        match state {
            Some(ServerState::Connected) if self.arguments.scopes.is_empty() => {
                let has_login = kept.map_err(|error| failed(&self.name, &error))?;
                let happened = if has_login {
                    "is already logged in"
                } else {
                    "requires no login"
                };
                return self.tell(happened, has_login, false);
            }
            Some(ServerState::Connected) => {}
            Some(ServerState::NeedsAuth { .. }) => _ = self.is_lost(&kept),
            _ if self.is_lost(&kept) => {}
            _ => reached?,
        }
        let server = self.with_scopes(server);
        let attempt = Attempt::begin(server, fetcher, vault, address).await;
        let attempt = attempt.map_err(|error| not_begun(&self.name, &error))?;
        let answer = self.answer(&attempt).await?;
        let finished = attempt.finish(answer).await;
        let context = self.session.context;
        journal::login("login", &self.name, finished.is_ok(), context);
        finished.map_err(|error| failed(&self.name, &error))?;
        self.session.restart(&self.name).await;
        if let Err(failure) = self.session.need(self.name.as_str()) {
            let name = visible(self.name.as_str());
            let message = format!("the login to `{name}` is kept, but the server cannot be used");
            let because = failure.causes.first().unwrap_or(&failure.message);
            return Err(Failure::new(failure.exit, message)
                .because(because)
                .hint(look_closer(&name)));
        }
        self.tell("is logged in", true, true)
    }

    /// Whether there is a login that cannot be read: no reason not to log in, but one to say so.
    fn is_lost(&self, kept: &Result<bool, LoginError>) -> bool {
        let Err(error) = kept else { return false };
        let LoginErrorKind::Vault(error) = &error.kind else {
            return false;
        };
        if error.is_lost {
            let warning = &self.session.servers.vault_warning;
            warning.tell(error, &self.session.context.printer);
        }
        error.is_lost
    }

    fn with_scopes(&self, server: ProtectedServer) -> ProtectedServer {
        if self.arguments.scopes.is_empty() {
            return server;
        }
        let words = self.arguments.scopes.iter();
        let scopes = words.flat_map(|scopes| scopes.split_whitespace());
        let settings = AuthSettings {
            scopes: scopes.map(str::to_owned).collect(),
            ..server.settings().clone()
        };
        // The address was good enough before.
        ProtectedServer::new(server.url(), settings).unwrap_or(server)
    }

    /// Sends the person to log in and waits for what comes of it.
    async fn answer(&self, attempt: &Attempt) -> Result<Callback, Failure> {
        let printer = &self.session.context.printer;
        let variables = &self.session.context.environment.all;
        let name = visible(self.name.as_str());
        // Not a note: without the address nobody can log in, however quiet the program is to be.
        printer.ask(format!(
            "to log in to {}, open this address:\n\n  {}\n\n",
            paint(style::NAME, &name),
            attempt.url()
        ));
        let wants_browser = !self.arguments.no_browser && browser::is_at_hand(variables);
        let mut browser = None;
        if wants_browser {
            match browser::open(attempt.url(), variables) {
                Ok(opening) => browser = Some(opening),
                Err(error) => printer.warning(visible(&error.to_string()), None),
            }
        }
        // Whoever can be asked may paste; a script that wants to paste says so.
        let reads = terminal::is_there() || browser.is_none();
        let mut lines = reads
            .then(|| self.lines())
            .transpose()
            .map_err(|error| Failure::failed("could not read the standard input").because(error))?;
        let seconds = self.arguments.timeout.as_secs_f64();
        printer.note(match (&browser, attempt.listens()) {
            (Some(_), true) => format!("waiting for the browser, at most {seconds} s"),
            (None, true) => format!(
                "then paste the address that the browser ends at here; on this machine there is no need to (at most {seconds} s)"
            ),
            (_, false) => format!(
                "then paste the address that the browser ends at here (at most {seconds} s)"
            ),
        });
        let mut answer = std::pin::pin!(attempt.answer());
        let mut deadline = std::pin::pin!(sleep(self.arguments.timeout));
        let mut pasted = Vec::new();
        loop {
            let heard = tokio::select! {
                callback = &mut answer => Heard::Answer(callback),
                line = next_line(&mut lines) => Heard::Line(line),
                () = failure_of(&mut browser) => Heard::BrowserFailed,
                () = &mut deadline => Heard::TimedOut,
            };
            match heard {
                Heard::Answer(callback) => return Ok(callback),
                Heard::BrowserFailed => {
                    browser = None;
                    printer.warning(
                        "the browser could not be opened",
                        Some("open the address above yourself"),
                    );
                    if lines.is_none() && terminal::is_there() {
                        lines = self.lines().ok();
                    }
                }
                Heard::TimedOut => {
                    let message = format!("login to `{name}` timed out after {seconds} s");
                    return Err(Failure::new(Exit::TimedOut, message)
                        .hint("try again, and allow it more time with --timeout"));
                }
                Heard::Line(Some(line)) => {
                    pasted.push(line);
                    match read_pasted(attempt, &pasted) {
                        Ok(callback) => return Ok(callback),
                        Err(error) => printer.warning(error, Some(error.hint())),
                    }
                }
                Heard::Line(None) => {
                    lines = None;
                    // With a browser, or a terminal to interrupt it from, it is worth waiting on.
                    if self.is_within || (browser.is_none() && !terminal::is_there()) {
                        let message = format!("login to `{name}` was not completed");
                        return Err(Failure::new(Exit::NeedsLogin, message)
                            .because("the standard input has ended without an answer")
                            .hint("log in on a terminal, or give the address that the browser ends at"));
                    }
                }
            }
        }
    }

    fn lines(&self) -> io::Result<Lines<'_>> {
        if self.is_within {
            Ok(Lines::Typed(&self.session.context.printer))
        } else {
            read_lines().map(Lines::Piped)
        }
    }

    fn tell(&self, happened: &str, logged_in: bool, changed: bool) -> Outcome {
        let printer = &self.session.context.printer;
        let status = self.session.host.status(&self.name);
        let tools = status.map_or(0, |status| status.tools);
        let name = self.name.as_str();
        printer.note(format!(
            "{} {}: {}",
            paint(style::NAME, visible(name)),
            paint(style::GOOD, happened),
            counted(tools, "tool")
        ));
        if printer.json {
            printer.json(&json!({
                "name": name, "loggedIn": logged_in, "changed": changed, "tools": tools,
            }))?;
        }
        Ok(Exit::Done)
    }
}

/// The answer in what was pasted last. An address that was broken into lines is whole with the last of them.
fn read_pasted(attempt: &Attempt, lines: &[String]) -> Result<Callback, PasteError> {
    let first = lines.len().saturating_sub(MOST_LINES);
    let mut read = Err(PasteError::Empty);
    for start in first..lines.len() {
        read = attempt.read_pasted(&lines.get(start..).unwrap_or_default().concat());
        if read.is_ok() {
            break;
        }
    }
    read
}

/// The key of an entry that holds credentials, which keep OAuth out.
fn static_credentials(entry: &ServerEntry) -> Option<&'static str> {
    let is_static = |(name, _): &(String, _)| name.eq_ignore_ascii_case("authorization");
    if entry.headers.iter().any(is_static) {
        Some("headers")
    } else {
        entry
            .bearer_token_env_var
            .as_ref()
            .map(|_| "bearer_token_env_var")
    }
}

fn unusable(name: &str, error: &ConnectorError) -> Failure {
    let message = format!("the server `{}` cannot be used", visible(name));
    Failure::new(Exit::Configuration, message)
        .because(visible(&error.to_string()))
        .hint(look_closer(name))
}

fn not_begun(name: &ServerName, error: &BeginError) -> Failure {
    if let BeginError::Login(error) = error {
        return failed(name, error);
    }
    let message = format!("cannot log in to `{}`", visible(name.as_str()));
    let failure = Failure::failed(message).because(visible(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A login that came to nothing.
pub(super) fn failed(name: &ServerName, error: &LoginError) -> Failure {
    let exit = match &error.kind {
        LoginErrorKind::Vault(_) => Exit::Failed,
        _ if error.is_passing() => Exit::Unreachable,
        _ => Exit::NeedsLogin,
    };
    let message = format!("cannot log in to `{}`", visible(name.as_str()));
    let failure = Failure::new(exit, message).because(visible(&error.to_string()));
    match hint(error) {
        Some(hint) => failure.hint(visible(&hint)),
        None => failure,
    }
}

/// Lines of the standard input as they come. A thread that lives as long as the program reads them: a read that nothing
/// answers can be ended by nobody, and must hold nothing up.
fn read_lines() -> io::Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel(4);
    let read = move || {
        let mut input = io::stdin().lock().take(MAXIMUM_INPUT);
        let mut line = String::new();
        while input.read_line(&mut line).is_ok_and(|length| length > 0) {
            if sender.blocking_send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("pasted".to_owned());
    thread.spawn(read)?;
    Ok(receiver)
}

/// Where pasted lines come from.
enum Lines<'p> {
    /// A thread that lives as long as the program.
    Piped(mpsc::Receiver<String>),
    /// The keyboard, as long as somebody wants a line.
    Typed(&'p Printer),
}

async fn next_line(lines: &mut Option<Lines<'_>>) -> Option<String> {
    match lines {
        Some(Lines::Piped(lines)) => lines.recv().await,
        Some(Lines::Typed(printer)) => questions::line(printer, "› ").await,
        None => std::future::pending().await,
    }
}

/// Comes when the browser says that it could not be opened.
async fn failure_of(browser: &mut Option<Opening>) {
    if let Some(opening) = browser
        && opening.failed().await
    {
        return;
    }
    std::future::pending::<()>().await;
}

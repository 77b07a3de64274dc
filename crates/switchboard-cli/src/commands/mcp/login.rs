//! `switchboard mcp login`: logs in to a server and connects it.
//!
//! Tries the server first: it may need no login. Then sends the user to the authorization server; the redirect arrives
//! from the browser or is pasted. Finally connects the server once to verify the login.

use std::io::{self, BufRead as _, Read as _};
use std::time::Duration;

use serde_json::json;
use switchboard::ServerName;
use switchboard::internal::auth::interactive::browser::Opening;
use switchboard::internal::auth::interactive::logins::LoginTarget;
use switchboard::internal::auth::interactive::paste::PasteError;
use switchboard::internal::auth::interactive::{Attempt, BeginError, browser, hint};
use switchboard::internal::auth::{
    AuthSettings, Callback, LoginError, LoginErrorKind, ProtectedServer, is_logged_in,
};
use switchboard::internal::connectors::ConnectorError;
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
use crate::servers::{Servers, doctor_hint};
use crate::session::{self, CommandHost};
use crate::startup::counted;
use crate::terminal;

/// Maximum number of lines that a pasted URL may be broken into.
const MAX_URL_LINES: usize = 8;
/// Maximum size of pasted input, in bytes.
const MAX_INPUT_BYTES: u64 = 256 * 1024;
/// Browser timeout of a login inside a running session.
const PATIENCE_WITHIN: Duration = Duration::from_secs(300);

pub(super) fn run(arguments: &LoginArguments, context: &Context) -> Outcome {
    let servers = Servers::load(context, Some(&arguments.name))?;
    let (server, target) = target(&servers, &arguments.name, context)?;
    if let Some(key) = static_credentials(server.effective()) {
        let name = visible(&arguments.name);
        let message = format!("cannot log in to `{name}`");
        return Err(Failure::failed(message)
            .because(format!("its entry sets credentials in `{key}`"))
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

/// Logs in to a server from within a running session.
pub(crate) async fn within(name: &str, servers: &Servers, session: &CommandHost<'_>) -> Outcome {
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

/// The server of that name and its login settings. Fails if the server has no login.
pub(super) fn target<'s>(
    servers: &'s Servers,
    name: &str,
    context: &Context,
) -> Result<(&'s Server, LoginTarget), Failure> {
    let local = || {
        let name = visible(name);
        Failure::failed(format!("`{name}` has no login")).because("it runs on this machine")
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
    session: &'c CommandHost<'c>,
    name: ServerName,
    /// Whether the session continues afterwards, so that no thread may keep reading standard input.
    is_within: bool,
}

/// The events that a waiting login handles.
enum LoginEvent {
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
        let stored = is_logged_in(&server, &*vault).await;
        match state {
            Some(ServerState::Connected) if self.arguments.scopes.is_empty() => {
                let has_login = stored.map_err(|error| failed(&self.name, &error))?;
                let happened = if has_login {
                    "is already logged in"
                } else {
                    "requires no login"
                };
                return self.report(happened, has_login, false);
            }
            Some(ServerState::Connected) => {}
            Some(ServerState::NeedsAuth { .. }) => _ = self.is_unreadable(&stored),
            _ if self.is_unreadable(&stored) => {}
            _ => reached?,
        }
        let server = self.with_scopes(server);
        let attempt = Attempt::begin(server, fetcher, vault, address).await;
        let attempt = attempt.map_err(|error| cannot_begin(&self.name, &error))?;
        let answer = self.answer(&attempt).await?;
        let finished = attempt.finish(answer).await;
        let context = self.session.context;
        journal::login("login", &self.name, finished.is_ok(), context);
        finished.map_err(|error| failed(&self.name, &error))?;
        self.session.restart(&self.name).await;
        if let Err(failure) = self.session.need(self.name.as_str()) {
            let name = visible(self.name.as_str());
            let message = format!("the login to `{name}` is saved, but the server cannot be used");
            let because = failure.causes.first().unwrap_or(&failure.message);
            return Err(Failure::new(failure.exit, message)
                .because(because)
                .hint(doctor_hint(&name)));
        }
        self.report("is logged in", true, true)
    }

    /// Whether a stored login is unreadable. Warns about it; logging in again replaces it.
    fn is_unreadable(&self, stored: &Result<bool, LoginError>) -> bool {
        let Err(error) = stored else { return false };
        let LoginErrorKind::Vault(error) = &error.kind else {
            return false;
        };
        if error.is_lost {
            let warning = &self.session.servers.vault_warning;
            warning.warn(error, &self.session.context.printer);
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
        // The URL was valid before.
        ProtectedServer::new(server.url(), settings).unwrap_or(server)
    }

    /// Sends the user to log in and waits for the redirect.
    async fn answer(&self, attempt: &Attempt) -> Result<Callback, Failure> {
        let printer = &self.session.context.printer;
        let variables = &self.session.context.environment.all;
        let name = visible(self.name.as_str());
        // Printed even with `--quiet`: the user needs the URL.
        printer.ask(format!(
            "to log in to {}, open this URL:\n\n  {}\n\n",
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
        // Reads pasted input on a terminal, or if no browser was opened.
        let reads = terminal::is_there() || browser.is_none();
        let mut lines = reads
            .then(|| self.lines())
            .transpose()
            .map_err(|error| Failure::failed("could not read standard input").because(error))?;
        let seconds = self.arguments.timeout.as_secs_f64();
        printer.note(match (&browser, attempt.listens()) {
            (Some(_), true) => format!("waiting for the browser, at most {seconds} s"),
            (None, true) => format!(
                "then paste the URL that the browser ends at; not needed on this machine (at most {seconds} s)"
            ),
            (_, false) => format!(
                "then paste the URL that the browser ends at (at most {seconds} s)"
            ),
        });
        let mut answer = std::pin::pin!(attempt.answer());
        let mut deadline = std::pin::pin!(sleep(self.arguments.timeout));
        let mut pasted = Vec::new();
        loop {
            let event = tokio::select! {
                callback = &mut answer => LoginEvent::Answer(callback),
                line = next_line(&mut lines) => LoginEvent::Line(line),
                () = failure_of(&mut browser) => LoginEvent::BrowserFailed,
                () = &mut deadline => LoginEvent::TimedOut,
            };
            match event {
                LoginEvent::Answer(callback) => return Ok(callback),
                LoginEvent::BrowserFailed => {
                    browser = None;
                    printer.warning(
                        "could not open a browser",
                        Some("open the URL above yourself"),
                    );
                    if lines.is_none() && terminal::is_there() {
                        lines = self.lines().ok();
                    }
                }
                LoginEvent::TimedOut => {
                    let message = format!("login to `{name}` timed out after {seconds} s");
                    return Err(Failure::new(Exit::TimedOut, message)
                        .hint("try again with a longer --timeout"));
                }
                LoginEvent::Line(Some(line)) => {
                    pasted.push(line);
                    match read_pasted(attempt, &pasted) {
                        Ok(callback) => return Ok(callback),
                        Err(error) => printer.warning(error, Some(error.hint())),
                    }
                }
                LoginEvent::Line(None) => {
                    lines = None;
                    // Keep waiting if a browser was opened, or if the user can interrupt from a terminal.
                    if self.is_within || (browser.is_none() && !terminal::is_there()) {
                        let message = format!("login to `{name}` was not completed");
                        return Err(Failure::new(Exit::NeedsLogin, message)
                            .because("standard input ended without an answer")
                            .hint(
                                "log in on a terminal, or pass the URL that the browser ends at",
                            ));
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

    fn report(&self, happened: &str, logged_in: bool, changed: bool) -> Outcome {
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

/// Parses the pasted lines, joining a URL that was broken into several.
fn read_pasted(attempt: &Attempt, lines: &[String]) -> Result<Callback, PasteError> {
    let first = lines.len().saturating_sub(MAX_URL_LINES);
    let mut read = Err(PasteError::Empty);
    for start in first..lines.len() {
        read = attempt.read_pasted(&lines.get(start..).unwrap_or_default().concat());
        if read.is_ok() {
            break;
        }
    }
    read
}

/// The key of an entry that sets static credentials, which rule out OAuth.
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
        .hint(doctor_hint(name))
}

fn cannot_begin(name: &ServerName, error: &BeginError) -> Failure {
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

/// The failure of a login.
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

/// Reads lines of standard input on a thread that lives as long as the program: a blocked read cannot be cancelled, and
/// must not block shutdown.
fn read_lines() -> io::Result<mpsc::Receiver<String>> {
    let (sender, receiver) = mpsc::channel(4);
    let read = move || {
        let mut input = io::stdin().lock().take(MAX_INPUT_BYTES);
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

/// The source of pasted lines.
enum Lines<'p> {
    /// A thread that lives as long as the program.
    Piped(mpsc::Receiver<String>),
    /// The keyboard, read only while a line is awaited.
    Typed(&'p Printer),
}

async fn next_line(lines: &mut Option<Lines<'_>>) -> Option<String> {
    match lines {
        Some(Lines::Piped(lines)) => lines.recv().await,
        Some(Lines::Typed(printer)) => {
            questions::line(printer, "paste the address that the browser shows").await
        }
        None => std::future::pending().await,
    }
}

/// Completes when the browser failed to open.
async fn failure_of(browser: &mut Option<Opening>) {
    if let Some(opening) = browser
        && opening.failed().await
    {
        return;
    }
    std::future::pending::<()>().await;
}

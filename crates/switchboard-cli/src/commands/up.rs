//! `switchboard up` and `switchboard down`: the daemon, which holds the servers of all clients of a user.

use std::ffi::OsString;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchboard_server::http::HttpServer;
use switchboard_server::local::{LocalServer, Wants};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep};

use crate::cli::{ListenArguments, UpArguments};
use crate::commands::gateway::TOKENS;
use crate::context::Context;
use crate::daemon::{Board, DaemonFiles, DaemonLock, Started, Views};
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::{front_end, session};

/// Address for clients over HTTP, unless another one is given.
const HTTP: &str = "7348";
/// How long a daemon may take to end.
const END_DEADLINE: Duration = Duration::from_secs(15);
/// Interval between two looks at a daemon that is starting or ending.
const RETRY: Duration = Duration::from_millis(20);

pub(crate) fn run(arguments: &UpArguments, context: &Context) -> Outcome {
    let files = DaemonFiles::of(&context.environment);
    if arguments.detach {
        return detach(arguments, &files, context);
    }
    let startup_failure = |error: std::io::Error| Failure::failed("could not start").because(error);
    let runtime = session::runtime().map_err(startup_failure)?;
    let interrupts = Interrupts::listen().map_err(startup_failure)?;
    let local = LocalSet::new();
    let outcome = local.block_on(&runtime, async {
        let _lock = only_one(&files).await?;
        files.set_stopped(false);
        let outcome = serve(arguments, &files, context, interrupts).await;
        files.set_stopped(true);
        outcome
    });
    drop(local);
    outcome
}

/// Takes the lock of the daemon, and waits for one that is ending.
async fn only_one(files: &DaemonFiles) -> Result<DaemonLock, Failure> {
    let end = Instant::now() + END_DEADLINE;
    loop {
        if let Some(lock) = files.lock()? {
            return Ok(lock);
        }
        if Instant::now() >= end || files.dial(Wants::Status).await?.is_some() {
            return Err(already_running());
        }
        sleep(RETRY).await;
    }
}

/// Serves until a signal arrives or a client stops the daemon.
async fn serve(
    arguments: &UpArguments,
    files: &DaemonFiles,
    context: &Context,
    mut interrupts: Interrupts,
) -> Outcome {
    let listen = ListenArguments {
        http: Some(arguments.http.clone().unwrap_or_else(|| HTTP.to_owned())),
        ..ListenArguments::default()
    };
    let is_live = context.printer.is_live() && !arguments.on_demand;
    let http = front_end::http_options(&listen, &TOKENS, context)?;
    let work = async |views: Views| -> Outcome {
        let first = views
            .open(context.cwd.clone())
            .await
            .map_err(Failure::failed)?;
        let bound = LocalServer::bind(&files.socket, env!("CARGO_PKG_VERSION"));
        let local = bound.map_err(|error| {
            Failure::failed(format!("cannot listen on {}", files.socket.display())).because(error)
        })?;
        if !arguments.on_demand {
            first.host.start_all().await;
        }
        let server = match http {
            Some(options) => {
                let bound = HttpServer::bind(options, Arc::new(first.clone())).await;
                match bound {
                    Ok((server, _)) => Some(server),
                    Err(error) if arguments.http.is_none() => {
                        // The daemon is usable without it.
                        let message = format!("no HTTP address: {error}");
                        context
                            .printer
                            .warning(message, Some("choose one with --http PORT"));
                        None
                    }
                    Err(error) => return Err(Failure::failed(error.to_string())),
                }
            }
            None => None,
        };
        let url = server.as_ref().and_then(HttpServer::url);
        if let Some(url) = &url {
            views.set_http(url);
        }
        let board = Board {
            context,
            socket: files.socket.clone(),
            http: url,
        };
        let showing = async {
            if is_live {
                board.run(&views).await;
            } else {
                board.print();
            }
            pending::<()>().await;
        };
        let serving_http = async {
            match server {
                Some(server) => server.serve().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = local.serve(Arc::new(views.clone())) => {}
            () = serving_http => {}
            () = showing => {}
        }
        Ok(Exit::Done)
    };
    let work = async |views: Views| -> Outcome {
        tokio::select! {
            exit = interrupts.first() => Err(Failure::interrupted(exit)),
            outcome = work(views) => outcome,
        }
    };
    let mut flags = context.flags.clone();
    // The live view shows what would be printed.
    flags.quiet |= is_live;
    let outcome = Views::run(flags, work).await;
    outcome.unwrap_or(Ok(Exit::Done))
}

/// Starts the daemon in the background and waits until it listens.
fn detach(arguments: &UpArguments, files: &DaemonFiles, context: &Context) -> Outcome {
    let runtime =
        session::runtime().map_err(|error| Failure::failed("could not start").because(error))?;
    runtime.block_on(async {
        let mut line: Vec<OsString> = vec!["up".into(), "--cwd".into(), context.cwd.clone().into()];
        if let Some(http) = &arguments.http {
            line.extend(["--http".into(), http.into()]);
        }
        let (dialed, started) = files.dial_or_run(Wants::Status, &line, context).await?;
        if started == Started::Before {
            return Err(already_running());
        }
        let process = dialed.welcome.process;
        let printer = &context.printer;
        if printer.json {
            let facts = dialed.welcome.status;
            let document = json!({
                "pid": process,
                "socket": files.socket.display().to_string(),
                "http": facts["http"],
            });
            return printer.json(&document).map(|()| Exit::Done);
        }
        printer.note(format!("up: process {process}; `switchboard down` ends it"));
        Ok(Exit::Done)
    })
}

/// Ends the daemon and waits until it has ended.
pub(crate) fn down(context: &Context) -> Outcome {
    let files = DaemonFiles::of(&context.environment);
    let runtime =
        session::runtime().map_err(|error| Failure::failed("could not start").because(error))?;
    runtime.block_on(async {
        let Some(dialed) = files.dial(Wants::Stop).await? else {
            context.printer.note("no daemon is running");
            return Ok(Exit::Done);
        };
        let process = dialed.welcome.process;
        let end = Instant::now() + END_DEADLINE;
        while files.lock()?.is_none() {
            if Instant::now() >= end {
                return Err(
                    Failure::failed(format!("process {process} does not end")).hint(format!(
                        "kill it: kill -9 {process}; its servers end with it"
                    )),
                );
            }
            sleep(RETRY).await;
        }
        context
            .printer
            .note("down: the daemon and its servers have ended");
        Ok(Exit::Done)
    })
}

fn already_running() -> Failure {
    Failure::failed("the daemon is already running")
        .hint("`switchboard status` shows its servers, `switchboard down` ends it")
}

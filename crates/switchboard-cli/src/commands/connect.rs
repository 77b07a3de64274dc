//! `switchboard connect`: the bridge from an MCP client to the daemon.
//!
//! Passes lines between standard input and output and the daemon, which it starts if need be. If the daemon ends, the
//! bridge answers what was not answered, connects again, and repeats the handshake of its client.

use std::collections::HashSet;
use std::io::IsTerminal as _;

use bytes::Bytes;
use switchboard::internal::transport::stdio::frames::{Frame, Frames};
use switchboard_config::own_program;
use switchboard_protocol::types::method::{Initialize, Request as _};
use switchboard_protocol::{
    ErrorCode, ErrorObject, Limits, Message, Method, RequestId, encode, parse,
};
use switchboard_server::local::{Dialed, Wants};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, Stdout};

use crate::cli::BridgeArguments;
use crate::context::Context;
use crate::daemon::DaemonFiles;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::{front_end, session};

/// Text after the flags in `--help`.
pub(crate) const HELP: &str = "\
MCP clients start this command. It connects them to the daemon of this user (`switchboard up`),
which it starts if none runs. All clients then share the same servers.

Examples:
  claude mcp add switchboard -- switchboard connect
  codex mcp add switchboard -- switchboard connect";

/// Printed if a user starts the bridge by hand.
const ON_A_TERMINAL: &str = "\
this is a bridge for MCP clients: it waits for their messages on standard input
  to use it, add it to a client, for example: claude mcp add switchboard -- switchboard connect";

/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;
/// Longest message, in bytes.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// The id of the handshake that the bridge repeats.
const OWN_ID: &str = "switchboard-connect";
/// Attempts to reach the daemon again, each with the time that a new daemon may take.
const ATTEMPTS: usize = 3;

pub(crate) fn run(arguments: &BridgeArguments, context: &Context) -> Outcome {
    own_program::check_depth(&context.environment.all)?;
    let startup_failure = |error: std::io::Error| Failure::failed("could not start").because(error);
    let runtime = session::runtime().map_err(startup_failure)?;
    let mut interrupts = Interrupts::listen().map_err(startup_failure)?;
    if std::io::stdin().is_terminal() {
        context.printer.note(ON_A_TERMINAL);
    }
    let outcome = runtime.block_on(async {
        tokio::select! {
            exit = interrupts.first() => Err(Failure::interrupted(exit)),
            outcome = bridge(arguments, context) => outcome,
        }
    });
    // Reading standard input cannot be interrupted.
    runtime.shutdown_background();
    outcome
}

async fn bridge(arguments: &BridgeArguments, context: &Context) -> Outcome {
    let startup_failure = |error: std::io::Error| Failure::failed("could not start").because(error);
    let files = DaemonFiles::of(&context.environment);
    let wants = Wants::Gateway {
        folder: context.cwd.clone(),
        profile: arguments.profile.clone(),
    };
    let mut dialed = files.dial_or_start(wants.clone(), context).await?;
    let mut client = ClientSide {
        input: front_end::standard_input().map_err(startup_failure)?,
        output: tokio::io::stdout(),
        frames: Frames::new(MAX_LINE, CHUNK),
        open: HashSet::new(),
        handshake: None,
    };
    loop {
        match client.pass(&mut dialed).await {
            PassEnd::Client => return Ok(Exit::Done),
            PassEnd::Daemon => {}
        }
        client.fail_open().await;
        dialed = again(&files, &wants, context).await?;
        if client.greet(&mut dialed).await.is_err() {
            context.printer.note("the daemon ended again");
        }
    }
}

/// Reaches the daemon after it has ended.
async fn again(files: &DaemonFiles, wants: &Wants, context: &Context) -> Result<Dialed, Failure> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        match files.dial_or_start(wants.clone(), context).await {
            Ok(dialed) => return Ok(dialed),
            Err(failure) => last = Some(failure),
        }
    }
    Err(last.unwrap_or_else(|| Failure::failed("the daemon cannot be reached")))
}

/// Which side ended.
enum PassEnd {
    Client,
    Daemon,
}

/// The client of the bridge, and what is to be known of it when the daemon is replaced.
struct ClientSide<R> {
    input: R,
    output: Stdout,
    frames: Frames,
    /// Requests of the client that have no answer yet.
    open: HashSet<RequestId<'static>>,
    /// The params of its handshake (stateful era).
    handshake: Option<String>,
}

impl<R: AsyncRead + Unpin> ClientSide<R> {
    /// Passes messages both ways until one side ends.
    async fn pass(&mut self, dialed: &mut Dialed) -> PassEnd {
        let mut from_daemon = Frames::new(MAX_LINE, CHUNK);
        loop {
            let mut out = Vec::new();
            tokio::select! {
                read = self.input.read_buf(self.frames.room()) => {
                    if !matches!(read, Ok(1..)) {
                        return PassEnd::Client;
                    }
                    let (open, handshake) = (&mut self.open, &mut self.handshake);
                    self.frames.split(|frame| {
                        let (Frame::Line(_) | Frame::Oversized(_)) = &frame;
                        if let Frame::Line(line) = frame {
                            note_request(&line, open, handshake);
                            out.extend_from_slice(&line);
                            out.push(b'\n');
                        }
                    });
                    if dialed.writer.write_all(&out).await.is_err() {
                        return PassEnd::Daemon;
                    }
                }
                read = dialed.reader.read_buf(from_daemon.room()) => {
                    if !matches!(read, Ok(1..)) {
                        return PassEnd::Daemon;
                    }
                    let open = &mut self.open;
                    from_daemon.split(|frame| {
                        if let Frame::Line(line) = frame {
                            note_answer(&line, open);
                            out.extend_from_slice(&line);
                            out.push(b'\n');
                        }
                    });
                    if self.write(&out).await.is_err() {
                        return PassEnd::Client;
                    }
                }
            }
        }
    }

    /// Answers the requests that the daemon did not answer.
    async fn fail_open(&mut self) {
        let message = "the gateway was restarted; the call may or may not have taken effect";
        let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, message);
        let mut out = Vec::new();
        for id in std::mem::take(&mut self.open) {
            // Encoding an error cannot fail.
            let _ = encode::error(&mut out, Some(&id), &error);
            out.push(b'\n');
        }
        // A client that is gone is noticed when it is read.
        let _ = self.write(&out).await;
    }

    /// Repeats the handshake of the client, and tells it that everything may have changed.
    async fn greet(&mut self, dialed: &mut Dialed) -> std::io::Result<()> {
        let Some(handshake) = &self.handshake else {
            return Ok(());
        };
        let mut out = Vec::new();
        let params = switchboard_protocol::trusted(handshake);
        let method = Method::Initialize.name();
        let _ = encode::request(&mut out, &RequestId::from(OWN_ID), method, params);
        out.push(b'\n');
        dialed.writer.write_all(&out).await?;
        let mut answer = Vec::new();
        dialed.reader.read_until(b'\n', &mut answer).await?;
        out.clear();
        let _ = encode::notification(&mut out, Method::Initialized.name(), encode::NO_PARAMS);
        out.push(b'\n');
        dialed.writer.write_all(&out).await?;
        let mut changed = Vec::new();
        for method in [
            Method::ToolsListChanged,
            Method::PromptsListChanged,
            Method::ResourcesListChanged,
        ] {
            let _ = encode::notification(&mut changed, method.name(), encode::NO_PARAMS);
            changed.push(b'\n');
        }
        self.write(&changed).await
    }

    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.output.write_all(bytes).await?;
        self.output.flush().await
    }
}

/// Notes what is to be answered, and the handshake.
fn note_request(
    line: &Bytes,
    open: &mut HashSet<RequestId<'static>>,
    handshake: &mut Option<String>,
) {
    let Ok(incoming) = parse(line, &limits()) else {
        return;
    };
    for received in incoming.into_messages().flatten() {
        if let Message::Request { id, method, params } = received.message {
            if method == Method::Initialize.name() && Initialize::decode_params(params).is_ok() {
                *handshake = params.map(|params| params.get().to_owned());
            }
            open.insert(id.into_owned());
        }
    }
}

/// Notes what has been answered.
fn note_answer(line: &Bytes, open: &mut HashSet<RequestId<'static>>) {
    let Ok(incoming) = parse(line, &limits()) else {
        return;
    };
    for received in incoming.into_messages().flatten() {
        let id = match received.message {
            Message::Response { id, .. } => Some(id),
            Message::Error { id, .. } => id,
            Message::Request { .. } | Message::Notification { .. } => None,
        };
        if let Some(id) = id {
            open.remove(&id.into_owned());
        }
    }
}

fn limits() -> Limits {
    Limits {
        max_bytes: MAX_LINE,
        ..Limits::DEFAULT
    }
}

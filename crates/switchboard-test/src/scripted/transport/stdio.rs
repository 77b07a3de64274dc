//! The stdio transport, with one message per line, and the control connections between a process and its test.
//!
//! A scripted process connects to the address after `--control`, receives its script as the first line and [`Command`]s
//! on further lines, and sends its records on a second connection.

use std::io::{self, Write as _};
use std::sync::Arc;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, BufWriter,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{QUEUE, take_frame};
use crate::scripted::control::{Command, Processes};
use crate::scripted::engine::{Out, Server};
use crate::scripted::fault::Occasion;
use crate::scripted::perform::greet;
use crate::scripted::record::Record;

/// Serves one client over a pair of pipes, until it disconnects or the server stops.
pub(crate) async fn serve(
    server: &Arc<Server>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) {
    let (outbox, outs) = mpsc::channel(QUEUE);
    let session = server.open_session(outbox);
    let faults = server.faults(Occasion::Connect);
    let mut ended = server.ended.subscribe();
    let reading = async {
        if !greet(server, &faults, &session.outbox).await {
            return;
        }
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {
                    let frame = line.trim_ascii_end();
                    if !frame.is_empty() {
                        take_frame(server, &session, frame);
                    }
                }
            }
        }
        server.recorder.record(Record::InputEnded);
        if server.script().process.ignore_stdin_end {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = reading => {}
        _ = write(outs, output, server) => {}
        _ = ended.wait_for(Option::is_some) => {}
    }
    server.close_session(&session.id);
    session.end();
}

/// Writes lines. A line sent in pieces is not interleaved with others, which wait for its end.
async fn write(
    mut outs: mpsc::Receiver<Out>,
    output: impl AsyncWrite + Unpin,
    server: &Server,
) -> io::Result<()> {
    let mut output = BufWriter::new(output);
    let mut in_pieces = false;
    let mut waiting: Vec<Vec<u8>> = Vec::new();
    while let Some(out) = outs.recv().await {
        match out {
            Out::Frame(frame) | Out::Last(frame, _) if in_pieces => waiting.push(frame),
            Out::Frame(frame) | Out::Last(frame, _) => {
                output.write_all(&frame).await?;
                output.write_all(b"\n").await?;
            }
            Out::Piece(piece) => {
                in_pieces = true;
                output.write_all(&piece).await?;
            }
            Out::PieceEnd => {
                in_pieces = false;
                output.write_all(b"\n").await?;
                for frame in waiting.drain(..) {
                    output.write_all(&frame).await?;
                    output.write_all(b"\n").await?;
                }
            }
            Out::Abort => {
                server.ended.send_replace(Some(1));
            }
            Out::Exit(code) => {
                server.ended.send_replace(Some(code));
            }
            Out::Refuse(_) | Out::ContentType(_) | Out::CloseStream => {}
        }
        output.flush().await?;
    }
    Ok(())
}

/// The test's side: accepts connections of processes.
pub(crate) async fn meet(processes: Arc<Processes>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = stream else { continue };
        connections.spawn(attend(Arc::clone(&processes), stream));
    }
}

/// A process opens two connections, for its records and for its commands; the first line says which.
async fn attend(processes: Arc<Processes>, stream: TcpStream) {
    let (reader, mut writer) = stream.into_split();
    let mut received = BufReader::new(reader).lines();
    match received.next_line().await {
        Ok(Some(kind)) if kind == RECORDS => {
            while let Ok(Some(line)) = received.next_line().await {
                if let Ok(record) = serde_json::from_str(&line) {
                    processes.recorder.record(record);
                }
            }
        }
        Ok(Some(kind)) if kind == COMMANDS => {
            let mut lines = processes.joined();
            let writing = async {
                while let Some(line) = lines.recv().await {
                    if writer.write_all(line.as_bytes()).await.is_err() {
                        break;
                    }
                }
            };
            tokio::select! {
                () = writing => {}
                // The process sends nothing here, so any read is the end of the connection.
                _ = received.next_line() => {}
            }
        }
        _ => {}
    }
}

const RECORDS: &str = "records";
const COMMANDS: &str = "commands";

/// The process's side: connects back and receives its script.
pub(crate) async fn report_to(address: &str) -> io::Result<(Arc<Server>, Commands)> {
    // Blocking I/O, because records must be written before the process exits.
    let mut records = std::net::TcpStream::connect(address)?;
    records.set_nodelay(true)?;
    records.write_all(format!("{RECORDS}\n").as_bytes())?;
    let mut commands = TcpStream::connect(address).await?;
    commands
        .write_all(format!("{COMMANDS}\n").as_bytes())
        .await?;
    let mut lines = BufReader::new(commands).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    let Ok(Command::Script(script)) = serde_json::from_str(&first) else {
        let message = format!("expected a script from {address}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    };
    let server = Server::new(*script);
    server.recorder.copy_to(records);
    Ok((server, Commands(lines)))
}

/// Commands of the test to this process.
#[derive(Debug)]
pub(crate) struct Commands(tokio::io::Lines<BufReader<TcpStream>>);

impl Commands {
    /// Executes commands until the test disconnects.
    pub(crate) async fn obey(mut self, server: &Server) {
        while let Ok(Some(line)) = self.0.next_line().await {
            match serde_json::from_str(&line) {
                Ok(Command::Disconnect) => server.obey(Command::Exit { code: 1 }),
                Ok(command) => server.obey(command),
                Err(_) => server.recorder.record(Record::Unreadable { text: line }),
            }
        }
    }
}

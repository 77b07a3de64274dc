//! A transport of your own: MCP over a plain TCP connection, one message per line.
//!
//! ```sh
//! cargo run --example custom_transport -- 127.0.0.1:7000 echo '{"text":"hello"}'
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use switchboard::{
    Abandoned, Closed, Connector, Host, Inbound, Link, Outgoing, Sending, Server, TransportError,
    TransportErrorKind, sent,
};
use switchboard_config::entry::Transport;
use switchboard_protocol::Revision;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

/// Connects to an address, again each time the host reconnects.
#[derive(Debug)]
struct Tcp {
    address: String,
}

impl Connector for Tcp {
    fn transport(&self) -> Transport {
        Transport::Sdk
    }

    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>> {
        Box::pin(async move {
            let stream = TcpStream::connect(&self.address).await.map_err(|error| {
                TransportError::new(TransportErrorKind::Unreachable, error.to_string())
            })?;
            let (reader, writer) = stream.into_split();
            let (messages, queue) = unbounded_channel();
            tokio::spawn(write(writer, queue));
            let reading = tokio::spawn(read(reader, Arc::clone(&inbound))).abort_handle();
            Ok(Arc::new(TcpLink {
                messages,
                inbound,
                reading,
            }) as Arc<dyn Link>)
        })
    }
}

/// An open connection. Messages are queued in the order of `send`, and written by a task.
struct TcpLink {
    messages: UnboundedSender<Vec<u8>>,
    inbound: Arc<dyn Inbound>,
    reading: AbortHandle,
}

impl Link for TcpLink {
    fn send(&self, message: Outgoing) -> Sending<'_> {
        let mut line = message.payload;
        line.push(b'\n');
        let queued = self.messages.send(line);
        sent(
            queued
                .map_err(|_| TransportError::new(TransportErrorKind::Closed, "the link is closed")),
        )
    }

    fn has_headers(&self) -> bool {
        false
    }

    fn abandon(&self, _request: u64) -> Abandoned {
        // The host sends `notifications/cancelled` instead.
        Abandoned::NotTold
    }

    fn opened(&self, _revision: Revision) {}

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if !self.reading.is_finished() {
                self.reading.abort();
                self.inbound.closed(Closed::ByUs);
            }
        })
    }
}

impl Drop for TcpLink {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

async fn read(reader: OwnedReadHalf, inbound: Arc<dyn Inbound>) {
    let mut lines = BufReader::new(reader).lines();
    let closed = loop {
        match lines.next_line().await {
            Ok(Some(line)) => inbound.frame(Bytes::from(line)),
            Ok(None) => break Closed::ByServer,
            Err(error) => break Closed::Broken(error.to_string()),
        }
    };
    inbound.closed(closed);
}

async fn write(mut writer: OwnedWriteHalf, mut queue: UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        // A connection that broke is noticed by the task that reads.
        if writer.write_all(&line).await.is_err() {
            return;
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: custom_transport ADDRESS TOOL ARGUMENTS";
    let address = arguments.next().ok_or(usage)?;
    let tool = arguments.next().ok_or(usage)?;
    let values: serde_json::Value = serde_json::from_str(&arguments.next().ok_or(usage)?)?;

    let host = Host::new();
    host.add(Server::over("remote", Tcp { address })).await?;
    let result = host.call(format!("remote/{tool}"), values).await?;
    println!("{}", result.text());
    host.shutdown().await;
    Ok(())
}

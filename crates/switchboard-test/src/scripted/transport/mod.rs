//! Transports of scripted servers. Each reads frames, passes them to the engine, and writes its output, faults
//! included.

pub(crate) mod event;
pub(crate) mod http;
pub(crate) mod listen;
pub(crate) mod response;
pub(crate) mod sse;
pub mod stdio;
pub(crate) mod streams;
pub(crate) mod websocket;

use std::sync::Arc;

use tokio::sync::mpsc;

use super::engine::{ClientSession, Inbound, Out, Server, read};
use super::fault::Occasion;
use super::perform::perform;
use super::record::Record;

/// Capacity of the queue of outgoing messages.
pub(crate) const QUEUE: usize = 256;

/// Handles a frame on a transport with a single stream.
pub(crate) fn take_frame(server: &Arc<Server>, session: &Arc<ClientSession>, frame: &[u8]) {
    for message in read(frame) {
        let inbound = match message {
            Ok((inbound, message)) => {
                server.recorder.record(Record::Received { message });
                inbound
            }
            Err(text) => {
                server.recorder.record(Record::Unreadable { text });
                continue;
            }
        };
        let Inbound::Request(request) = inbound else {
            // Counted, although its faults apply to HTTP only.
            server.faults(Occasion::Message);
            server.take(session, &inbound);
            continue;
        };
        let plan = server.plan(session, &request, None);
        run(server, session, plan, session.outbox.clone());
    }
}

/// Executes a plan in its own task, which a cancellation aborts.
pub(crate) fn run(
    server: &Arc<Server>,
    session: &Arc<ClientSession>,
    plan: super::engine::Plan,
    out: mpsc::Sender<Out>,
) {
    let id = plan.id.json().into_owned();
    let (server, of_task) = (Arc::clone(server), Arc::clone(session));
    let task = tokio::spawn(async move { perform(&server, &of_task, plan, out).await });
    session.started(&id, task.abort_handle());
}

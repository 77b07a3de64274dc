//! How a scripted server is reached: one module for each transport.
//!
//! Each reads frames, hands them to the engine, and writes what comes of it in its own way, faults included.

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

use super::engine::{Inbound, Out, Server, Session, read};
use super::fault::Occasion;
use super::perform::perform;
use super::record::Record;

/// How many messages may wait to be written to a client.
pub(crate) const QUEUE: usize = 256;

/// Takes one frame of a transport on which everything goes to one place.
pub(crate) fn take_frame(server: &Arc<Server>, session: &Arc<Session>, frame: &[u8]) {
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
            // Counted, though without HTTP there is nothing that could go wrong with it.
            server.faults(Occasion::Message);
            server.take(session, &inbound);
            continue;
        };
        let plan = server.plan(session, &request, None);
        run(server, session, plan, session.outbox.clone());
    }
}

/// Carries out a plan in a task of its own, which a cancellation ends.
pub(crate) fn run(
    server: &Arc<Server>,
    session: &Arc<Session>,
    plan: super::engine::Plan,
    out: mpsc::Sender<Out>,
) {
    let id = plan.id.json().into_owned();
    let (server, of_task) = (Arc::clone(server), Arc::clone(session));
    let task = tokio::spawn(async move { perform(&server, &of_task, plan, out).await });
    session.started(&id, task.abort_handle());
}

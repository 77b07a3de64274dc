//! Executes the plan for one request: waits, asks the client, injects faults, answers.
//!
//! Writes to a channel, independent of transports.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_protocol::{RequestId, meta};
use tokio::sync::mpsc;

use super::engine::{
    ClientSession, Heard, Out, Outcome, Plan, PlannedAnswer, Refusal, Server, Step, encode_answer,
    encode_notification, encode_request,
};
use super::fault::{Fault, IdFault, Moment};
use super::record::Record;

/// Size of the pieces of a large answer.
const PIECE: usize = 64 * 1024;

/// Executes a plan. Ends early if the client has disconnected.
pub(crate) async fn perform(
    server: &Server,
    session: &ClientSession,
    plan: Plan,
    out: mpsc::Sender<Out>,
) {
    let request = plan.id.json().into_owned();
    tokio::select! {
        biased;
        _ = carry_out(server, session, plan, &out) => {}
        () = out.closed() => server.recorder.record(Record::Abandoned { request }),
    }
}

/// Writes the faults of a new connection; returns whether it may continue.
pub(crate) async fn greet(server: &Server, faults: &[Fault], out: &mpsc::Sender<Out>) -> bool {
    let written = write_before(server, faults, out).await;
    match end_of(faults) {
        Some((_, end)) => out.send(end).await.is_err(),
        None => written.is_some(),
    }
}

/// Returns `None` if the receiver is gone.
async fn carry_out(
    server: &Server,
    session: &ClientSession,
    plan: Plan,
    out: &mpsc::Sender<Out>,
) -> Option<()> {
    for fault in &plan.faults {
        match fault {
            Fault::Silent => std::future::pending().await,
            Fault::Status {
                status,
                headers,
                body,
            } => {
                let refusal = Refusal {
                    status: *status,
                    headers: headers.clone().into_iter().collect(),
                    body: body.clone(),
                };
                return out.send(Out::Refuse(refusal)).await.ok();
            }
            Fault::ContentType(content_type) => {
                out.send(Out::ContentType(content_type.clone()))
                    .await
                    .ok()?;
            }
            Fault::CloseStream => out.send(Out::CloseStream).await.ok()?,
            _ => {}
        }
    }
    let mut answers = Vec::new();
    for step in plan.steps {
        match step {
            Step::Send(frame) => out.send(Out::Frame(frame)).await.ok()?,
            Step::Wait(gate) => wait_at(server, &gate).await,
            Step::Pause(duration) => tokio::time::sleep(duration).await,
            Step::Ask { method, params } => {
                let id = RequestId::from(format!("ask-{}", server.next()).as_str());
                let answer = session.ask(&id.json());
                let question = encode_request(&id, &method, &params);
                out.send(Out::Frame(question)).await.ok()?;
                answers.push(answer.await.ok()?);
            }
            Step::Listen { filter } => {
                let id = serde_json::from_str(&plan.id.json()).unwrap_or_default();
                let mut heard = server.listen(id, filter);
                // Signals to tests that no notification is missed from here on. No task waits at this gate.
                server.recorder.record(Record::AtGate {
                    gate: format!("listening-{}", plan.id),
                });
                while let Some(Heard::Frame(frame)) = heard.recv().await {
                    out.send(Out::Frame(frame)).await.ok()?;
                }
            }
        }
    }
    let outcome = match plan.answer {
        PlannedAnswer::Now(outcome) => outcome,
        PlannedAnswer::Asked => {
            let text = Value::Array(answers).to_string();
            Ok(json!({"content": [{"type": "text", "text": text}]}))
        }
        PlannedAnswer::Listened => {
            let id: Value = serde_json::from_str(&plan.id.json()).unwrap_or_default();
            Ok(json!({"resultType": "complete", "_meta": {meta::SUBSCRIPTION_ID: id}}))
        }
    };
    write_before(server, &plan.faults, out).await?;
    let answer = shape(&plan.id, outcome, &plan.faults);
    deliver(session, answer, plan.http_status, &plan.faults, out).await
}

/// Writes the faults that come before an answer.
async fn write_before(server: &Server, faults: &[Fault], out: &mpsc::Sender<Out>) -> Option<()> {
    for fault in faults {
        match fault {
            Fault::Delay { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Fault::Gate { gate } => wait_at(server, gate).await,
            Fault::GarbageBefore { text } => {
                out.send(Out::Frame(text.clone().into_bytes())).await.ok()?;
            }
            Fault::Storm { method, count } => {
                let frame = encode_notification(method, &json!({}));
                for _ in 0..*count {
                    out.send(Out::Frame(frame.clone())).await.ok()?;
                }
            }
            _ => {}
        }
    }
    Some(())
}

/// Writes the answer, at once or in pieces, once or repeatedly, and the faults that follow it.
async fn deliver(
    session: &ClientSession,
    answer: Text,
    status: u16,
    faults: &[Fault],
    out: &mpsc::Sender<Out>,
) -> Option<()> {
    let end = end_of(faults);
    let trickle = faults.iter().find_map(|fault| match fault {
        Fault::Trickle { bytes, ms } => Some(((*bytes).max(1), Duration::from_millis(*ms))),
        _ => None,
    });
    match end {
        Some((Moment::Before, end)) => return out.send(end).await.ok(),
        Some((Moment::Half, end)) => {
            let full = answer.full();
            let half = full.get(..full.len() / 2).unwrap_or_default();
            out.send(Out::Piece(half.as_bytes().to_vec())).await.ok()?;
            return out.send(end).await.ok();
        }
        _ => {}
    }
    let times = faults.iter().find_map(|fault| match fault {
        Fault::Repeat { times } => Some(*times),
        _ => None,
    });
    let after: Vec<&String> = faults
        .iter()
        .filter_map(|fault| match fault {
            Fault::GarbageAfter { text } => Some(text),
            _ => None,
        })
        .collect();
    let is_last = times.is_none() && after.is_empty() && end.is_none();
    for _ in 0..times.unwrap_or(1) {
        match (trickle, answer.padding) {
            (None, 0) if is_last => {
                let bytes = answer.full().into_bytes();
                out.send(Out::Last(bytes, status)).await.ok()?;
            }
            (None, 0) => {
                let bytes = answer.full().into_bytes();
                out.send(Out::Frame(bytes)).await.ok()?;
            }
            _ => write_in_pieces(session, &answer, trickle, out).await?,
        }
    }
    for text in after {
        out.send(Out::Frame(text.clone().into_bytes())).await.ok()?;
    }
    match end {
        Some((_, end)) => out.send(end).await.ok(),
        None => Some(()),
    }
}

async fn write_in_pieces(
    session: &ClientSession,
    answer: &Text,
    trickle: Option<(usize, Duration)>,
    out: &mpsc::Sender<Out>,
) -> Option<()> {
    let _turn = session.turn.lock().await;
    let (bytes, pause) = trickle.unwrap_or((PIECE, Duration::ZERO));
    for part in [answer.start.as_bytes(), answer.end.as_bytes()] {
        for piece in part.chunks(bytes) {
            out.send(Out::Piece(piece.to_vec())).await.ok()?;
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
        if std::ptr::eq(part, answer.start.as_bytes()) {
            let mut left = answer.padding;
            while left > 0 {
                let size = left.min(PIECE);
                out.send(Out::Piece(vec![b'x'; size])).await.ok()?;
                left -= size;
            }
        }
    }
    out.send(Out::PieceEnd).await.ok()
}

/// The text of an answer, with a position for padding.
struct Text {
    start: String,
    padding: usize,
    end: String,
}

impl Text {
    fn full(&self) -> String {
        format!("{}{}{}", self.start, "x".repeat(self.padding), self.end)
    }
}

/// Encodes the answer with its faults applied.
fn shape(id: &RequestId<'_>, mut outcome: Outcome, faults: &[Fault]) -> Text {
    let mut id = Some(id.json().into_owned());
    let mut raw = None;
    let mut text = None;
    let mut padding = 0;
    for fault in faults {
        match fault {
            Fault::Result(result) => outcome = Ok(result.clone()),
            Fault::Error(error) => outcome = Err(error.clone()),
            Fault::EndlessCursor(cursor) => {
                if let Ok(result) = &mut outcome {
                    result["nextCursor"] = json!(cursor);
                }
            }
            Fault::Text(replacement) => text = Some(replacement.clone()),
            Fault::Id(fault) => id = wrong_id(id.as_deref().unwrap_or_default(), *fault),
            Fault::Deep { levels } => {
                let (open, close) = ("[".repeat(*levels), "]".repeat(*levels));
                raw = Some(format!(
                    "{{\"content\":[],\"structuredContent\":{open}{close}}}"
                ));
            }
            Fault::Oversized { bytes } => padding = *bytes,
            _ => {}
        }
    }
    if padding > 0 {
        let start = "{\"content\":[{\"type\":\"text\",\"text\":\"";
        let end = "\"}]}";
        let full = encode_answer(id.as_deref(), "result", &format!("{start}{end}"));
        let split = full.len() - end.len() - 1;
        let (start, end) = full.split_at(split);
        return Text {
            start: start.to_owned(),
            padding,
            end: end.to_owned(),
        };
    }
    let (member, value) = match (&outcome, raw) {
        (_, Some(raw)) => ("result", raw),
        (Ok(result), None) => ("result", result.to_string()),
        (Err(error), None) => ("error", error.to_string()),
    };
    Text {
        start: text.unwrap_or_else(|| encode_answer(id.as_deref(), member, &value)),
        padding: 0,
        end: String::new(),
    }
}

fn wrong_id(id: &str, fault: IdFault) -> Option<String> {
    let number: Option<u64> = id.parse().ok();
    Some(match fault {
        IdFault::Wrong => number.map_or_else(|| "\"wrong\"".to_owned(), |id| (id + 1).to_string()),
        IdFault::Unknown => "987654321".to_owned(),
        IdFault::Float => format!("{id}.0"),
        IdFault::Text => json!(id.trim_matches('"')).to_string(),
        IdFault::Null => "null".to_owned(),
        IdFault::Object => format!("{{\"id\":{id}}}"),
        IdFault::Missing => return None,
    })
}

fn end_of(faults: &[Fault]) -> Option<(Moment, Out)> {
    faults.iter().find_map(|fault| match fault {
        Fault::Exit { code, at } => Some((*at, Out::Exit(*code))),
        Fault::Abort { at } => Some((*at, Out::Abort)),
        _ => None,
    })
}

pub(crate) async fn wait_at(server: &Server, gate: &str) {
    server.recorder.record(Record::AtGate {
        gate: gate.to_owned(),
    });
    server.gates.pass(gate).await;
}

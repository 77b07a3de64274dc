//! Sends a response body piece by piece, with gates and abrupt ends.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, stream};

use super::server::Shared;

/// A piece of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Bytes(Vec<u8>),
    /// Wait until the test releases this gate.
    Wait(String),
    /// Drop the connection.
    Cut,
}

/// Splits the bytes into pieces of this size.
pub(super) fn recut(pieces: Vec<Piece>, size: usize) -> Vec<Piece> {
    let mut cut = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => {
                let chunks = bytes.chunks(size.max(1));
                cut.extend(chunks.map(|chunk| Piece::Bytes(chunk.to_vec())));
            }
            other => cut.push(other),
        }
    }
    cut
}

/// Sends the pieces as a body, and records if the client disconnects before the end.
pub(super) fn body(
    pieces: Vec<Piece>,
    shared: Arc<Shared>,
    request: usize,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let state = Sending {
        pieces: pieces.into(),
        shared,
        request,
    };
    stream::unfold(state, |mut state| async move {
        // Lets the connection flush before a cut.
        tokio::task::yield_now().await;
        loop {
            match state.pieces.front().cloned() {
                None => return None,
                Some(Piece::Bytes(bytes)) => {
                    state.pieces.pop_front();
                    return Some((Ok(Bytes::from(bytes)), state));
                }
                Some(Piece::Wait(gate)) => {
                    state.shared.pass(&gate).await;
                    state.pieces.pop_front();
                }
                Some(Piece::Cut) => {
                    state.pieces.clear();
                    return Some((Err(io::Error::other("cut by the script")), state));
                }
            }
        }
    })
}

struct Sending {
    pieces: VecDeque<Piece>,
    shared: Arc<Shared>,
    request: usize,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.pieces.is_empty() {
            self.shared.abandoned(self.request);
        }
    }
}

//! Cuts oversized messages out of a WebSocket stream, before anything buffers them.
//!
//! The library closes the whole connection on an oversized message, but only that message should be lost. This reader
//! parses the headers of the server's frames (which are never masked): as soon as a message exceeds the limit, it ends
//! the message early with a frame of its beginning and skips the rest. It records which messages were cut.
//!
//! Text messages become binary on the way, so that invalid UTF-8 affects one message and not the connection.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes read at once.
const PIECE: usize = 64 * 1024;
/// Bytes of an oversized message that are passed on: enough to find an id.
const KEPT_START: usize = 4 * 1024;
/// The longest header: two bytes, a length of eight, a mask of four.
const LONGEST_HEADER: usize = 14;

const FINAL: u8 = 0x80;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;

/// A stream that cuts oversized messages.
#[derive(Debug)]
pub(super) struct Trimmed<S> {
    inner: S,
    trimmer: Trimmer,
    /// Read, not yet parsed.
    raw: BytesMut,
    /// Parsed, not yet passed on.
    ready: BytesMut,
    piece: Box<[u8]>,
}

/// Parser of frame headers.
#[derive(Debug)]
struct Trimmer {
    limit: usize,
    state: FramePosition,
    /// Payload bytes of the current message announced so far.
    announced: u64,
    /// Whether the rest of the current message is skipped.
    is_cut: bool,
    /// Number of messages started so far.
    messages: u64,
    /// Numbers of cut messages not yet queried.
    cut: VecDeque<u64>,
}

#[derive(Debug, Clone, Copy)]
enum FramePosition {
    Header,
    /// Passes `pass` bytes of payload, then skips `skip`.
    Payload {
        pass: u64,
        skip: u64,
    },
}

impl<S> Trimmed<S> {
    /// Starts with `tail`, which was read together with the handshake.
    pub(super) fn new(inner: S, tail: &[u8], limit: usize) -> Self {
        let trimmer = Trimmer {
            limit,
            state: FramePosition::Header,
            announced: 0,
            is_cut: false,
            messages: 0,
            cut: VecDeque::new(),
        };
        Self {
            inner,
            trimmer,
            raw: BytesMut::from(tail),
            ready: BytesMut::new(),
            piece: vec![0; PIECE].into_boxed_slice(),
        }
    }

    /// Whether the message with this number, counted from 1, was cut at the limit.
    pub(super) fn is_cut(&mut self, message: u64) -> bool {
        let is_cut = self.trimmer.cut.front() == Some(&message);
        if is_cut {
            self.trimmer.cut.pop_front();
        }
        is_cut
    }
}

impl Trimmer {
    /// Moves parsed bytes from `raw` to `ready`.
    fn advance(&mut self, raw: &mut BytesMut, ready: &mut BytesMut) -> io::Result<()> {
        while !raw.is_empty() {
            match self.state {
                FramePosition::Header => {
                    let Some(header) = Header::parse(raw) else {
                        return Ok(());
                    };
                    raw.advance(header.size);
                    self.begin_frame(header, ready)?;
                }
                FramePosition::Payload { pass: 0, skip: 0 } => self.state = FramePosition::Header,
                FramePosition::Payload { pass: 0, skip } => {
                    let count = at_most(raw.len(), skip);
                    raw.advance(count);
                    let skip = skip - count as u64;
                    self.state = FramePosition::Payload { pass: 0, skip };
                }
                FramePosition::Payload { pass, skip } => {
                    let count = at_most(raw.len(), pass);
                    ready.extend_from_slice(raw.get(..count).unwrap_or_default());
                    raw.advance(count);
                    let pass = pass - count as u64;
                    self.state = FramePosition::Payload { pass, skip };
                }
            }
        }
        Ok(())
    }

    fn begin_frame(&mut self, header: Header, ready: &mut BytesMut) -> io::Result<()> {
        if header.is_masked {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the server masks its frames, which only clients may do",
            ));
        }
        let opcode = header.first & OPCODE;
        if opcode > BINARY {
            // Control frames may come between those of a message; the library checks that they are short.
            write_header(header.first, header.length, ready);
            self.state = FramePosition::Payload {
                pass: header.length,
                skip: 0,
            };
            return Ok(());
        }
        if opcode != CONTINUATION {
            self.announced = 0;
            self.is_cut = false;
            self.messages += 1;
        }
        let before = self.announced;
        self.announced = before.saturating_add(header.length);
        if self.is_cut {
            self.state = FramePosition::Payload {
                pass: 0,
                skip: header.length,
            };
            return Ok(());
        }
        let first = if opcode == TEXT {
            header.first ^ TEXT ^ BINARY
        } else {
            header.first
        };
        if self.announced <= self.limit as u64 {
            write_header(first, header.length, ready);
            self.state = FramePosition::Payload {
                pass: header.length,
                skip: 0,
            };
            return Ok(());
        }
        self.is_cut = true;
        self.cut.push_back(self.messages);
        let room = (KEPT_START.min(self.limit) as u64).saturating_sub(before);
        let pass = header.length.min(room);
        write_header(first | FINAL, pass, ready);
        self.state = FramePosition::Payload {
            pass,
            skip: header.length - pass,
        };
        Ok(())
    }
}

#[derive(Debug, Clone, Copy)]
struct Header {
    first: u8,
    is_masked: bool,
    length: u64,
    size: usize,
}

impl Header {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (&first, &second) = (bytes.first()?, bytes.get(1)?);
        let (length, size) = match second & LENGTH {
            126 => {
                let length = bytes.get(2..4)?.try_into().ok()?;
                (u64::from(u16::from_be_bytes(length)), 4)
            }
            127 => {
                let length = bytes.get(2..10)?.try_into().ok()?;
                (u64::from_be_bytes(length), 10)
            }
            length => (u64::from(length), 2),
        };
        Some(Self {
            first,
            is_masked: second & MASKED != 0,
            length,
            size,
        })
    }
}

fn write_header(first: u8, length: u64, ready: &mut BytesMut) {
    ready.reserve(LONGEST_HEADER);
    ready.extend_from_slice(&[first]);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length @ 0..=125), _) => ready.extend_from_slice(&[length]),
        (_, Ok(length)) => {
            ready.extend_from_slice(&[126]);
            ready.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            ready.extend_from_slice(&[127]);
            ready.extend_from_slice(&length.to_be_bytes());
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Trimmed<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            this.trimmer.advance(&mut this.raw, &mut this.ready)?;
            if !this.ready.is_empty() {
                let count = this.ready.len().min(buffer.remaining());
                buffer.put_slice(&this.ready.split_to(count));
                return Poll::Ready(Ok(()));
            }
            if let FramePosition::Payload { pass, skip } = this.trimmer.state
                && pass > 0
            {
                // Within a payload, bytes are read directly into the caller's buffer.
                let count = at_most(buffer.remaining(), pass);
                let mut direct = ReadBuf::new(buffer.initialize_unfilled_to(count));
                ready!(Pin::new(&mut this.inner).poll_read(context, &mut direct))?;
                let count = direct.filled().len();
                buffer.advance(count);
                let pass = pass - count as u64;
                this.trimmer.state = FramePosition::Payload { pass, skip };
                return Poll::Ready(Ok(()));
            }
            let mut piece = ReadBuf::new(&mut this.piece);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.raw.extend_from_slice(piece.filled());
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Trimmed<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

/// How many of the available bytes belong to a part of length `wanted`.
fn at_most(available: usize, wanted: u64) -> usize {
    usize::try_from(wanted).map_or(available, |wanted| wanted.min(available))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 10_000;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = BytesMut::new();
        write_header(first, payload.len() as u64, &mut bytes);
        bytes.extend_from_slice(payload);
        bytes.to_vec()
    }

    fn trim(chunks: &[&[u8]]) -> (Vec<u8>, Vec<u64>) {
        let mut trimmed = Trimmed::new((), &[], LIMIT);
        for chunk in chunks {
            trimmed.raw.extend_from_slice(chunk);
            trimmed
                .trimmer
                .advance(&mut trimmed.raw, &mut trimmed.ready)
                .expect("frames");
        }
        (trimmed.ready.to_vec(), trimmed.trimmer.cut.into())
    }

    #[test]
    fn only_messages_over_the_limit_are_cut() {
        let check = |stream: &[Vec<u8>], expected: &[Vec<u8>], cut: &[u64]| {
            let (out, found) = trim(&[&stream.concat()]);
            assert_eq!(out, expected.concat());
            assert_eq!(found, cut);
        };
        let large = vec![b'x'; LIMIT + 1];
        let exact = vec![b'y'; LIMIT];
        let ping = frame(0x89, b"p");
        check(&[frame(0x81, b"a")], &[frame(0x82, b"a")], &[]);
        check(&[frame(0x81, &exact)], &[frame(0x82, &exact)], &[]);
        check(
            &[frame(0x81, b"a"), frame(0x81, &large), frame(0x82, b"b")],
            &[
                frame(0x82, b"a"),
                frame(0x82, &large[..KEPT_START]),
                frame(0x82, b"b"),
            ],
            &[2],
        );
        // Fragments, with a control frame between them.
        check(
            &[
                frame(0x01, &exact),
                ping.clone(),
                frame(0x00, b"z"),
                ping.clone(),
                frame(0x80, &large),
                frame(0x81, b"a"),
            ],
            &[
                frame(0x02, &exact),
                ping.clone(),
                frame(0x80, b""),
                ping.clone(),
                frame(0x82, b"a"),
            ],
            &[1],
        );
    }

    #[test]
    fn a_masked_frame_is_refused() {
        let mut trimmed = Trimmed::new((), &[0x81, 0x81, 0, 0, 0, 0, b'a'], LIMIT);
        let outcome = trimmed
            .trimmer
            .advance(&mut trimmed.raw, &mut trimmed.ready);
        assert_eq!(
            outcome.expect_err("masked").kind(),
            io::ErrorKind::InvalidData
        );
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(
            frames in proptest::collection::vec(
                (prop_oneof![Just(0x81_u8), Just(0x01), Just(0x80), Just(0x00), Just(0x89)],
                 prop_oneof![0_usize..300, 9_000_usize..11_000, Just(70_000_usize)]),
                0..8,
            ),
            size in 1_usize..5_000,
        ) {
            let stream: Vec<u8> = frames
                .iter()
                .flat_map(|(first, length)| frame(*first, &vec![b'x'; *length]))
                .collect();
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            prop_assert_eq!(trim(&chunks), trim(&[&stream]));
        }
    }
}

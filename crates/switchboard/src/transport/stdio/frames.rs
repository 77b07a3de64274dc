//! Splits a byte stream into lines, in bounded memory.
//!
//! Most lines are short: each is copied into an allocation of its own size, so that the buffer is reused at once and a
//! long-lived line retains nothing else. A line that made the buffer grow takes the buffer with it, and a new one is
//! allocated. The buffer never holds more than one line at the limit and one chunk. Lines are not inspected.

use bytes::Bytes;

/// Splits appended bytes into lines of bounded length.
#[derive(Debug)]
pub struct Frames {
    buffer: Vec<u8>,
    /// Start of the first undelivered line.
    start: usize,
    /// Everything before this offset is known to contain no unhandled line end.
    scanned: usize,
    /// Whether the rest of the current line is discarded.
    skipping: bool,
    limit: usize,
    chunk: usize,
}

/// Output of [`Frames::split`].
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A non-empty line without its end.
    Line(Bytes),
    /// The start of an oversized line. The rest is discarded as it arrives.
    Oversized(&'a [u8]),
}

impl Frames {
    /// Lines of at most `limit` bytes, read in chunks of about `chunk` bytes.
    pub fn new(limit: usize, chunk: usize) -> Self {
        Self {
            buffer: Vec::with_capacity(chunk),
            start: 0,
            scanned: 0,
            skipping: false,
            limit,
            chunk,
        }
    }

    /// The buffer to append to, with free capacity. Must be followed by [`split`](Self::split).
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            if self.buffer.capacity() > self.chunk && rest.len() <= self.chunk / 2 {
                // A long line made the buffer grow; the remainder does not need it.
                let mut small = Vec::with_capacity(self.chunk);
                small.extend_from_slice(rest);
                self.buffer = small;
            } else {
                self.buffer.drain(..self.start);
            }
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buffer.len() == self.buffer.capacity() {
            // Grows in large steps, since an allocator may retain each outgrown buffer and untouched memory costs
            // nothing. But never beyond the need of one line at the limit.
            let most = self.limit.saturating_add(self.chunk);
            let wanted = self.buffer.capacity().saturating_mul(4).min(most);
            let more = wanted.saturating_sub(self.buffer.len());
            self.buffer.reserve_exact(more.max(self.chunk.min(64)));
        }
        &mut self.buffer
    }

    /// Delivers every line that is complete.
    pub fn split(&mut self, mut deliver: impl FnMut(Frame<'_>)) {
        while let Some(end) = self.next_line_end() {
            let begin = std::mem::replace(&mut self.start, end + 1);
            self.scanned = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            let line = without_return(self.buffer.get(begin..end).unwrap_or_default());
            if line.len() > self.limit {
                deliver(Frame::Oversized(line));
            } else if line.len() > self.chunk && line.len() >= self.buffer.len() / 2 && begin == 0 {
                let length = line.len();
                deliver(Frame::Line(self.give_away(length)));
            } else if !line.is_empty() {
                deliver(Frame::Line(Bytes::copy_from_slice(line)));
            }
        }
        self.scanned = self.buffer.len();
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        if !self.skipping && without_return(rest).len() > self.limit {
            deliver(Frame::Oversized(without_return(rest)));
            self.skipping = true;
        }
        if self.skipping || rest.is_empty() {
            self.forget();
        }
    }

    /// The unterminated last line, if there is one.
    pub fn rest(&self) -> Option<&[u8]> {
        let rest = without_return(self.buffer.get(self.start..)?);
        (!rest.is_empty()).then_some(rest)
    }

    fn next_line_end(&self) -> Option<usize> {
        let unseen = self.buffer.get(self.scanned..)?;
        Some(self.scanned + memchr::memchr(b'\n', unseen)?)
    }

    /// Returns the first `length` bytes together with the buffer; the bytes after that line move to a new one.
    ///
    /// The line is at least as long as the bytes after it, so moving them costs no more than reading the line did.
    fn give_away(&mut self, length: usize) -> Bytes {
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let mut fresh = Vec::with_capacity(rest.len().max(self.chunk));
        fresh.extend_from_slice(rest);
        let mut line = std::mem::replace(&mut self.buffer, fresh);
        self.start = 0;
        self.scanned = 0;
        line.truncate(length);
        line.shrink_to_fit();
        Bytes::from(line)
    }

    fn forget(&mut self) {
        self.start = 0;
        self.scanned = 0;
        if self.buffer.capacity() > self.chunk {
            self.buffer = Vec::with_capacity(self.chunk);
        } else {
            self.buffer.clear();
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq)]
    enum Seen {
        Line(Vec<u8>),
        Oversized(usize),
    }

    /// Feeds the stream in pieces and returns the output, checking the bound of the buffer throughout.
    fn feed(limit: usize, chunk: usize, stream: &[u8], pieces: &[usize]) -> Vec<Seen> {
        let mut frames = Frames::new(limit, chunk);
        let mut seen = Vec::new();
        let mut rest = stream;
        let mut pieces = pieces.iter().copied().cycle();
        while !rest.is_empty() {
            let room = frames.room();
            let spare = room.capacity() - room.len();
            assert!(spare > 0);
            let length = pieces.next().unwrap_or(1).clamp(1, spare).min(rest.len());
            room.extend_from_slice(&rest[..length]);
            rest = &rest[length..];
            frames.split(|frame| {
                seen.push(match frame {
                    Frame::Line(line) => Seen::Line(line.to_vec()),
                    Frame::Oversized(start) => {
                        assert!(stream.windows(start.len()).any(|window| window == start));
                        assert!(start.len() > limit);
                        Seen::Oversized(limit)
                    }
                });
            });
            assert!(frames.buffer.capacity() <= limit + chunk + 64);
        }
        seen
    }

    /// The expected output by definition, over the whole stream.
    fn expected(limit: usize, stream: &[u8]) -> Vec<Seen> {
        let mut lines: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
        let unfinished = lines.pop().unwrap_or_default();
        let mut seen: Vec<Seen> = lines
            .into_iter()
            .map(without_return)
            .filter(|line| !line.is_empty())
            .map(|line| {
                if line.len() > limit {
                    Seen::Oversized(limit)
                } else {
                    Seen::Line(line.to_vec())
                }
            })
            .collect();
        if without_return(unfinished).len() > limit {
            seen.push(Seen::Oversized(limit));
        }
        seen
    }

    #[test]
    fn lines_come_out_however_they_were_cut() {
        let check = |stream: &[u8]| {
            for piece in 1..=stream.len() {
                assert_eq!(
                    feed(8, 4, stream, &[piece]),
                    expected(8, stream),
                    "{stream:?} by {piece}"
                );
            }
        };
        check(b"one\ntwo\r\n\n\r\nthree\n");
        check(b"12345678\n123456789\nafter\n");
        check(b"12345678\r\n12345678\r9\n");
        check(b"this line is far too long for the limit\nshort\nunfinished");
        check(b"\r\r\n\n\n\xff\xfe\n");
        check(b"this one is too long and never ends");
    }

    #[test]
    fn a_long_line_keeps_no_more_than_itself_alive_and_the_buffer_shrinks() {
        let mut frames = Frames::new(1 << 20, 1024);
        let mut stream = vec![b'x'; 100_000];
        stream.extend_from_slice(b"\nshort\nrest");
        let mut seen = Vec::new();
        let mut rest = &stream[..];
        while !rest.is_empty() {
            let room = frames.room();
            let length = (room.capacity() - room.len()).min(rest.len());
            room.extend_from_slice(&rest[..length]);
            rest = &rest[length..];
            frames.split(|frame| {
                if let Frame::Line(line) = frame {
                    seen.push(line);
                }
            });
        }
        frames.room();
        assert_eq!(frames.buffer, b"rest");
        assert_eq!(frames.buffer.capacity(), 1024);
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[1], "short");
        let long = Vec::from(std::mem::take(&mut seen[0]));
        assert_eq!((long.len(), long.capacity()), (100_000, 100_000));
    }

    proptest! {
        #[test]
        fn any_stream_in_any_pieces(
            stream in proptest::collection::vec(prop_oneof![4 => Just(b'a'), 1 => Just(b'\n'), 1 => Just(b'\r')], 0..400),
            pieces in proptest::collection::vec(1_usize..40, 1..8),
            limit in 1_usize..30,
            chunk in 2_usize..20,
        ) {
            prop_assert_eq!(feed(limit, chunk, &stream, &pieces), expected(limit, &stream));
        }
    }
}

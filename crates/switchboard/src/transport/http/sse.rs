//! Bounded decoder of server-sent events (`text/event-stream`).
//!
//! Handles lines that end in CR, LF or both across chunks; a byte order mark; comments; `data` joined by line breaks;
//! the last id and `retry`. Independent of HTTP and of the meaning of the data. Of an oversized event only the
//! beginning is stored and the rest is skipped, so that memory is bounded and every byte is scanned once. It is public
//! because models stream in this format too.

use std::mem;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};

/// Bytes of an oversized event that are stored: enough to find an id.
const KEPT_START: usize = 4 * 1024;
/// Maximum length of a field other than `data`.
const MAX_FIELD: usize = 8 * 1024;
/// Longer reconnection times are capped.
const MAX_RETRY: Duration = Duration::from_secs(5 * 60);
/// Upper bound for the field name, colon and space of a line.
const AROUND_VALUE: usize = 16;
const DATA: &[u8] = b"data";

/// Item of an event stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// An event with data.
    Event {
        /// Event type; empty means `message`.
        name: Bytes,
        /// Lines of data, joined by line feeds.
        data: Bytes,
    },
    /// An event whose data exceeds the limit.
    Oversized {
        /// Beginning of its data.
        start: Bytes,
    },
}

/// Decodes events from chunks of bytes: [`push`](Self::push) a chunk, then [`take`](Self::take) events until `None`.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    input: Bytes,
    /// Start of an incomplete line.
    partial: BytesMut,
    line: Line,
    /// The last line ended in CR, so a line feed at the start of the input belongs to it.
    after_carriage_return: bool,
    at_start: bool,
    name: Bytes,
    data: Data,
    /// Id of the current event; effective only once the event is complete.
    id: Option<Bytes>,
    last_id: Option<Bytes>,
    retry: Option<Duration>,
}

/// Treatment of the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Kept,
    /// A comment, or the rest of an oversized line.
    Skipped,
}

#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    /// One line, shared with its chunk.
    One(Bytes),
    Many(BytesMut),
    /// Over the limit; holds the beginning.
    Oversized(Bytes),
}

impl Decoder {
    /// A decoder for events of at most `limit` bytes of data. A resumed stream starts with the last id of the one
    /// before.
    pub fn new(limit: usize, last_id: Option<Bytes>) -> Self {
        Self {
            limit,
            input: Bytes::new(),
            partial: BytesMut::new(),
            line: Line::Kept,
            after_carriage_return: false,
            at_start: true,
            name: Bytes::new(),
            data: Data::None,
            id: None,
            last_id,
            retry: None,
        }
    }

    /// Adds the next chunk. The events of the previous chunk must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        self.input = chunk;
    }

    /// The next complete event; `None` if more input is needed.
    pub fn take(&mut self) -> Option<Decoded> {
        while !self.input.is_empty() {
            if mem::take(&mut self.after_carriage_return) && self.input.first() == Some(&b'\n') {
                self.input.advance(1);
                continue;
            }
            if let Some(line) = self.take_line()
                && let Some(decoded) = self.process(&line)
            {
                return Some(decoded);
            }
        }
        None
    }

    /// The id to resume after: that of the last complete event.
    pub fn last_id(&self) -> Option<&Bytes> {
        self.last_id.as_ref()
    }

    /// Reconnection time requested by the server.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The next line without its end; `None` if it is incomplete or skipped.
    fn take_line(&mut self) -> Option<Bytes> {
        if self.partial.is_empty() && self.input.first() == Some(&b':') {
            self.line = Line::Skipped;
        }
        let Some(end) = memchr::memchr2(b'\n', b'\r', &self.input) else {
            let rest = mem::take(&mut self.input);
            self.keep_partial(&rest);
            return None;
        };
        let piece = self.input.split_to(end);
        self.after_carriage_return = self.input.first() == Some(&b'\r');
        self.input.advance(1);
        if mem::replace(&mut self.line, Line::Kept) == Line::Skipped {
            self.partial.clear();
            self.at_start = false;
            return None;
        }
        let line = if self.partial.is_empty() {
            piece
        } else {
            self.partial.extend_from_slice(&piece);
            self.partial.split().freeze()
        };
        let line = line.slice_ref(self.without_mark(&line));
        self.at_start = false;
        Some(line)
    }

    fn keep_partial(&mut self, rest: &[u8]) {
        if self.line == Line::Skipped {
            return;
        }
        self.partial.extend_from_slice(rest);
        let line = self.without_mark(&self.partial);
        let most = if line.starts_with(b"data:") {
            self.limit
        } else {
            MAX_FIELD
        };
        if line.len() <= most + AROUND_VALUE {
            return;
        }
        self.line = Line::Skipped;
        let line = mem::take(&mut self.partial);
        if let Some((DATA, value)) = split_field(self.without_mark(&line)) {
            self.add_data(value);
        }
    }

    /// A line without the byte order mark that the first one may have.
    fn without_mark<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) if self.at_start => rest,
            _ => line,
        }
    }

    fn process(&mut self, line: &Bytes) -> Option<Decoded> {
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = split_field(line)?;
        match field {
            DATA => {
                let value = line.slice_ref(value);
                self.add_line(value);
            }
            b"event" if value.len() <= MAX_FIELD => self.name = Bytes::copy_from_slice(value),
            // An id with a null character is ignored, as the format requires; so is an oversized one.
            b"id" if value.len() <= MAX_FIELD && memchr::memchr(0, value).is_none() => {
                self.id = Some(Bytes::copy_from_slice(value));
            }
            b"retry" => {
                let digits = std::str::from_utf8(value)
                    .ok()
                    .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                if let Some(milliseconds) = digits.and_then(|text| text.parse().ok()) {
                    self.retry = Some(Duration::from_millis(milliseconds).min(MAX_RETRY));
                }
            }
            _ => {}
        }
        None
    }

    fn add_line(&mut self, value: Bytes) {
        if value.len() <= self.limit && matches!(self.data, Data::None) {
            self.data = Data::One(value);
        } else {
            self.add_data(&value);
        }
    }

    fn add_data(&mut self, value: &[u8]) {
        let mut joined = match mem::take(&mut self.data) {
            Data::Oversized(start) => {
                self.data = Data::Oversized(start);
                return;
            }
            Data::None => BytesMut::new(),
            Data::One(first) => {
                let mut joined = BytesMut::with_capacity(first.len() + 1 + value.len());
                joined.extend_from_slice(&first);
                joined.extend_from_slice(b"\n");
                joined
            }
            Data::Many(mut joined) => {
                joined.extend_from_slice(b"\n");
                joined
            }
        };
        if joined.len() + value.len() <= self.limit {
            joined.extend_from_slice(value);
            self.data = Data::Many(joined);
            return;
        }
        let length = KEPT_START.min(self.limit);
        let room = length.saturating_sub(joined.len());
        joined.extend_from_slice(value.get(..room).unwrap_or(value));
        joined.truncate(length);
        // Copied, so that the buffer of a large event is freed.
        self.data = Data::Oversized(Bytes::copy_from_slice(&joined));
    }

    fn dispatch(&mut self) -> Option<Decoded> {
        if let Some(id) = self.id.take() {
            // An empty id resets the last id.
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let name = mem::take(&mut self.name);
        let data = match mem::take(&mut self.data) {
            Data::None => return None,
            Data::Oversized(start) => return Some(Decoded::Oversized { start }),
            Data::One(data) => data,
            Data::Many(data) => data.freeze(),
        };
        (!data.is_empty()).then_some(Decoded::Event { name, data })
    }
}

/// Name and value of a line; `None` for a comment.
fn split_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, value) = match memchr::memchr(b':', line) {
        Some(0) => return None,
        Some(colon) => (line.get(..colon)?, line.get(colon + 1..)?),
        None => (line, &line[line.len()..]),
    };
    Some((name, value.strip_prefix(b" ").unwrap_or(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: usize = 64;

    #[derive(Debug, PartialEq, Eq)]
    struct Outcome {
        decoded: Vec<Decoded>,
        last_id: Option<Bytes>,
        retry: Option<Duration>,
    }

    fn decode(chunks: &[&[u8]]) -> Outcome {
        let mut decoder = Decoder::new(LIMIT, None);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(Bytes::copy_from_slice(chunk));
            while let Some(event) = decoder.take() {
                events.push(event);
            }
            assert!(
                decoder.partial.len() <= LIMIT.max(MAX_FIELD) + AROUND_VALUE + 3,
                "an oversized line is buffered"
            );
        }
        Outcome {
            decoded: events,
            last_id: decoder.last_id.clone(),
            retry: decoder.retry,
        }
    }

    fn event(name: &'static str, data: &'static str) -> Decoded {
        Decoded::Event {
            name: Bytes::from_static(name.as_bytes()),
            data: Bytes::from_static(data.as_bytes()),
        }
    }

    #[test]
    fn events_are_read_as_the_html_standard_says() {
        let check = |stream: &str, decoded: &[Decoded], last_id: Option<&'static str>| {
            let outcome = decode(&[stream.as_bytes()]);
            assert_eq!(outcome.decoded, decoded, "{stream:?}");
            let expected = last_id.map(|id| Bytes::from_static(id.as_bytes()));
            assert_eq!(outcome.last_id, expected, "{stream:?}");
        };
        check("data: a\n\n", &[event("", "a")], None);
        check(
            "data:a\r\rdata:  b\r\n\r\n",
            &[event("", "a"), event("", " b")],
            None,
        );
        check("\u{feff}data: a\n\n", &[event("", "a")], None);
        check("\n\ndata: a\n\n", &[event("", "a")], None);
        check("\u{feff}: hello\ndata: a\n\n", &[event("", "a")], None);
        check(
            "event: endpoint\ndata: /x\n\n",
            &[event("endpoint", "/x")],
            None,
        );
        check("event: x\n\ndata: a\n\n", &[event("", "a")], None);
        check("data: a\ndata\ndata: b\n\n", &[event("", "a\n\nb")], None);
        check("data\n\n", &[], None);
        check(": comment\n:\ndata: a\n: more\n\n", &[event("", "a")], None);
        check("datax: a\n data: b\nDATA: c\n\n", &[], None);
        check("data: cut off\n", &[], None);
        check(
            "id: 7\ndata: a\n\nid: 8\ndata: cut off\n",
            &[event("", "a")],
            Some("7"),
        );
        check("id: 7\nretry: 20\ndata: \n\n", &[], Some("7"));
        check("id: 7\n\nid\ndata: a\n\n", &[event("", "a")], None);
        check(
            "id: 7\n\nid: 8\0\ndata: a\n\n",
            &[event("", "a")],
            Some("7"),
        );
    }

    #[test]
    fn the_reconnection_time_is_digits_within_reason() {
        let check = |stream: &str, retry: Option<u64>| {
            let expected = retry.map(Duration::from_millis);
            assert_eq!(decode(&[stream.as_bytes()]).retry, expected, "{stream:?}");
        };
        check("retry: 500\n", Some(500));
        check(
            "retry: 500\nretry: soon\nretry: -1\nretry: +1\nretry:\n",
            Some(500),
        );
        check("retry: 99999999999\n", Some(300_000));
        check("retry: 99999999999999999999999999\n", None);
    }

    #[test]
    fn an_event_over_the_limit_costs_only_itself() {
        let exact = "x".repeat(LIMIT);
        let over = "y".repeat(LIMIT + 1);
        let stream = format!("data: {exact}\n\nid: 3\ndata: {over}\n\ndata: a\n\n");
        let expected = [
            Decoded::Event {
                name: Bytes::new(),
                data: Bytes::from(exact.clone()),
            },
            Decoded::Oversized {
                start: Bytes::from(over).slice(..LIMIT),
            },
            event("", "a"),
        ];
        assert_eq!(decode(&[stream.as_bytes()]).decoded, expected);
        assert_eq!(
            decode(&[stream.as_bytes()]).last_id,
            Some(Bytes::from_static(b"3"))
        );

        let many = "data: 12345678\n".repeat(20);
        let outcome = decode(&[format!("{many}\ndata: a\n\n").as_bytes()]);
        let [Decoded::Oversized { start }, rest] = outcome.decoded.as_slice() else {
            panic!("{outcome:?}");
        };
        assert!(start.starts_with(b"12345678\n12345678"));
        assert_eq!(*rest, event("", "a"));
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        for start in ["data:", "id:", "x", ":"] {
            let piece = "z".repeat(1000);
            let mut chunks = vec![start.as_bytes()];
            chunks.extend(std::iter::repeat_n(piece.as_bytes(), 100));
            chunks.push(b"\n\ndata: a\n\n");
            let outcome = decode(&chunks);
            assert_eq!(outcome.decoded.last(), Some(&event("", "a")), "{start}");
            assert_eq!(outcome.decoded.len(), if start == "data:" { 2 } else { 1 });
        }
    }

    fn hostile_stream() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just("data: {\"id\":1}".to_owned()),
            Just("data:".to_owned()),
            Just("data".to_owned()),
            Just("id: 4".to_owned()),
            Just("id: \0".to_owned()),
            Just("retry: 12".to_owned()),
            Just("event: x".to_owned()),
            Just(": ping".to_owned()),
            Just("\u{feff}".to_owned()),
            Just("\n".to_owned()),
            Just("\r".to_owned()),
            Just("\r\n".to_owned()),
            Just("\n\n".to_owned()),
            "[a-z: ]{0,90}",
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(
            stream in hostile_stream(),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let expected = decode(&[&stream]);
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
            places.sort_unstable();
            places.push(stream.len());
            let mut start = 0;
            let mut chunks = Vec::new();
            for place in places {
                chunks.push(&stream[start..place]);
                start = place;
            }
            prop_assert_eq!(&decode(&chunks), &expected);
            let bytes: Vec<&[u8]> = stream.chunks(1).collect();
            prop_assert_eq!(&decode(&bytes), &expected);
        }
    }
}

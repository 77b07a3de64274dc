//! Fast path of the parser: one pass validates the JSON, checks its depth, and finds the members of a message.
//!
//! It may give up on anything (`None`); `serde_json` then parses the message and produces the error texts. It must
//! never accept what `serde_json` would reject. It exists because `serde_json` reads a message twice, and long strings
//! eight bytes at a time.

use serde_json::value::RawValue;

use crate::{
    raw,
    string_scan::{StringEnd, end_of_checked_string},
};

/// The members of an envelope, verbatim.
#[derive(Default)]
pub(crate) struct Members<'a> {
    pub(crate) jsonrpc: Option<&'a RawValue>,
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: Option<&'a RawValue>,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) error: Option<&'a RawValue>,
    /// Whether a member is repeated.
    pub(crate) repeated: bool,
}

impl<'a> Members<'a> {
    /// The slot of a member; `None` for an unknown name.
    pub(crate) fn slot(&mut self, name: &[u8]) -> Option<&mut Option<&'a RawValue>> {
        Some(match name {
            b"jsonrpc" => &mut self.jsonrpc,
            b"id" => &mut self.id,
            b"method" => &mut self.method,
            b"params" => &mut self.params,
            b"result" => &mut self.result,
            b"error" => &mut self.error,
            _ => return None,
        })
    }
}

/// The usual start of a message. A member must follow.
const USUAL_START: &str = r#"{"jsonrpc":"2.0","#;

/// The usual starts of call results, in either era. A value that starts like this need not be scanned up to there.
const USUAL_RESULTS: [&[u8]; 2] = [
    br#"{"content":[{"type":"text","text":""#,
    br#"{"resultType":"complete","content":[{"type":"text","text":""#,
];

/// The members of an object, if it is valid JSON and at most `max_depth` deep.
pub(crate) fn envelope(text: &str, max_depth: usize) -> Option<Members<'_>> {
    let mut members = Members::default();
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        position: 0,
        max_depth: max_depth.checked_sub(1)?,
    };
    if text.starts_with(USUAL_START) {
        members.jsonrpc = raw::trusted("\"2.0\"");
        scanner.position = USUAL_START.len();
        scanner.next_token()?;
    } else {
        scanner.expect(b'{')?;
        if scanner.next_token()? == b'}' {
            scanner.position += 1;
            return scanner.ends().then_some(members);
        }
    }
    loop {
        let key_start = scanner.position;
        if scanner.string()?.escaped {
            return None;
        }
        let key = text.as_bytes().get(key_start + 1..scanner.position - 1)?;
        scanner.expect(b':')?;
        scanner.next_token()?;
        let value_start = scanner.position;
        scanner.value()?;
        if let Some(slot) = members.slot(key) {
            let value = raw::trusted(text.get(value_start..scanner.position)?)?;
            if slot.replace(value).is_some() {
                members.repeated = true;
            }
        }
        match scanner.next_token()? {
            b',' => {
                scanner.position += 1;
                scanner.next_token()?;
            }
            b'}' => {
                scanner.position += 1;
                return scanner.ends().then_some(members);
            }
            _ => return None,
        }
    }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    position: usize,
    max_depth: usize,
}

impl Scanner<'_> {
    /// Skips whitespace and returns the next byte.
    #[inline]
    fn next_token(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.position)?;
        if byte > b' ' {
            return Some(byte);
        }
        self.token_after_whitespace()
    }

    fn token_after_whitespace(&mut self) -> Option<u8> {
        loop {
            match *self.bytes.get(self.position)? {
                b' ' | b'\n' | b'\t' | b'\r' => self.position += 1,
                byte => return Some(byte),
            }
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next_token()? == byte).then(|| self.position += 1)
    }

    #[inline]
    fn rest(&self) -> &[u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// Whether only whitespace is left.
    fn ends(&mut self) -> bool {
        self.next_token().is_none()
    }

    /// Validates and skips one value.
    fn value(&mut self) -> Option<()> {
        let mut nesting = Nesting::default();
        let rest = self.rest();
        if let Some(start) = USUAL_RESULTS.iter().find(|start| rest.starts_with(start)) {
            // The prefix opens an object in a list in an object; its last byte starts a string.
            for container in [Container::Object, Container::Array, Container::Object] {
                nesting.enter(container, self.max_depth)?;
            }
            self.position += start.len() - 1;
        }
        loop {
            match self.next_token()? {
                b'"' => {
                    self.string()?;
                }
                b'{' => {
                    nesting.enter(Container::Object, self.max_depth)?;
                    self.position += 1;
                    if self.next_token()? != b'}' {
                        self.key()?;
                        continue;
                    }
                    self.position += 1;
                    nesting.leave();
                }
                b'[' => {
                    nesting.enter(Container::Array, self.max_depth)?;
                    self.position += 1;
                    if self.next_token()? != b']' {
                        continue;
                    }
                    self.position += 1;
                    nesting.leave();
                }
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => return None,
            }
            // A value has ended: close finished containers, then go to the next value.
            loop {
                let Some(container) = nesting.innermost() else {
                    return Some(());
                };
                match (self.next_token()?, container) {
                    (b',', Container::Array) => {
                        self.position += 1;
                        break;
                    }
                    (b',', Container::Object) => {
                        self.position += 1;
                        self.next_token()?;
                        self.key()?;
                        break;
                    }
                    (b']', Container::Array) | (b'}', Container::Object) => {
                        self.position += 1;
                        nesting.leave();
                    }
                    _ => return None,
                }
            }
        }
    }

    #[inline]
    fn key(&mut self) -> Option<()> {
        self.string()?;
        self.expect(b':')
    }

    #[inline]
    fn string(&mut self) -> Option<StringEnd> {
        if *self.bytes.get(self.position)? != b'"' {
            return None;
        }
        let end = end_of_checked_string(self.bytes, self.position + 1)?;
        self.position = end.position;
        Some(end)
    }

    fn literal(&mut self, literal: &[u8]) -> Option<()> {
        let end = self.position + literal.len();
        (self.bytes.get(self.position..end)? == literal).then(|| self.position = end)
    }

    fn number(&mut self) -> Option<()> {
        if self.bytes.get(self.position) == Some(&b'-') {
            self.position += 1;
        }
        match self.bytes.get(self.position)? {
            b'0' => self.position += 1,
            _ => self.digits()?,
        }
        if self.bytes.get(self.position) == Some(&b'.') {
            self.position += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.position), Some(b'e' | b'E')) {
            self.position += 1;
            if matches!(self.bytes.get(self.position), Some(b'+' | b'-')) {
                self.position += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    /// One or more digits.
    fn digits(&mut self) -> Option<()> {
        let start = self.position;
        while self
            .bytes
            .get(self.position)
            .is_some_and(u8::is_ascii_digit)
        {
            self.position += 1;
        }
        (self.position > start).then_some(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Array,
    Object,
}

/// The containers around a value, one bit each; the first 64 need no allocation.
#[derive(Default)]
struct Nesting {
    depth: usize,
    innermost: u64,
    outer: Vec<u64>,
}

impl Nesting {
    #[inline]
    fn enter(&mut self, container: Container, max_depth: usize) -> Option<()> {
        if self.depth >= max_depth {
            return None;
        }
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.innermost);
        }
        self.innermost = self.innermost << 1 | u64::from(container == Container::Object);
        self.depth += 1;
        Some(())
    }

    #[inline]
    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.innermost >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.innermost = self.outer.pop().unwrap_or_default();
        }
    }

    #[inline]
    fn innermost(&self) -> Option<Container> {
        match (self.depth, self.innermost & 1) {
            (0, _) => None,
            (_, 0) => Some(Container::Array),
            _ => Some(Container::Object),
        }
    }
}

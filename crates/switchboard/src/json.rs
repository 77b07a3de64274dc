//! Validated JSON in a shared buffer: a server's payload, passed on without copying or parsing it again.

use std::fmt;

use bytes::Bytes;
use serde_json::value::RawValue;
use switchboard_protocol::trusted;

/// A validated JSON value, cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedJson(Bytes);

impl SharedJson {
    /// A value parsed from `frame`, sharing its buffer. It must lie within the frame.
    pub(crate) fn part_of(frame: &Bytes, value: &RawValue) -> Self {
        Self(frame.slice_ref(value.get().as_bytes()))
    }

    /// A part of this value, sharing its buffer; `None` for text that lies elsewhere.
    pub fn part(&self, value: &RawValue) -> Option<Self> {
        let text = value.get();
        let start = (text.as_ptr() as usize).checked_sub(self.0.as_ptr() as usize)?;
        let end = start.checked_add(text.len())?;
        (end <= self.0.len()).then(|| Self(self.0.slice(start..end)))
    }

    /// Whether both are the same text in the same buffer.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.0.as_ptr() == other.0.as_ptr() && self.0.len() == other.0.len()
    }

    /// Its text as bytes, sharing the buffer.
    pub(crate) fn to_shared_bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// The length of its text in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// The bytes of its text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The value, raw.
    pub fn raw(&self) -> &RawValue {
        trusted(self.as_str()).unwrap_or(RawValue::NULL)
    }

    /// The text of the value.
    pub fn as_str(&self) -> &str {
        // The constructors accept only text, so this never fails; it is a check, not a copy.
        simdutf8::basic::from_utf8(&self.0).unwrap_or("null")
    }
}

impl SharedJson {
    /// Wraps text that is known to be one JSON value.
    #[doc(hidden)]
    pub fn trusted(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl From<Box<RawValue>> for SharedJson {
    fn from(value: Box<RawValue>) -> Self {
        Self(Bytes::from(Box::<str>::from(value).into_boxed_bytes()))
    }
}

impl From<&RawValue> for SharedJson {
    fn from(value: &RawValue) -> Self {
        Self(Bytes::copy_from_slice(value.get().as_bytes()))
    }
}

impl From<&serde_json::Value> for SharedJson {
    fn from(value: &serde_json::Value) -> Self {
        Self(Bytes::from(value.to_string()))
    }
}

impl fmt::Debug for SharedJson {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_shares_the_buffer_of_its_frame() {
        let frame = Bytes::from_static(br#"{"result": {"a": 1} }"#);
        let text = std::str::from_utf8(&frame).unwrap_or_default();
        let value = trusted(&text[11..19]).unwrap_or(RawValue::NULL);
        let part = SharedJson::part_of(&frame, value);
        assert_eq!(part.raw().get(), r#"{"a": 1}"#);
        assert_eq!(part.as_str().as_ptr(), text[11..].as_ptr());
        let inner = trusted(&text[17..18]).unwrap_or(RawValue::NULL);
        let number = part.part(inner);
        assert_eq!(number.as_ref().map(SharedJson::as_str), Some("1"));
        assert_eq!(part.part(RawValue::NULL), None);
    }
}

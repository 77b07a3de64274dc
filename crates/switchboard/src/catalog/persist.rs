//! Disk cache format for all lists of one server.
//!
//! The format is one JSON object that contains the raw pages, so that reading is one pass that checks the syntax and
//! copies nothing. A catalogue of a single page of tools, the common case, is stored as that page itself, sharing its
//! buffer. The formats cannot be confused: a page that starts like the object is never stored bare. Bytes of another
//! version, or undecodable ones, count as a cache miss.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::SharedJson;

/// Increment when older bytes would be misread.
const VERSION: u32 = 1;

/// Start of the object format.
const OBJECT_START: &[u8] = br#"{"version":"#;

/// Raw lists of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCatalog {
    /// Results of `tools/list`, one per page.
    pub tools: Vec<SharedJson>,
    /// Results of `prompts/list`.
    pub prompts: Vec<SharedJson>,
    /// Results of `resources/list`.
    pub resources: Vec<SharedJson>,
    /// Results of `resources/templates/list`.
    pub templates: Vec<SharedJson>,
    /// The server's `instructions`.
    pub instructions: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Persisted<'a> {
    version: u32,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow)]
    prompts: Vec<&'a RawValue>,
    #[serde(borrow)]
    resources: Vec<&'a RawValue>,
    #[serde(borrow)]
    templates: Vec<&'a RawValue>,
    instructions: Option<String>,
}

impl ServerCatalog {
    /// Returns the stored form: a single page, sharing its buffer, or [`to_bytes`](Self::to_bytes).
    pub fn to_record(&self) -> Bytes {
        match self.only_page() {
            Some(page) if is_bare(page.as_bytes()) => page.to_shared_bytes(),
            _ => Bytes::from(self.to_bytes()),
        }
    }

    /// Returns the object format.
    pub fn to_bytes(&self) -> Vec<u8> {
        fn raw(pages: &[SharedJson]) -> Vec<&RawValue> {
            pages.iter().map(SharedJson::raw).collect()
        }
        let persisted = Persisted {
            version: VERSION,
            tools: raw(&self.tools),
            prompts: raw(&self.prompts),
            resources: raw(&self.resources),
            templates: raw(&self.templates),
            instructions: self.instructions.clone(),
        };
        // Serializing raw values and strings cannot fail.
        serde_json::to_vec(&persisted).unwrap_or_default()
    }

    /// Decodes a record; `None` unless [`to_record`](Self::to_record) or [`to_bytes`](Self::to_bytes) of this version
    /// wrote it.
    ///
    /// The pages share the buffer. Tools built from them have [`Provenance::Persisted`](super::Provenance).
    pub fn from_bytes(bytes: &Bytes) -> Option<Self> {
        if is_bare(bytes) {
            let page: &RawValue = serde_json::from_slice(bytes).ok()?;
            return Some(Self {
                tools: vec![SharedJson::part_of(bytes, page)],
                ..Self::default()
            });
        }
        let persisted: Persisted<'_> = serde_json::from_slice(bytes).ok()?;
        if persisted.version != VERSION {
            return None;
        }
        let pages = |raw: Vec<&RawValue>| {
            raw.into_iter()
                .map(|page| SharedJson::part_of(bytes, page))
                .collect()
        };
        Some(Self {
            tools: pages(persisted.tools),
            prompts: pages(persisted.prompts),
            resources: pages(persisted.resources),
            templates: pages(persisted.templates),
            instructions: persisted.instructions,
        })
    }

    /// Returns the single page of tools, if there is nothing else.
    fn only_page(&self) -> Option<&SharedJson> {
        let others = [&self.prompts, &self.resources, &self.templates];
        match self.tools.as_slice() {
            [page] if self.instructions.is_none() && others.iter().all(|list| list.is_empty()) => {
                Some(page)
            }
            _ => None,
        }
    }
}

/// Whether the bytes are a bare page.
fn is_bare(bytes: &[u8]) -> bool {
    bytes.starts_with(br#"{""#) && !bytes.starts_with(OBJECT_START)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a catalogue of these pages survives a round trip, and whether its record is the first page itself.
    #[track_caller]
    fn check(pages: &[&str], instructions: Option<&str>, is_page: bool) {
        let page = |text: &&str| switchboard_protocol::trusted(text).map(SharedJson::from);
        let lists = ServerCatalog {
            tools: pages.iter().filter_map(page).collect(),
            instructions: instructions.map(str::to_owned),
            ..ServerCatalog::default()
        };
        let record = lists.to_record();
        let is_shared = lists
            .tools
            .first()
            .is_some_and(|page| page.as_bytes().as_ptr() == record.as_ptr());
        assert_eq!(is_shared, is_page, "{pages:?}");
        assert_eq!(ServerCatalog::from_bytes(&record), Some(lists));
    }

    #[test]
    fn one_page_is_kept_without_a_copy_unless_it_could_be_misread() {
        check(&[r#"{"tools":[]}"#], None, true);
        check(&[r#"{"versions":1,"tools":[]}"#], None, true);
        check(&[r#"{"tools":[]}"#], Some("Ask first."), false);
        check(&[r#"{"tools":[]}"#, r#"{"tools":[]}"#], None, false);
        check(&[], None, false);
        check(&[r#"{ "tools":[]}"#], None, false);
        check(&["null"], None, false);
        check(&["{}"], None, false);
        // A page forged to be read as the object format.
        let forged = r#"{"version":1,"tools":[],"prompts":[],"resources":[],"templates":[],"instructions":"x"}"#;
        check(&[forged], None, false);
    }

    #[test]
    fn half_a_page_is_nothing() {
        for bytes in [r#"{"tools":["#, r#"{"tools":[]}}"#, r#"{""#] {
            assert_eq!(ServerCatalog::from_bytes(&Bytes::from(bytes)), None);
        }
    }
}

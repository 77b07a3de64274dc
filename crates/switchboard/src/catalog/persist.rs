//! Everything one server listed, in a form that can be kept on disk.
//!
//! The form is one JSON object with the raw pages in it, so that reading it back is one pass that checks the syntax and
//! copies nothing. Where there is nothing but one page of tools, which is how most servers list them, the form is that
//! page itself: keeping megabytes costs a reference then. The two cannot be mixed up, because no page is kept bare that
//! begins as the object does. It is a cache: bytes of another version, or that cannot be read, are as good as none.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::SharedJson;

/// Changes whenever older bytes would be misread.
const VERSION: u32 = 1;

/// How the object begins.
const OBJECT_START: &[u8] = br#"{"version":"#;

/// The raw lists of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCatalog {
    /// The results of `tools/list`, page by page.
    pub tools: Vec<SharedJson>,
    /// The results of `prompts/list`.
    pub prompts: Vec<SharedJson>,
    /// The results of `resources/list`.
    pub resources: Vec<SharedJson>,
    /// The results of `resources/templates/list`.
    pub templates: Vec<SharedJson>,
    /// What the server says about itself as a whole.
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
    /// The catalogue as it is kept: a page that is all there is, sharing its buffer, or [`to_bytes`](Self::to_bytes).
    pub fn to_record(&self) -> Bytes {
        match self.only_page() {
            Some(page) if is_bare(page.as_bytes()) => page.to_shared_bytes(),
            _ => Bytes::from(self.to_bytes()),
        }
    }

    /// The catalogue as one object.
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
        // Raw values and texts can always be written.
        serde_json::to_vec(&persisted).unwrap_or_default()
    }

    /// Reads it back; `None` for anything that is not what [`to_record`](Self::to_record) or
    /// [`to_bytes`](Self::to_bytes) of this version wrote.
    ///
    /// The pages share the buffer. Whatever is built from them has [`Provenance::Persisted`](super::Provenance).
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

    /// The page of tools that is all there is.
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

/// Whether bytes are those of a page that is kept as it is.
fn is_bare(bytes: &[u8]) -> bool {
    bytes.starts_with(br#"{""#) && !bytes.starts_with(OBJECT_START)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A catalogue of such pages comes back from its record, which is the first page itself or is not.
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
        // What a server makes up to have more read than it has listed.
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

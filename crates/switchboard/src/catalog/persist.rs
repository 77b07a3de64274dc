//! Everything one server listed, in a form that can be kept on disk.
//!
//! The form is one JSON object with the raw pages in it, so that reading it back is one pass that checks the syntax and
//! copies nothing. It is a cache: bytes of another version, or that cannot be read, are as good as none.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::json::SharedJson;

/// Changes whenever older bytes would be misread.
const VERSION: u32 = 1;

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
    /// The catalogue as bytes.
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

    /// Reads it back; `None` for anything that is not what [`to_bytes`](Self::to_bytes) of this version wrote.
    ///
    /// The pages share the buffer. Whatever is built from them has [`Provenance::Persisted`](super::Provenance).
    pub fn from_bytes(bytes: &Bytes) -> Option<Self> {
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
}

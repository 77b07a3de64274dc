//! The record of one server's pins: the definitions as they were, in the form a catalogue has on disk.
//!
//! On first use the record *is* what the server listed, byte for byte, so that pinning ten thousand tools costs no
//! more than keeping a reference, and an unchanged list is recognised by comparing bytes. Only when something is added
//! or approved is it put together anew. It is read by the same code that reads lists: of two tools with one name the
//! same one counts.

use std::collections::HashSet;

use bytes::Bytes;

use super::Judgement;
use crate::catalog::canonical;
use crate::catalog::{
    CatalogTool, ListLimits, Provenance, Reach, ServerCatalog, ServerTools, ToolRules,
};
use crate::json::SharedJson;
use crate::names::ServerName;

/// What is pinned of one server.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) tools: ServerTools,
    pub(super) instructions: Option<String>,
}

impl Book {
    /// Reads a record; `None` if it is none, or another version's.
    pub(super) fn read(server: &ServerName, record: &Bytes, reach: Reach) -> Option<Self> {
        let catalog = ServerCatalog::from_bytes(record)?;
        // What is pinned does not depend on what the user wants to see.
        let tools = ServerTools::from_pages(
            server,
            &catalog.tools,
            &ToolRules::default(),
            reach,
            Provenance::Persisted,
            ListLimits::default(),
        );
        Some(Self {
            tools,
            instructions: catalog.instructions,
        })
    }

    /// Compares a list with the pins. The second part are the tools that have none.
    pub(super) fn judge<'t>(
        &self,
        listed: &'t ServerTools,
        instructions: Option<&str>,
    ) -> (Judgement, Vec<&'t CatalogTool>) {
        let mut judgement = Judgement {
            instructions_changed: self.instructions.as_deref() != instructions,
            ..Judgement::default()
        };
        let mut added = Vec::new();
        // Both are in the order of names.
        let mut pinned = self.tools.tools().iter().peekable();
        for tool in listed.tools() {
            let name = &tool.reference().tool;
            while pinned.next_if(|pin| pin.reference().tool < *name).is_some() {}
            match pinned.next_if(|pin| pin.reference().tool == *name) {
                None => {
                    judgement.added.push(name.clone());
                    added.push(tool);
                }
                Some(pin) => {
                    let parts = canonical::differences(pin.definition(), tool.definition());
                    if !parts.is_empty() {
                        judgement.changed.push((name.clone(), parts));
                    }
                }
            }
        }
        (judgement, added)
    }

    /// The record with these definitions beside its own, or in their place; `None` if that would be too many.
    pub(super) fn with(&self, tools: &[&CatalogTool]) -> Option<Bytes> {
        let names: HashSet<&str> = tools
            .iter()
            .map(|tool| tool.reference().tool.as_str())
            .collect();
        let pinned = self.tools.tools().iter();
        let kept = pinned.filter(|pin| !names.contains(pin.reference().tool.as_str()));
        let definitions: Vec<&CatalogTool> = kept.chain(tools.iter().copied()).collect();
        if definitions.len() > ListLimits::default().max_tools {
            tracing::warn!("a server has had too many tools for all of them to be pinned");
            return None;
        }
        Some(write(&definitions, self.instructions.clone()))
    }
}

fn write(definitions: &[&CatalogTool], instructions: Option<String>) -> Bytes {
    let mut page = String::from(r#"{"tools":["#);
    for (index, tool) in definitions.iter().enumerate() {
        if index > 0 {
            page.push(',');
        }
        page.push_str(tool.definition().as_str());
    }
    page.push_str("]}");
    let tools = switchboard_protocol::trusted(&page).map(SharedJson::from);
    let catalog = ServerCatalog {
        tools: tools.into_iter().collect(),
        instructions,
        ..ServerCatalog::default()
    };
    Bytes::from(catalog.to_bytes())
}

//! The pin record of one server: its approved definitions, in the on-disk format of a catalog.
//!
//! On first use the record *is* the server's list, byte for byte: pinning ten thousand tools costs one reference, and
//! an unchanged list is recognized by comparing bytes. The record is rebuilt only when a definition is added or
//! approved. The list parser reads it, so duplicate names resolve the same way.

use std::collections::HashSet;

use bytes::Bytes;

use super::{Judgement, rename};
use crate::catalog::canonical;
use crate::catalog::{
    CatalogTool, ListLimits, Provenance, Reach, ServerCatalog, ServerTools, ToolRules,
};
use crate::json::SharedJson;
use crate::names::{ServerName, WireName};

/// The pins of one server.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) tools: ServerTools,
    pub(super) instructions: Option<String>,
}

impl Book {
    /// Decodes a record; `None` if it is invalid or of another version.
    pub(super) fn read(server: &ServerName, record: &Bytes, reach: Reach) -> Option<Self> {
        let catalog = ServerCatalog::from_bytes(record)?;
        // Pins do not depend on the user's tool rules.
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

    /// Compares a list with the pins. Also returns the tools to pin.
    ///
    /// `all` is the list including tools that the user's rules exclude. Those are pinned as well: a name denied today
    /// must be known when its tool reappears under another one.
    pub(super) fn judge<'t>(
        &self,
        listed: &ServerTools,
        all: &'t ServerTools,
        instructions: Option<&str>,
    ) -> (Judgement, Vec<&'t CatalogTool>) {
        let mut judgement = Judgement {
            instructions_changed: self.instructions.as_deref() != instructions,
            ..Judgement::default()
        };
        let mut added = Vec::new();
        // Both are sorted by name.
        let mut pinned = self.tools.tools().iter().peekable();
        for tool in all.tools() {
            let name = &tool.reference().tool;
            while pinned.next_if(|pin| pin.reference().tool < *name).is_some() {}
            match pinned.next_if(|pin| pin.reference().tool == *name) {
                None => added.push(tool),
                Some(pin) => {
                    let parts = canonical::differences(pin.definition(), tool.definition());
                    if !parts.is_empty() && listed.get(name.as_str()).is_some() {
                        judgement.changed.push((name.clone(), parts));
                    }
                }
            }
        }
        let aside = all.aside().iter();
        // A tool that is set aside is still listed.
        let aside: HashSet<&str> = aside.filter_map(|aside| aside.name.as_deref()).collect();
        let is_listed =
            |name: &WireName| all.get(name.as_str()).is_some() || aside.contains(name.as_str());
        judgement.renamed = rename::renamed(&self.tools, &added, is_listed);
        let is_renamed = |name: &WireName| judgement.origin(name).is_some();
        added.retain(|tool| !is_renamed(&tool.reference().tool));
        let offered = added.iter().map(|tool| &tool.reference().tool);
        let offered = offered.filter(|name| listed.get(name.as_str()).is_some());
        judgement.added = offered.cloned().collect();
        (judgement, added)
    }

    /// The record with these definitions added or replaced; `None` if it would exceed the limit.
    pub(super) fn with(&self, tools: &[&CatalogTool]) -> Option<Bytes> {
        let names: HashSet<&str> = tools
            .iter()
            .map(|tool| tool.reference().tool.as_str())
            .collect();
        let pinned = self.tools.tools().iter();
        let kept = pinned.filter(|pin| !names.contains(pin.reference().tool.as_str()));
        let definitions: Vec<&CatalogTool> = kept.chain(tools.iter().copied()).collect();
        if definitions.len() > ListLimits::default().max_tools {
            tracing::warn!("too many tools to pin all of them");
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

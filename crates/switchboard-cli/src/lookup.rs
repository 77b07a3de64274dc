//! Finds a tool by what a user typed: its full name, or its own name if only one server has it.

use switchboard::catalog::{Catalog, CatalogTool, LookupError};

/// Finds a tool by exposed name, `server/tool`, `server.tool`, or the tool's own name if it is unique.
pub(crate) fn tool<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c CatalogTool, LookupError> {
    let error = match catalog.find(name) {
        Err(error @ LookupError::Unknown { .. }) => error,
        found => return found,
    };
    let named: Vec<&CatalogTool> = catalog
        .iter()
        .filter(|tool| tool.reference().tool.as_str() == name)
        .collect();
    match named.as_slice() {
        [tool] => Ok(tool),
        [] => Err(error),
        several => Err(LookupError::Ambiguous {
            name: name.to_owned(),
            candidates: several.iter().map(|tool| tool.exposed().clone()).collect(),
        }),
    }
}

//! Patterns for paths.

use globset::{GlobBuilder, GlobMatcher};

/// A pattern for paths with `/` between their parts: `*` stays within one part, `**` does not.
pub fn pattern(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let glob = GlobBuilder::new(pattern).literal_separator(true).build()?;
    Ok(glob.compile_matcher())
}

/// A pattern that selects files: without a `/` it matches names in every folder.
pub fn filter(text: &str) -> Result<GlobMatcher, globset::Error> {
    if text.contains('/') {
        pattern(text)
    } else {
        pattern(&format!("**/{text}"))
    }
}

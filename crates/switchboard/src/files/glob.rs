//! Glob patterns for paths.

use globset::{GlobBuilder, GlobMatcher};

/// Compiles a pattern for paths with `/` as separator: `*` does not cross separators, `**` does.
pub fn pattern(pattern: &str) -> Result<GlobMatcher, globset::Error> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let glob = GlobBuilder::new(pattern).literal_separator(true).build()?;
    Ok(glob.compile_matcher())
}

/// Compiles a pattern that selects files: without a `/` it matches names in every folder.
pub fn filter(text: &str) -> Result<GlobMatcher, globset::Error> {
    if text.contains('/') {
        pattern(text)
    } else {
        pattern(&format!("**/{text}"))
    }
}

//! The `Glob` tool: finds files by path, most recently modified first.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::internal::files::{self, FileError, IgnoreRules, Listing, Walk};
use switchboard::permissions::SecretPlaces;
use switchboard::service::Cancellation;

use super::files::{resolve, shown};
use super::prepare::{arguments, blocking, definition, limit, output_or_error, remark};
use super::{LocalContext, LocalOutput, LocalTool};
use crate::message::ToolDefinition;

/// Maximum number of listed paths, and of visited files.
const MAX_PATHS: usize = 200;
const MAX_FILES: usize = 500_000;
/// Characters reserved for notes.
const ROOM_FOR_REMARKS: usize = 300;

const DESCRIPTION: &str = "Find files whose path matches a glob pattern, those changed last first, at most 200. Files that git ignores are left out.";

const SCHEMA: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","minLength":1,"description":"Such as **/*.rs or src/{a,b}/*.ts, from path"},"path":{"type":"string","description":"Folder to look in; the workspace when absent"}},"required":["pattern"],"additionalProperties":false}"#;

pub(super) struct Glob;

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
}

impl LocalTool for Glob {
    fn definition(&self) -> ToolDefinition {
        definition("Glob", DESCRIPTION, SCHEMA)
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        raw: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        output_or_error(async move {
            let wanted: Arguments = arguments(raw)?;
            let folder = resolve(wanted.path.as_deref().unwrap_or("."), context)?;
            let (workspace, characters) = (context.workspace.clone(), limit(context));
            let secrets = Arc::clone(&context.secrets);
            let output = blocking(move |cancellation| {
                let found = glob(
                    &wanted.pattern,
                    &folder,
                    &workspace,
                    characters,
                    &secrets,
                    cancellation,
                );
                found.map_or_else(LocalOutput::error, LocalOutput::text)
            })
            .await;
            Ok(output)
        })
        .boxed()
    }
}

fn glob(
    pattern: &str,
    folder: &Path,
    workspace: &Path,
    characters: usize,
    secrets: &SecretPlaces,
    cancellation: &Cancellation,
) -> Result<String, String> {
    check_pattern(pattern)?;
    let matcher = files::pattern(pattern).map_err(|error| error.to_string())?;
    let name = shown(folder, workspace);
    match folder.metadata() {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(format!("{name} is not a folder")),
        Err(error) => return Err(format!("{name}: {error}")),
    }
    let found = list(folder, true, secrets, cancellation, |path| {
        matcher.is_match(path)
    });
    let found = found.map_err(|error| format!("{name}: {error}"))?;
    let mut text = String::new();
    let mut left = characters.saturating_sub(ROOM_FOR_REMARKS);
    let mut listed = 0;
    for path in found.paths.iter().take(MAX_PATHS) {
        let path = shown(path, workspace);
        let length = path.chars().count() + 1;
        if length > left {
            break;
        }
        left -= length;
        text.push_str(&path);
        text.push('\n');
        listed += 1;
    }
    if found.paths.is_empty() {
        remark(&mut text, "no file matches");
    } else if listed < found.paths.len() {
        let more = found.paths.len() - listed;
        remark(
            &mut text,
            &format!("{more} more files match; narrow the pattern"),
        );
    }
    note_left_out(&mut text, &found);
    text.truncate(text.trim_end().len());
    Ok(text)
}

pub(super) fn list(
    start: &Path,
    newest_first: bool,
    secrets: &SecretPlaces,
    cancellation: &Cancellation,
    keep: impl FnMut(&Path) -> bool,
) -> Result<Listing, FileError> {
    // Removes `.` components, which would appear in every path. Symlinks are not resolved.
    let root: PathBuf = start.components().collect();
    let walk = Walk {
        root: &root,
        under: None,
        rules: IgnoreRules::OfRepository,
        newest_first,
        max_files: MAX_FILES,
        secrets,
    };
    walk.list(cancellation, keep)
}

/// Adds a note about skipped files.
pub(super) fn note_left_out(text: &mut String, listing: &Listing) {
    let passed_over = listing.passed_over;
    if passed_over > 0 {
        let note = format!(
            "{passed_over} files skipped: they may contain secrets, and only the user can allow reading them"
        );
        remark(text, &note);
    }
    if listing.is_partial {
        let note = format!("only {MAX_FILES} files were searched; name a folder in path");
        remark(text, &note);
    }
}

/// Rejects a pattern that leaves the folder: permissions check only `path`.
fn check_pattern(pattern: &str) -> Result<(), String> {
    let path = Path::new(pattern);
    let leads_out = path
        .components()
        .any(|part| !matches!(part, Component::Normal(_) | Component::CurDir));
    if leads_out {
        return Err("the pattern leads out of the folder; name the folder in path".to_owned());
    }
    Ok(())
}

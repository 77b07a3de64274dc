//! The tool `Glob`: files by their path, those that were changed last first.

use std::cmp::Reverse;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::internal::find;
use switchboard::internal::find::{IgnoreRules, Walk, Walked};
use switchboard::permissions::SecretPlaces;
use switchboard::service::Cancellation;

use super::files::{resolve, shown};
use super::prepare::{arguments, blocking, definition, limit, or_told, remark};
use super::{LocalContext, LocalOutput, LocalTool};
use crate::message::ToolDefinition;

/// How many paths are listed, and how many files are looked at.
const MAX_PATHS: usize = 200;
pub(super) const MAX_FILES: usize = 500_000;
/// What is left for remarks of ours.
const ROOM_FOR_REMARKS: usize = 300;

const DESCRIPTION: &str = "Find files whose path matches a glob pattern, those changed last first, at most 200. Files that git ignores are left out.";

const SCHEMA: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","minLength":1,"description":"Such as **/*.rs or src/{a,b}/*.ts, from path"},"path":{"type":"string","description":"Folder to look in; the workspace when absent"}},"required":["pattern"],"additionalProperties":false}"#;

/// The tool.
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
        or_told(async move {
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
    let matcher = find::pattern(pattern).map_err(|error| error.to_string())?;
    let folder = check_folder(folder, workspace)?;
    let walk = Walk {
        root: &folder,
        under: None,
        rules: IgnoreRules::OfRepository,
        max_files: MAX_FILES,
    };
    let mut found: Vec<(Reverse<SystemTime>, PathBuf)> = Vec::new();
    let start = folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let mut passed_over = 0_usize;
    let walked = find::walk(&walk, cancellation, |entry| {
        let inner = entry.path().strip_prefix(&folder).unwrap_or(entry.path());
        if matcher.is_match(inner) && secrets.skips(&start.join(inner), &start) {
            passed_over += 1;
        } else if matcher.is_match(inner) {
            let modified = entry
                .metadata()
                .ok()
                .and_then(|metadata| metadata.modified().ok());
            let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
            found.push((Reverse(modified), entry.path().to_owned()));
        }
    });
    if walked == Walked::Cancelled {
        return Err("cancelled".to_owned());
    }
    found.sort();
    let mut text = String::new();
    let mut left = characters.saturating_sub(ROOM_FOR_REMARKS);
    let mut listed = 0;
    for (_, path) in found.iter().take(MAX_PATHS) {
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
    if found.is_empty() {
        remark(&mut text, "no file matches");
    } else if listed < found.len() {
        let more = found.len() - listed;
        remark(
            &mut text,
            &format!("{more} more files match; narrow the pattern"),
        );
    }
    note_passed_over(&mut text, passed_over);
    if walked == Walked::Partly {
        let note = format!("only {MAX_FILES} files were looked at; name a folder in path");
        remark(&mut text, &note);
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// Tells that files were left out because secrets are in them.
pub(super) fn note_passed_over(text: &mut String, count: usize) {
    if count > 0 {
        let note = format!(
            "{count} files passed over: secrets are kept there, and only the user can allow reading them"
        );
        remark(text, &note);
    }
}

/// Refuses a pattern that leads elsewhere: which folder is meant is to be seen in `path`, by permissions too.
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

/// The folder, if it is one.
pub(super) fn check_folder(folder: &Path, workspace: &Path) -> Result<PathBuf, String> {
    let name = shown(folder, workspace);
    let metadata = folder
        .metadata()
        .map_err(|error| format!("{name}: {error}"))?;
    if !metadata.is_dir() {
        return Err(format!("{name} is no folder"));
    }
    // Without `.`, which would stand in every path. Links stay as they were written.
    Ok(folder.components().collect())
}

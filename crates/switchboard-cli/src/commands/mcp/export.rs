//! `switchboard mcp export`: writes the servers to another tool's file.

use std::path::Path;

use serde_json::json;
use switchboard_config::edit::Edit;
use switchboard_config::entry::ServerEntry;
use switchboard_config::foreign::{Exported, Tool, export};
use switchboard_config::format::{self, Format};
use switchboard_config::resolve::Status;
use switchboard_config::scope::Scope;
use switchboard_config::source::SourceFile;
use switchboard_config::text::visible;

use super::import::tool_of_name;
use crate::cli::ExportArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::local_file::Target;
use crate::printer::Printer;
use crate::{report, store};

pub(crate) fn run(arguments: &ExportArguments, context: &Context) -> Outcome {
    let printer = &context.printer;
    let tool = tool_of_name(&arguments.to)?;
    let config = context.load();
    // A server that may not start here must not be passed on to another tool.
    let usable = |status: &Status| matches!(status, Status::Ready | Status::Disabled);
    let servers: Vec<(&str, &ServerEntry)> = config
        .servers
        .iter()
        .filter(|server| usable(&server.status))
        .map(|server| (server.name.as_str(), &server.entry))
        .collect();
    for server in config
        .servers
        .iter()
        .filter(|server| !usable(&server.status))
    {
        let reason = server.status.reason().unwrap_or_default();
        let message = format!(
            "`{}` is skipped: {}",
            visible(&server.name),
            visible(&reason)
        );
        printer.warning(
            message,
            Some("`switchboard mcp list` shows the state of each server"),
        );
    }
    match arguments.output.as_deref() {
        Some(path) if path != Path::new("-") => {
            let path = context.cwd.join(path);
            let exported = merge(tool, &servers, &path, context)?;
            finish(tool, &exported, Some(&path), context)
        }
        _ => {
            let exported = export(tool, &servers, None);
            report::in_passing(&exported.notes, printer);
            // The user asked for the file's content, secrets included.
            let text = exported.to_text();
            if printer.json {
                printer.json(&json!({"tool": tool.name(), "text": text}))?;
            } else {
                Printer::raw(text.as_bytes())?;
            }
            Ok(Exit::Done)
        }
    }
}

fn finish(tool: Tool, exported: &Exported, path: Option<&Path>, context: &Context) -> Outcome {
    let printer = &context.printer;
    report::in_passing(&exported.notes, printer);
    let count = exported.entries.len();
    let servers = if count == 1 { "server" } else { "servers" };
    let shown = path
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    printer.note(format!(
        "{count} {servers} written for {tool}: {}",
        visible(&shown)
    ));
    if printer.json {
        let names: Vec<&str> = exported
            .entries
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        printer.json(&json!({"tool": tool.name(), "file": shown, "servers": names}))?;
    }
    Ok(Exit::Done)
}

/// Adds the servers to a file and preserves its other content.
fn merge(
    tool: Tool,
    servers: &[(&str, &ServerEntry)],
    path: &Path,
    context: &Context,
) -> Result<Exported, Failure> {
    // The tool determines the format, whatever the file's name.
    let format = export(tool, &[], None).format;
    let target = Target {
        path: path.to_owned(),
        format,
        scope: Scope::User,
    };
    let mut outcome = None;
    store::edit(&target, context, |text| {
        let file = SourceFile::new(path, Scope::User, text);
        let mut findings = Vec::new();
        let beside = format::parse(&file, format, &mut findings);
        let exported = export(
            tool,
            servers,
            beside.as_ref().filter(|_| !text.trim().is_empty()),
        );
        let new_text = if text.trim().is_empty() {
            exported.to_text()
        } else {
            merged_text(text, &exported, &target)?
        };
        outcome = Some(exported);
        Ok(new_text)
    })?;
    outcome.ok_or_else(|| Failure::failed("nothing was exported"))
}

fn merged_text(text: &str, exported: &Exported, target: &Target) -> Result<String, Failure> {
    if exported.is_list || exported.format == Format::Yaml {
        let message = format!(
            "{} exists, and this command cannot edit its format",
            target.shown()
        );
        return Err(Failure::failed(message)
            .hint("export to a new file with --output, or to standard output, and merge by hand"));
    }
    let mut text = text.to_owned();
    for (keys, value) in &exported.extra {
        text = store::apply(
            &text,
            target,
            &Edit::Set {
                path: keys,
                value: value.clone(),
            },
        )?;
    }
    for (name, value) in &exported.entries {
        let mut path: Vec<&str> = exported.container.to_vec();
        path.push(name);
        text = store::apply(
            &text,
            target,
            &Edit::Set {
                path: &path,
                value: value.clone(),
            },
        )?;
    }
    Ok(text)
}

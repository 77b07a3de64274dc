//! `switchboard mcp import`: takes over the servers of other tools.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use switchboard_config::confusable;
use switchboard_config::files::{Disk, Files as _};
use switchboard_config::foreign::{
    ForeignFile, Imported, ImportedServer, Places, Platform, Reach, Tool, import,
};
use switchboard_config::format::Format;
use switchboard_config::scope::Scope;
use switchboard_config::source::SourceFile;
use switchboard_config::text::visible;

use super::insert::{self, Existing};
use crate::cli::ImportArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::local_file::{Target, seat};
use crate::printer::{Table, style};
use crate::{report, view};

/// What became of one server.
struct Fate<'i> {
    tool: Tool,
    server: &'i ImportedServer,
    word: &'static str,
    reason: Option<String>,
}

pub(crate) fn run(arguments: &ImportArguments, context: &Context) -> Outcome {
    let printer = &context.printer;
    let tools = match &arguments.from {
        Some(name) => vec![tool_of_name(name)?],
        None => Tool::ALL.to_vec(),
    };
    let decisions = context.decisions();
    context.warn_of_findings(&decisions);
    let mut found: Vec<(Tool, PathBuf, Imported)> = Vec::new();
    for tool in tools {
        for (path, imported) in files_of(tool, context) {
            found.push((tool, path, imported));
        }
    }
    for (_, _, imported) in &found {
        report::in_passing(&imported.notes, printer);
    }
    let target = Target::of_scope(arguments.scope, context);
    let looked = context.load_files(decisions).looked;
    let ours: HashSet<PathBuf> = looked.into_iter().map(|looked| looked.path).collect();
    let mut fates: Vec<Fate<'_>> = Vec::new();
    for (tool, _, imported) in &found {
        for server in &imported.servers {
            let fate = take_over(server, &target, arguments.dry_run, &fates, &ours, context)?;
            fates.push(Fate {
                tool: *tool,
                server,
                word: fate.0,
                reason: fate.1,
            });
        }
    }
    print(&fates, &found, &target, arguments.dry_run, context)?;
    Ok(Exit::Done)
}

/// Adds one server, unless its name is taken.
fn take_over(
    server: &ImportedServer,
    target: &Target,
    dry_run: bool,
    earlier: &[Fate<'_>],
    ours: &HashSet<PathBuf>,
    context: &Context,
) -> Result<(&'static str, Option<String>), Failure> {
    let same_name = |fate: &&Fate<'_>| fate.reason.is_none() && fate.server.name == server.name;
    if let Some(first) = earlier.iter().find(same_name) {
        let reason = if first.server.entry == server.entry {
            format!("the same as that of {}", first.tool)
        } else {
            format!("{} has a different server of that name", first.tool)
        };
        return Ok(("skipped", Some(reason)));
    }
    if ours.contains(server.origin.path()) {
        return Ok(("skipped", Some("read from there already".to_owned())));
    }
    // A repository must not get its servers into every other project by the back door.
    let of_project = is_of_project(server, context);
    if of_project && target.scope == Scope::User {
        let reason = "a file of the project; take it over with --scope local, then approve it";
        return Ok(("skipped", Some(reason.to_owned())));
    }
    let text = match Disk.read(&target.path) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => String::new(),
        Err(error) => {
            return Err(
                Failure::failed(format!("{} cannot be read", target.shown())).because(error),
            );
        }
    };
    if seat(&text, target, &server.name)?.keys.is_some() {
        return Ok(("skipped", Some("the name is taken".to_owned())));
    }
    if let Err(failure) = insert::check(&server.name, &server.entry) {
        return Ok(("skipped", Some(failure.message)));
    }
    let key = confusable::server_key(&server.name);
    let mut added = earlier.iter().filter(|fate| fate.reason.is_none());
    let is_alike = |fate: &&Fate<'_>| confusable::server_key(&fate.server.name) == key;
    if let Some(other) = added.find(is_alike) {
        let reason = format!(
            "its name can be mistaken for `{}`",
            visible(&other.server.name)
        );
        return Ok(("skipped", Some(reason)));
    }
    if let Some((reason, _)) = insert::look_alike(&server.name, target.scope, context) {
        return Ok(("skipped", Some(reason)));
    }
    if dry_run {
        return Ok(("would add", None));
    }
    insert::insert(
        &server.name,
        &server.entry,
        target,
        Existing::Refuse,
        context,
    )?;
    if target.scope != Scope::User && !of_project {
        insert::settle(&server.name, &server.entry, target, context)?;
    }
    Ok(("added", None))
}

fn print(
    fates: &[Fate<'_>],
    found: &[(Tool, PathBuf, Imported)],
    target: &Target,
    dry_run: bool,
    context: &Context,
) -> Result<(), Failure> {
    let printer = &context.printer;
    let home = &context.environment.home;
    if printer.json {
        let rows = fates.iter().map(|fate| {
            json!({
                "name": fate.server.name,
                "tool": fate.tool.name(),
                "source": view::place_json(&fate.server.origin),
                "result": fate.word,
                "reason": fate.reason,
                "entry": view::entry_json(&fate.server.entry),
            })
        });
        printer.json(&rows.collect())?;
    } else {
        let mut table = Table::with_heading(&["RESULT", "NAME", "TOOL", "SOURCE", "TARGET"]);
        for fate in fates {
            let color = if fate.reason.is_none() {
                style::GOOD
            } else {
                style::QUIET
            };
            let last = match &fate.reason {
                Some(reason) => reason.clone(),
                None => view::target(&fate.server.entry),
            };
            table.row([
                (color, fate.word),
                (style::NAME, &fate.server.name),
                (anstyle::Style::new(), fate.tool.title()),
                (style::QUIET, &view::place(&fate.server.origin, home)),
                (anstyle::Style::new(), &last),
            ]);
        }
        if !fates.is_empty() {
            printer.data(table)?;
        }
    }
    if fates.is_empty() {
        for (_, path, _) in found {
            printer.detail(format!("no servers in {}", view::path(path, home)));
        }
        printer.note("no servers of other tools were found");
        return Ok(());
    }
    let count = fates.iter().filter(|fate| fate.reason.is_none()).count();
    let servers = if count == 1 { "server" } else { "servers" };
    let verb = if dry_run { "would be added" } else { "added" };
    printer.note(format!(
        "{count} {servers} {verb} in {} scope: {}",
        target.scope,
        target.shown()
    ));
    Ok(())
}

/// Whether the project's files, and not the user's, have the server.
fn is_of_project(server: &ImportedServer, context: &Context) -> bool {
    context.project != context.environment.home
        && server.origin.path().starts_with(&context.project)
}

/// The tool of a name, or what names there are.
pub(super) fn tool_of_name(name: &str) -> Result<Tool, Failure> {
    Tool::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
        Failure::usage(format!("there is no tool `{}`", visible(name)))
            .hint(format!("use one of {}", names.join(", ")))
    })
}

/// The files of a tool that exist, read.
fn files_of(tool: Tool, context: &Context) -> Vec<(PathBuf, Imported)> {
    let environment = &context.environment;
    let folders = ["XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "CODEX_HOME"]
        .map(|name| environment.folder_of(name));
    let [config_home, app_data, local_app_data, codex_home] = &folders;
    let places = Places {
        home: &environment.home,
        project: &context.project,
        config_home: config_home.as_deref(),
        app_data: app_data.as_deref(),
        local_app_data: local_app_data.as_deref(),
        codex_home: codex_home.as_deref(),
        platform: if cfg!(target_os = "macos") {
            Platform::MacOs
        } else if cfg!(windows) {
            Platform::Windows
        } else {
            Platform::Linux
        },
    };
    let mut read = Vec::new();
    for file in tool.files(&places) {
        for path in paths(&file) {
            let imported = read_file(tool, &path, &file, context);
            read.extend(imported.map(|imported| (path, imported)));
        }
    }
    read
}

/// The file itself, or the files of a folder.
fn paths(file: &ForeignFile) -> Vec<PathBuf> {
    if !file.is_folder {
        return vec![file.path.clone()];
    }
    let entries = std::fs::read_dir(&file.path)
        .into_iter()
        .flatten()
        .flatten();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| Format::of_path(path) == Some(file.format))
        .collect();
    paths.sort();
    paths
}

fn read_file(tool: Tool, path: &Path, file: &ForeignFile, context: &Context) -> Option<Imported> {
    let warn = |reason: &str| {
        let shown = view::path(path, &context.environment.home);
        let hint = "mend or remove the file, or name another tool with --from";
        context.printer.warning(
            format!("{shown} was not read: {}", visible(reason)),
            Some(hint),
        );
    };
    let bytes = match Disk.read(path) {
        Ok(bytes) => bytes?,
        Err(error) => {
            warn(&error.to_string());
            return None;
        }
    };
    let Ok(text) = String::from_utf8(bytes) else {
        warn("it is not UTF-8 text");
        return None;
    };
    let scope = match file.reach {
        Reach::User => Scope::User,
        Reach::Project => Scope::Project,
        Reach::Local => Scope::Local,
    };
    let source: Arc<SourceFile> = SourceFile::new(path, scope, text);
    Some(import(tool, &source, file.format, &context.project))
}

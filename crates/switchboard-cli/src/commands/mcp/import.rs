//! `switchboard mcp import`: imports servers from other tools.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use switchboard_config::confusable;
use switchboard_config::entry::ServerEntry;
use switchboard_config::files::{Disk, Files as _};
use switchboard_config::foreign::{
    ForeignFile, Imported, ImportedServer, Places, Platform, Reach, Tool, import,
};
use switchboard_config::format::Format;
use switchboard_config::scope::Scope;
use switchboard_config::source::SourceFile;
use switchboard_config::text::visible;

use super::insert::{self, Existing};
use crate::cli::{ImportArguments, WritableScope};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::local_file::{Target, locate_entry};
use crate::printer::{Column, Table, style};
use crate::startup::counted;
use crate::{report, view};

/// The outcome for one server.
struct ImportResult<'i> {
    tool: Tool,
    server: &'i ImportedServer,
    target: Target,
    outcome: ImportOutcome,
}

/// Whether a server was imported, and how.
struct ImportOutcome {
    word: &'static str,
    /// Why it was skipped.
    reason: Option<String>,
    /// The name it is imported under.
    name: String,
    /// The keys of its entry that hold secrets in plain text.
    literals: Vec<String>,
    /// The variables that must be set for it.
    variables: Vec<String>,
}

impl ImportOutcome {
    fn skipped(name: &str, reason: impl Into<String>) -> Self {
        Self {
            word: "skipped",
            reason: Some(reason.into()),
            name: name.to_owned(),
            literals: Vec::new(),
            variables: Vec::new(),
        }
    }
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
    let looked = context.load_files(decisions).looked;
    let ours: HashSet<PathBuf> = looked.into_iter().map(|looked| looked.path).collect();
    let mut results: Vec<ImportResult<'_>> = Vec::new();
    for (tool, _, imported) in &found {
        for server in &imported.servers {
            // A server of one project stays in that project, unless the user chooses a scope.
            let own = match server.scope {
                Scope::Local => WritableScope::Local,
                _ => WritableScope::User,
            };
            let target = Target::of_scope(arguments.scope.unwrap_or(own), context);
            let outcome = import_one(server, &target, arguments, &results, &ours, context)?;
            results.push(ImportResult {
                tool: *tool,
                server,
                target,
                outcome,
            });
        }
    }
    print(&results, &found, arguments.dry_run, context)?;
    warn_of_secrets(&results, context);
    Ok(Exit::Done)
}

/// Imports one server, unless its name is taken.
fn import_one(
    server: &ImportedServer,
    target: &Target,
    arguments: &ImportArguments,
    earlier: &[ImportResult<'_>],
    ours: &HashSet<PathBuf>,
    context: &Context,
) -> Result<ImportOutcome, Failure> {
    let name = &server.name;
    let into_same = |result: &&ImportResult<'_>| {
        result.outcome.reason.is_none() && result.target.path == target.path
    };
    let first = earlier
        .iter()
        .filter(into_same)
        .find(|result| result.server.name == *name);
    if let Some(first) = first {
        if first.server.entry == server.entry {
            let reason = format!("the same as the one from {}", first.tool);
            return Ok(ImportOutcome::skipped(name, reason));
        }
        if !arguments.rename {
            let reason = format!(
                "{} has a different server of that name; --rename adds it under another",
                first.tool
            );
            return Ok(ImportOutcome::skipped(name, reason));
        }
    }
    if ours.contains(server.origin.path()) {
        return Ok(ImportOutcome::skipped(name, "that file is already read"));
    }
    // A repository must not smuggle its servers into every other project.
    let of_project = is_of_project(server, context);
    if of_project && target.scope == Scope::User {
        let reason = "a file of the project; import it with --scope local, then approve it";
        return Ok(ImportOutcome::skipped(name, reason));
    }
    let text = match Disk.read(&target.path) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(None) => String::new(),
        Err(error) => {
            return Err(Failure::failed(format!("cannot read {}", target.shown())).because(error));
        }
    };
    let (entry, variables) = if arguments.secrets_as_variables {
        server.entry.with_variables(name)
    } else {
        (server.entry.clone(), Vec::new())
    };
    let in_dry_run = |name: &str| {
        let mut same_file = earlier.iter().filter(into_same);
        same_file.any(|result| result.outcome.name == name)
    };
    let mut free = None;
    for number in 1..MAX_NAMES {
        let candidate = match number {
            1 => name.clone(),
            _ => format!("{name}-{number}"),
        };
        if locate_entry(&text, target, &candidate)?.keys.is_none() && !in_dry_run(&candidate) {
            free = Some(candidate);
            break;
        }
        if is_there(&candidate, &entry, target, context) {
            return Ok(ImportOutcome::skipped(name, "already present"));
        }
        if !arguments.rename {
            let reason = "the name is taken; --rename adds it under another";
            return Ok(ImportOutcome::skipped(name, reason));
        }
    }
    let Some(name) = free else {
        return Ok(ImportOutcome::skipped(
            name,
            "too many servers have that name",
        ));
    };
    if let Err(failure) = insert::check(&name, &entry) {
        return Ok(ImportOutcome::skipped(&name, failure.message));
    }
    let key = confusable::server_key(&name);
    let mut added = earlier
        .iter()
        .filter(|result| result.outcome.reason.is_none());
    let is_alike = |result: &&ImportResult<'_>| confusable::server_key(&result.outcome.name) == key;
    if let Some(other) = added.find(is_alike) {
        let other = visible(&other.outcome.name);
        let reason = format!("its name can be mistaken for `{other}`");
        return Ok(ImportOutcome::skipped(&name, reason));
    }
    if let Some((reason, _)) = insert::look_alike(&name, target.scope, context) {
        return Ok(ImportOutcome::skipped(&name, reason));
    }
    let outcome = |word| ImportOutcome {
        word,
        reason: None,
        name: name.clone(),
        literals: entry.literal_secrets(),
        variables: variables.clone(),
    };
    if arguments.dry_run {
        return Ok(outcome("would add"));
    }
    insert::insert(&name, &entry, target, Existing::Refuse, context)?;
    if target.scope != Scope::User && !of_project {
        insert::settle(&name, &entry, target, context)?;
    }
    Ok(outcome("added"))
}

/// Names tried for one server.
const MAX_NAMES: usize = 100;

/// Whether the file has an identical entry under that name.
fn is_there(name: &str, entry: &ServerEntry, target: &Target, context: &Context) -> bool {
    let config = context.load_files(context.decisions());
    let standing = config
        .servers
        .iter()
        .map(|server| (&server.name, &server.origin, &server.entry));
    let lost = config
        .shadowed
        .iter()
        .map(|lost| (&lost.name, &lost.origin, &lost.entry));
    standing
        .chain(lost)
        .any(|(other, origin, read)| other == name && origin.path() == target.path && read == entry)
}

/// Reports files that now contain secrets in plain text, and variables that must be set.
fn warn_of_secrets(results: &[ImportResult<'_>], context: &Context) {
    let printer = &context.printer;
    for result in results {
        let ImportOutcome {
            name,
            literals,
            variables,
            ..
        } = &result.outcome;
        let shown = visible(name);
        if !variables.is_empty() {
            let hint = format!(
                "copy the values from {}",
                view::path(result.server.origin.path(), &context.environment.home)
            );
            printer.warning(
                format!(
                    "`{shown}` needs {}: set them before you use it",
                    visible(&variables.join(", "))
                ),
                Some(&hint),
            );
        }
        if literals.is_empty() {
            continue;
        }
        let is_remote = result.server.entry.url.is_some();
        let login = if is_remote {
            format!(", or remove them and log in with `switchboard mcp login {shown}`")
        } else {
            String::new()
        };
        let hint = format!(
            "import with --secrets-as-variables, or write ${{VARIABLE}} in their place{login}"
        );
        printer.warning(
            format!(
                "`{shown}` has secrets in plain text in {}: {}",
                result.target.shown(),
                visible(&literals.join(", "))
            ),
            Some(&hint),
        );
    }
}

fn print(
    results: &[ImportResult<'_>],
    found: &[(Tool, PathBuf, Imported)],
    dry_run: bool,
    context: &Context,
) -> Result<(), Failure> {
    let printer = &context.printer;
    let home = &context.environment.home;
    if printer.json {
        let rows = results.iter().map(|result| {
            json!({
                "name": result.server.name,
                "added_as": result.outcome.reason.is_none().then_some(&result.outcome.name),
                "scope": result.target.scope.name(),
                "tool": result.tool.name(),
                "source": view::place_json(&result.server.origin),
                "result": result.outcome.word,
                "reason": result.outcome.reason,
                "plain_secrets": result.outcome.literals,
                "variables": result.outcome.variables,
                "entry": view::entry_json(&result.server.entry),
            })
        });
        printer.json(&rows.collect())?;
    } else {
        let mut table = Table::new(&[
            Column::new("RESULT"),
            Column::new("NAME"),
            Column::new("TOOL").dropped(2),
            Column::path("SOURCE").dropped(1),
            Column::path("TARGET"),
        ]);
        for result in results {
            let outcome = &result.outcome;
            let color = if outcome.reason.is_none() {
                style::GOOD
            } else {
                style::QUIET
            };
            let last = match &outcome.reason {
                Some(reason) => reason.clone(),
                None => view::target(&result.server.entry),
            };
            table.row([
                (color, outcome.word),
                (style::NAME, &outcome.name),
                (anstyle::Style::new(), result.tool.title()),
                (style::QUIET, &view::place(&result.server.origin, home)),
                (anstyle::Style::new(), &last),
            ]);
        }
        if !results.is_empty() {
            printer.table(&table)?;
        }
    }
    if results.is_empty() {
        for (_, path, _) in found {
            printer.detail(format!("no servers in {}", view::path(path, home)));
        }
        printer.note("no servers of other tools found");
        return Ok(());
    }
    let verb = if dry_run { "would be added" } else { "added" };
    let mut targets: Vec<&Target> = Vec::new();
    for result in results {
        if !targets
            .iter()
            .any(|target| target.path == result.target.path)
        {
            targets.push(&result.target);
        }
    }
    for target in targets {
        let is_into = |result: &&ImportResult<'_>| {
            result.outcome.reason.is_none() && result.target.path == target.path
        };
        let count = results.iter().filter(is_into).count();
        let servers = if count == 1 { "server" } else { "servers" };
        printer.note(format!(
            "{count} {servers} {verb} in {} scope: {}",
            target.scope,
            target.shown()
        ));
    }
    Ok(())
}

/// Whether the server comes from the project's files rather than the user's.
fn is_of_project(server: &ImportedServer, context: &Context) -> bool {
    context.project != context.environment.home
        && server.origin.path().starts_with(&context.project)
}

/// The tool of a name; the failure lists the valid names.
pub(crate) fn tool_of_name(name: &str) -> Result<Tool, Failure> {
    Tool::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
        Failure::usage(format!("unknown tool `{}`", visible(name)))
            .hint(format!("use one of {}", names.join(", ")))
    })
}

/// Tells a user without servers that those of other tools can be imported.
pub(crate) fn suggest(context: &Context) {
    let mut names = BTreeSet::new();
    let mut tools = Vec::new();
    for tool in Tool::ALL {
        let files = files_of(tool, context);
        let servers = files.iter().flat_map(|(_, imported)| &imported.servers);
        let before = names.len();
        names.extend(servers.map(|server| server.name.clone()));
        if names.len() > before {
            tools.push(tool.title());
        }
    }
    if names.is_empty() {
        return;
    }
    let count = counted(names.len(), "server");
    let tools = tools.join(", ");
    context.printer.note(format!(
        "{count} of {tools} can be imported: `switchboard mcp import --dry-run` shows them"
    ));
}

/// Reads the existing files of a tool.
fn files_of(tool: Tool, context: &Context) -> Vec<(PathBuf, Imported)> {
    let files = with_places(context, |places| tool.files(places));
    let mut read = Vec::new();
    for file in files {
        for path in paths(&file) {
            let imported = read_file(tool, &path, &file, context);
            read.extend(imported.map(|imported| (path, imported)));
        }
    }
    read
}

/// Calls a function with the folders of other tools.
pub(crate) fn with_places<T>(context: &Context, function: impl FnOnce(&Places<'_>) -> T) -> T {
    let environment = &context.environment;
    let folders = ["XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "CODEX_HOME"]
        .map(|name| environment.folder_of(name));
    let [config_home, app_data, local_app_data, codex_home] = &folders;
    function(&Places {
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
    })
}

/// The file itself, or the files in a folder.
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
        let hint = "fix or remove the file, or name another tool with --from";
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
        warn("it is not UTF-8");
        return None;
    };
    let scope = match file.reach {
        Reach::User => Scope::User,
        Reach::Project => Scope::Project,
        Reach::Local => Scope::Local,
    };
    let source: Arc<SourceFile> = SourceFile::new(path, scope, text);
    let mut imported = import(tool, &source, file.format, &context.project);
    if let Ok(program) = std::env::current_exe() {
        imported.set_program_aside(&program);
    }
    Some(imported)
}

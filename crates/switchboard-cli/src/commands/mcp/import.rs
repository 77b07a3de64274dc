//! `switchboard mcp import`: takes over the servers of other tools.

use std::collections::HashSet;
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
use crate::local_file::{Target, seat};
use crate::printer::{Table, style};
use crate::{report, view};

/// What became of one server.
struct Fate<'i> {
    tool: Tool,
    server: &'i ImportedServer,
    /// The file it goes to.
    target: Target,
    taken: Taken,
}

/// Whether a server was taken over, and how.
struct Taken {
    word: &'static str,
    /// Why it was not.
    reason: Option<String>,
    /// The name it has here.
    name: String,
    /// Where its entry has secrets in plain text.
    literals: Vec<String>,
    /// Variables that have to be set for it.
    variables: Vec<String>,
}

impl Taken {
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
    let mut fates: Vec<Fate<'_>> = Vec::new();
    for (tool, _, imported) in &found {
        for server in &imported.servers {
            // What was for one project stays for that project, unless the user says otherwise.
            let own = match server.scope {
                Scope::Local => WritableScope::Local,
                _ => WritableScope::User,
            };
            let target = Target::of_scope(arguments.scope.unwrap_or(own), context);
            let taken = take_over(server, &target, arguments, &fates, &ours, context)?;
            fates.push(Fate {
                tool: *tool,
                server,
                target,
                taken,
            });
        }
    }
    print(&fates, &found, arguments.dry_run, context)?;
    tell_of_secrets(&fates, context);
    Ok(Exit::Done)
}

/// Adds one server, unless its name is taken.
fn take_over(
    server: &ImportedServer,
    target: &Target,
    arguments: &ImportArguments,
    earlier: &[Fate<'_>],
    ours: &HashSet<PathBuf>,
    context: &Context,
) -> Result<Taken, Failure> {
    let name = &server.name;
    let into_same =
        |fate: &&Fate<'_>| fate.taken.reason.is_none() && fate.target.path == target.path;
    let first = earlier
        .iter()
        .filter(into_same)
        .find(|fate| fate.server.name == *name);
    if let Some(first) = first {
        if first.server.entry == server.entry {
            let reason = format!("the same as that of {}", first.tool);
            return Ok(Taken::skipped(name, reason));
        }
        if !arguments.rename {
            let reason = format!(
                "{} has a different server of that name; --rename adds it under another",
                first.tool
            );
            return Ok(Taken::skipped(name, reason));
        }
    }
    if ours.contains(server.origin.path()) {
        return Ok(Taken::skipped(name, "read from there already"));
    }
    // A repository must not get its servers into every other project by the back door.
    let of_project = is_of_project(server, context);
    if of_project && target.scope == Scope::User {
        let reason = "a file of the project; take it over with --scope local, then approve it";
        return Ok(Taken::skipped(name, reason));
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
    let (entry, variables) = if arguments.secrets_as_variables {
        server.entry.with_variables(name)
    } else {
        (server.entry.clone(), Vec::new())
    };
    let in_dry_run = |name: &str| {
        let mut taken = earlier.iter().filter(into_same);
        taken.any(|fate| fate.taken.name == name)
    };
    let mut free = None;
    for number in 1..MOST_NAMES {
        let candidate = match number {
            1 => name.clone(),
            _ => format!("{name}-{number}"),
        };
        if seat(&text, target, &candidate)?.keys.is_none() && !in_dry_run(&candidate) {
            free = Some(candidate);
            break;
        }
        if is_there(&candidate, &entry, target, context) {
            return Ok(Taken::skipped(name, "it is there already"));
        }
        if !arguments.rename {
            let reason = "the name is taken; --rename adds it under another";
            return Ok(Taken::skipped(name, reason));
        }
    }
    let Some(name) = free else {
        return Ok(Taken::skipped(name, "the name is taken many times over"));
    };
    if let Err(failure) = insert::check(&name, &entry) {
        return Ok(Taken::skipped(&name, failure.message));
    }
    let key = confusable::server_key(&name);
    let mut added = earlier.iter().filter(|fate| fate.taken.reason.is_none());
    let is_alike = |fate: &&Fate<'_>| confusable::server_key(&fate.taken.name) == key;
    if let Some(other) = added.find(is_alike) {
        let other = visible(&other.taken.name);
        let reason = format!("its name can be mistaken for `{other}`");
        return Ok(Taken::skipped(&name, reason));
    }
    if let Some((reason, _)) = insert::look_alike(&name, target.scope, context) {
        return Ok(Taken::skipped(&name, reason));
    }
    let taken = |word| Taken {
        word,
        reason: None,
        name: name.clone(),
        literals: entry.literal_secrets(),
        variables: variables.clone(),
    };
    if arguments.dry_run {
        return Ok(taken("would add"));
    }
    insert::insert(&name, &entry, target, Existing::Refuse, context)?;
    if target.scope != Scope::User && !of_project {
        insert::settle(&name, &entry, target, context)?;
    }
    Ok(taken("added"))
}

/// So many names are tried for one server.
const MOST_NAMES: usize = 100;

/// Whether the file has this very entry under the name.
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

/// Says which files have got secrets in plain text, and which variables have to be set.
fn tell_of_secrets(fates: &[Fate<'_>], context: &Context) {
    let printer = &context.printer;
    for fate in fates {
        let Taken {
            name,
            literals,
            variables,
            ..
        } = &fate.taken;
        let shown = visible(name);
        if !variables.is_empty() {
            let hint = format!(
                "take the values from {}",
                view::path(fate.server.origin.path(), &context.environment.home)
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
        let is_remote = fate.server.entry.url.is_some();
        let login = if is_remote {
            format!(
                ", or remove them and keep a login in the vault with `switchboard mcp login {shown}`"
            )
        } else {
            String::new()
        };
        let hint = format!(
            "import with --secrets-as-variables, or write ${{VARIABLE}} in their place{login}"
        );
        printer.warning(
            format!(
                "`{shown}` has secrets in plain text in {}: {}",
                fate.target.shown(),
                visible(&literals.join(", "))
            ),
            Some(&hint),
        );
    }
}

fn print(
    fates: &[Fate<'_>],
    found: &[(Tool, PathBuf, Imported)],
    dry_run: bool,
    context: &Context,
) -> Result<(), Failure> {
    let printer = &context.printer;
    let home = &context.environment.home;
    if printer.json {
        let rows = fates.iter().map(|fate| {
            json!({
                "name": fate.server.name,
                "added_as": fate.taken.reason.is_none().then_some(&fate.taken.name),
                "scope": fate.target.scope.name(),
                "tool": fate.tool.name(),
                "source": view::place_json(&fate.server.origin),
                "result": fate.taken.word,
                "reason": fate.taken.reason,
                "plain_secrets": fate.taken.literals,
                "variables": fate.taken.variables,
                "entry": view::entry_json(&fate.server.entry),
            })
        });
        printer.json(&rows.collect())?;
    } else {
        let mut table = Table::with_heading(&["RESULT", "NAME", "TOOL", "SOURCE", "TARGET"]);
        for fate in fates {
            let taken = &fate.taken;
            let color = if taken.reason.is_none() {
                style::GOOD
            } else {
                style::QUIET
            };
            let last = match &taken.reason {
                Some(reason) => reason.clone(),
                None => view::target(&fate.server.entry),
            };
            table.row([
                (color, taken.word),
                (style::NAME, &taken.name),
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
    let verb = if dry_run { "would be added" } else { "added" };
    let mut targets: Vec<&Target> = Vec::new();
    for fate in fates {
        if !targets.iter().any(|target| target.path == fate.target.path) {
            targets.push(&fate.target);
        }
    }
    for target in targets {
        let is_into =
            |fate: &&Fate<'_>| fate.taken.reason.is_none() && fate.target.path == target.path;
        let count = fates.iter().filter(is_into).count();
        let servers = if count == 1 { "server" } else { "servers" };
        printer.note(format!(
            "{count} {servers} {verb} in {} scope: {}",
            target.scope,
            target.shown()
        ));
    }
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

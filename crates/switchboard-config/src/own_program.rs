//! Recognizes Switchboard itself among servers, so that no gateway connects to itself.
//!
//! Two independent checks: an entry that starts this program ([`own_command`]), and a marker in the environment of every
//! server that Switchboard starts ([`DEPTH`], [`check_depth`]), which also sees through wrappers such as `npx` or a shell
//! script. Pure: the program's path and the environment are passed in.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use thiserror::Error;

/// Name of the program, and of the entry that `clients connect` writes.
pub const PROGRAM: &str = "switchboard";

/// Variable in the environment of every stdio server: how many Switchboards are above it.
pub const DEPTH: &str = "SWITCHBOARD_DEPTH";

/// Variable that names another configuration folder.
const CONFIG_DIR: &str = "SWITCHBOARD_CONFIG_DIR";

/// Greatest depth, for servers that have a configuration of their own.
const MAX_DEPTH: u32 = 4;

/// Global flags that are followed by a value.
const FLAGS_WITH_VALUE: [&str; 3] = ["--cwd", "--config", "--color"];

/// A command of this program that serves MCP, started by an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OwnCommand {
    /// `switchboard connect`, the bridge to the daemon.
    Connect,
    /// `switchboard gateway`, all servers as one.
    Gateway,
    /// `switchboard serve`, the agent.
    Serve,
    /// `switchboard up`, the daemon.
    Up,
}

impl OwnCommand {
    /// Word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            OwnCommand::Connect => "connect",
            OwnCommand::Gateway => "gateway",
            OwnCommand::Serve => "serve",
            OwnCommand::Up => "up",
        }
    }

    /// Whether it passes on the configured servers, so that it must not be one of them.
    pub const fn passes_servers_on(self) -> bool {
        matches!(self, OwnCommand::Connect | OwnCommand::Gateway)
    }
}

/// The command of Switchboard that a server's command line starts; `None` if it starts another program.
///
/// A program counts as Switchboard by its name, or if it is the file `program`: the one that is running.
pub fn own_command(command: &str, args: &[String], program: Option<&Path>) -> Option<OwnCommand> {
    let path = Path::new(command);
    let stem = if path.extension() == Some(OsStr::new("exe")) {
        path.file_stem()
    } else {
        path.file_name()
    };
    if stem != Some(OsStr::new(PROGRAM)) && program != Some(path) {
        return None;
    }
    let mut words = args.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if FLAGS_WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            let commands = [
                OwnCommand::Connect,
                OwnCommand::Gateway,
                OwnCommand::Serve,
                OwnCommand::Up,
            ];
            return commands.into_iter().find(|each| each.name() == word);
        }
    }
    None
}

/// A bridge or gateway that was started by Switchboard itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "Switchboard started this process as one of its own servers, so it would connect to itself without end"
)]
#[non_exhaustive]
pub struct SelfRecursion {
    /// Number of Switchboards above this process, at least 1.
    pub depth: u32,
}

impl SelfRecursion {
    /// Suggested fix.
    pub const fn hint(self) -> &'static str {
        "remove the entry that starts `switchboard connect` or `switchboard gateway` from your servers; for a second \
         Switchboard with other servers, set SWITCHBOARD_CONFIG_DIR in its `env`"
    }
}

/// Refuses to pass servers on from inside a server that Switchboard started. `connect` and `gateway` call this first.
///
/// A process with a configuration folder of its own is accepted, up to a fixed depth: servers inherit the variable only
/// if their entry says so.
pub fn check_depth(environment: &[(OsString, OsString)]) -> Result<(), SelfRecursion> {
    let depth = depth(environment);
    let is_set = |name: &str| {
        let mut found = environment.iter();
        found.any(|(key, value)| key == name && !value.is_empty())
    };
    if depth == 0 || depth < MAX_DEPTH && is_set(CONFIG_DIR) {
        Ok(())
    } else {
        Err(SelfRecursion { depth })
    }
}

/// Number of Switchboards above a process with this environment. A value that is not a number counts as 1.
pub fn depth(environment: &[(OsString, OsString)]) -> u32 {
    let found = environment.iter().find(|(name, _)| name == DEPTH);
    found.map_or(0, |(_, value)| {
        value
            .to_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or(1)
    })
}

/// Value of [`DEPTH`] for a server that a process with this environment starts.
pub fn next_depth(environment: &[(OsString, OsString)]) -> OsString {
    depth(environment).saturating_add(1).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let pair = |(name, value): &(&str, &str)| (name.into(), value.into());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_program_is_recognized_by_name_and_by_path() {
        let own = Path::new("/opt/sb");
        for (line, expected) in [
            ("switchboard connect", Some(OwnCommand::Connect)),
            (
                "/usr/bin/switchboard connect --profile x",
                Some(OwnCommand::Connect),
            ),
            ("switchboard.exe gateway --stdio", Some(OwnCommand::Gateway)),
            (
                "switchboard --quiet --cwd /x connect",
                Some(OwnCommand::Connect),
            ),
            ("switchboard --cwd=/x serve", Some(OwnCommand::Serve)),
            ("/opt/sb up", Some(OwnCommand::Up)),
            ("/opt/other connect", None),
            ("switchboard tools", None),
            ("switchboard", None),
            ("switchboard --config connect", None),
            ("npx connect", None),
            ("switchboard.sh connect", None),
        ] {
            let mut words = line.split(' ').map(String::from);
            let command = words.next().unwrap();
            let args: Vec<String> = words.collect();
            assert_eq!(own_command(&command, &args, Some(own)), expected, "{line}");
        }
    }

    #[test]
    fn a_process_below_switchboard_must_not_pass_servers_on() {
        let check = |pairs: &[(&str, &str)], accepted: bool, next: &str| {
            let environment = environment(pairs);
            assert_eq!(check_depth(&environment).is_ok(), accepted, "{pairs:?}");
            assert_eq!(next_depth(&environment), next, "{pairs:?}");
        };
        check(&[], true, "1");
        check(&[(DEPTH, "0")], true, "1");
        check(&[(DEPTH, "1")], false, "2");
        check(&[(DEPTH, "no number")], false, "2");
        check(&[(DEPTH, "4294967295")], false, "4294967295");
        check(&[(DEPTH, "1"), (CONFIG_DIR, "")], false, "2");
        check(&[(DEPTH, "1"), (CONFIG_DIR, "/other")], true, "2");
        check(&[(DEPTH, "3"), (CONFIG_DIR, "/other")], true, "4");
        check(&[(DEPTH, "4"), (CONFIG_DIR, "/other")], false, "5");
    }
}

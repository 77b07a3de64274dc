//! Detects package runners: programs that install a server before they start it.
//!
//! Such a program may need minutes the first time, and killing it half way can corrupt its cache.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// How long one may continue installing a server that is no longer wanted, as long as it makes progress.
pub(super) const TO_FINISH: Duration = Duration::from_secs(600);

/// Programs that always run packages, whatever their arguments.
const RUNNERS: &[&str] = &["npx", "pnpx", "bunx", "uvx"];

/// Programs that run packages with one of these subcommands.
const SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("npm", &["exec", "x", "init", "create"]),
    ("pnpm", &["dlx", "exec"]),
    ("yarn", &["dlx"]),
    ("bun", &["x"]),
    ("uv", &["run", "tool", "x"]),
    ("pipx", &["run"]),
    ("deno", &["run", "x"]),
    ("docker", &["run", "compose"]),
    ("podman", &["run"]),
    ("nix", &["run", "shell", "develop"]),
    ("go", &["run"]),
    ("cargo", &["run"]),
    ("dotnet", &["run", "tool", "dnx"]),
    ("dnx", &[""]),
];

/// Programs that start others: shells, and programs that set up an environment first.
pub(super) const STARTERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "fish", "env", "cmd", "nice", "timeout", "volta", "mise", "fnm",
];

/// Whether the program is a package runner, or starts one.
pub(super) fn is_runner(program: &Path, args: &[OsString]) -> bool {
    let words = words(args);
    let name = base_name(&program.to_string_lossy());
    if runs(&name, &words) {
        return true;
    }
    let mut rest = words.as_slice();
    while let Some((word, after)) = rest.split_first() {
        if STARTERS.contains(&name.as_str()) && runs(&base_name(word), after) {
            return true;
        }
        rest = after;
    }
    false
}

/// The arguments split into words: a shell gets a whole command line in one of them.
pub(super) fn words(args: &[OsString]) -> Vec<String> {
    let words = args.iter().flat_map(|arg| {
        let text = arg.to_string_lossy();
        let words = text.split_whitespace().map(str::to_owned);
        words.collect::<Vec<_>>()
    });
    words.collect()
}

fn runs(name: &str, args: &[String]) -> bool {
    RUNNERS.contains(&name)
        || SUBCOMMANDS.iter().any(|(program, commands)| {
            *program == name
                && (commands.contains(&"")
                    || args.iter().any(|arg| commands.contains(&arg.as_str())))
        })
}

/// The name of a program without its folder and the Windows extensions.
pub(super) fn base_name(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name.trim_matches(['"', '\'']).to_ascii_lowercase();
    let endings = [".exe", ".cmd", ".bat", ".ps1"];
    let ending = endings.iter().find_map(|ending| name.strip_suffix(ending));
    ending.map_or(name.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_are_known_by_name_however_they_are_started() {
        let check = |line: &[&str]| {
            let args: Vec<OsString> = line[1..].iter().map(OsString::from).collect();
            is_runner(Path::new(line[0]), &args)
        };
        for runner in [
            &["npx", "-y", "server"][..],
            &["/usr/local/bin/npx", "server"],
            &["C:\\node\\npx.cmd", "server"],
            &["uvx", "server"],
            &["npm", "exec", "--", "server"],
            &["uv", "tool", "run", "server"],
            &["docker", "run", "-i", "image"],
            &["sh", "-c", "npx -y server"],
            &["env", "A=b", "npx", "server"],
            &["cmd", "/c", "npx", "server"],
        ] {
            assert!(check(runner), "{runner:?}");
        }
        for other in [
            &["node", "server.js"][..],
            &["python3", "-m", "server"],
            &["uv", "--version"],
            &["server", "npx"],
            &["sh", "-c", "./server"],
            &[""],
        ] {
            assert!(!check(other), "{other:?}");
        }
    }
}

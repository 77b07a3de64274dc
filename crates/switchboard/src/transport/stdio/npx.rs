//! Locates the folder in which npx installs a package.
//!
//! npx installs into `<cache>/_npx/<hash>`, one folder per set of packages, and never repairs a folder whose
//! installation was interrupted. Derives that folder from the arguments and environment of the server, and from
//! `~/.npmrc` for a moved cache. Changes nothing.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha512};

use super::runner::{self, STARTERS};
use super::{StdioConnector, environment};
use crate::transport::InstalledPackage;

/// Options of npx that take the next word as their value, except those that name packages.
const WITH_VALUE: &[&str] = &[
    "--cache",
    "--call",
    "--loglevel",
    "--node-options",
    "--prefix",
    "--registry",
    "--script-shell",
    "--userconfig",
    "--workspace",
    "-c",
    "-w",
];

/// The package that the server's npx runs, and its folder. `None` for any other program, for folders in place of
/// packages, and if the cache is unknown.
pub(super) fn installed(connector: &StdioConnector) -> Option<InstalledPackage> {
    let words = runner::words(&connector.args);
    let name = runner::base_name(&connector.program.to_string_lossy());
    let arguments = arguments(&name, &words)?;
    let asked = Asked::read(arguments);
    let mut packages = asked.packages;
    if packages.is_empty() || packages.iter().any(|package| is_folder(package)) {
        return None;
    }
    packages.sort_unstable();
    let environment = environment::of(connector);
    let cache = asked
        .cache
        .map(PathBuf::from)
        .or_else(|| cache(&environment))?;
    cache.is_absolute().then(|| InstalledPackage {
        folder: cache.join("_npx").join(hash(&packages)),
        package: packages.join(" "),
    })
}

/// The arguments of npx, whichever way it is started.
fn arguments<'a>(name: &str, words: &'a [String]) -> Option<&'a [String]> {
    match name {
        "npx" => Some(words),
        "npm" => {
            let (first, rest) = words.split_first()?;
            matches!(first.as_str(), "exec" | "x").then_some(rest)
        }
        _ if STARTERS.contains(&name) => {
            let starts = words
                .iter()
                .map(|word| runner::base_name(word))
                .position(|word| word == "npx" || word == "npm")?;
            arguments(&runner::base_name(&words[starts]), &words[starts + 1..])
        }
        _ => None,
    }
}

#[derive(Default)]
struct Asked<'a> {
    packages: Vec<&'a str>,
    cache: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn read(arguments: &'a [String]) -> Self {
        let mut asked = Self::default();
        let mut words = arguments.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) if word.starts_with('-') => (option, Some(value)),
                _ => (word, None),
            };
            match option {
                "-p" | "--package" => asked.packages.extend(value.or_else(|| words.next())),
                "--cache" => asked.cache = value.or_else(|| words.next()),
                "--" => {
                    asked.command(words.next());
                    break;
                }
                _ if WITH_VALUE.contains(&option) => {
                    if value.is_none() {
                        words.next();
                    }
                }
                _ if option.starts_with('-') => {}
                _ => {
                    asked.command(Some(word));
                    break;
                }
            }
        }
        asked
    }

    /// The first word that is not an option names the package, unless an option did.
    fn command(&mut self, word: Option<&'a str>) {
        if self.packages.is_empty() {
            self.packages.extend(word);
        }
    }
}

fn is_folder(package: &str) -> bool {
    package.starts_with(['.', '/', '~', '\\']) || package.starts_with("file:")
}

fn hash(packages: &[&str]) -> String {
    let digest = Sha512::digest(packages.join("\n").as_bytes());
    let hex = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
    hex.collect()
}

/// npm's cache: from the environment, else from the user's `.npmrc`, else npm's default.
fn cache(environment: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let set = environment
        .iter()
        .find(|(name, value)| name.eq_ignore_ascii_case("npm_config_cache") && !value.is_empty());
    if let Some((_, value)) = set {
        return Some(PathBuf::from(value));
    }
    let of = |name: &str| environment.get(OsStr::new(name)).map(PathBuf::from);
    let home = of(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    if let Some(cache) = home.as_deref().and_then(cache_of_npmrc) {
        return Some(cache);
    }
    if cfg!(windows) {
        Some(of("LOCALAPPDATA")?.join("npm-cache"))
    } else {
        Some(home?.join(".npm"))
    }
}

fn cache_of_npmrc(home: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(home.join(".npmrc")).ok()?;
    let mut settings = text.lines().filter_map(|line| line.split_once('='));
    let (_, value) = settings.find(|(name, _)| name.trim() == "cache")?;
    let value = value.trim().trim_matches('"');
    Some(match value.strip_prefix("~/") {
        Some(below) => home.join(below),
        None => PathBuf::from(value),
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn check(line: &[&str], expected: Option<(&str, &str)>) {
        let mut connector = StdioConnector::new(line[0]);
        connector.args = line[1..].iter().map(OsString::from).collect();
        connector.base_env = Arc::new([("HOME".into(), "/home/ann".into())]);
        let found = installed(&connector);
        let expected = expected.map(|(package, folder)| InstalledPackage {
            package: package.to_owned(),
            folder: PathBuf::from(folder),
        });
        assert_eq!(found, expected, "{line:?}");
    }

    use std::sync::Arc;

    /// The folder names are those created by npm 10.
    #[test]
    fn the_folder_is_the_one_npx_uses() {
        let everything = Some((
            "@modelcontextprotocol/server-everything",
            "/home/ann/.npm/_npx/5b2dd62b9d0bddd4",
        ));
        let package = "@modelcontextprotocol/server-everything";
        check(&["npx", "-y", package, "--flag", "other"], everything);
        check(
            &["/usr/bin/npx", "--registry", "https://r", package],
            everything,
        );
        check(&["npx", "-y", "--package", package, "program"], everything);
        check(&["npx", &format!("-p={package}"), "program"], everything);
        check(&["npm", "exec", "--yes", "--", package], everything);
        check(&["sh", "-c", &format!("npx -y {package}")], everything);
        check(
            &["npx", "--cache", "/data/npm", package],
            Some((package, "/data/npm/_npx/5b2dd62b9d0bddd4")),
        );
        for other in [
            &["node", package][..],
            &["npm", "run", package],
            &["npx", "./server"],
            &["npx", "--cache", "relative", package],
            &["npx", "-y"],
            &["uvx", package],
        ] {
            check(other, None);
        }
    }

    #[test]
    fn a_cache_that_was_moved_is_found() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(".npmrc"), "save=true\ncache = ~/moved\n").unwrap();
        let mut connector = StdioConnector::new("npx");
        connector.args = vec!["server".into()];
        connector.base_env = Arc::new([("HOME".into(), home.path().into())]);
        let folder = |connector: &StdioConnector| installed(connector).unwrap().folder;
        assert!(folder(&connector).starts_with(home.path().join("moved/_npx")));
        connector.env = vec![("NPM_CONFIG_CACHE".into(), "/cache".into())];
        assert!(folder(&connector).starts_with("/cache/_npx"));
    }
}

//! Opens a URL in the user's browser.
//!
//! Selects the program and spawns it without a shell, for `http` and `https` only, in its own process group so that
//! Ctrl-C does not reach it, and with only the environment variables that a browser needs, so that no token leaks.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};
use url::Url;

/// The environment of the front end.
pub(crate) type Variables = [(OsString, OsString)];

/// A spawned browser process.
#[derive(Debug)]
pub struct Opening(Child);

/// Cause of a failure to open a browser.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// The scheme is not `http` or `https`.
    #[error("only http and https URLs are opened in a browser, not {0}:")]
    Scheme(String),
    /// No program for opening a browser is known.
    #[error("no program found to open a browser")]
    NoProgram,
    /// The program could not be spawned.
    #[error("cannot start {program}: {error}")]
    Start {
        /// Name of the program.
        program: String,
        /// Error of the spawn.
        error: io::Error,
    },
}

/// Whether a browser can open on the user's screen. False over SSH, unless `BROWSER` is set.
pub fn is_at_hand(variables: &Variables) -> bool {
    if variable(variables, "BROWSER").is_some() {
        return true;
    }
    let is_remote = ["SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"]
        .iter()
        .any(|name| variable(variables, name).is_some());
    let has_screen = cfg!(any(windows, target_vendor = "apple"))
        || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]
            .iter()
            .any(|name| variable(variables, name).is_some());
    has_screen && !is_remote
}

/// Opens a URL. The browser keeps running when this process exits.
pub fn open(url: &Url, variables: &Variables) -> Result<Opening, BrowserError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(BrowserError::Scheme(url.scheme().to_owned()));
    }
    let mut last = BrowserError::NoProgram;
    for words in programs(url, variables) {
        let Some((program, arguments)) = words.split_first() else {
            continue;
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(passed_on(variables))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        #[cfg(unix)]
        command.process_group(0);
        match command.spawn() {
            Ok(child) => return Ok(Opening(child)),
            Err(error) => {
                let program = program.clone();
                last = BrowserError::Start { program, error };
            }
        }
    }
    Err(last)
}

impl Opening {
    /// Waits for the program that opens the browser to exit; returns whether it failed.
    ///
    /// Some programs exit immediately, others with the browser. The future can be dropped: the runtime reaps the
    /// process when it exits.
    pub async fn failed(&mut self) -> bool {
        let ended: io::Result<ExitStatus> = self.0.wait().await;
        !ended.is_ok_and(|status| status.success())
    }
}

/// Returns the programs to try, each with its arguments.
fn programs(url: &Url, variables: &Variables) -> Vec<Vec<String>> {
    let address = url.as_str();
    let mut programs = Vec::new();
    if let Some(browsers) = variable(variables, "BROWSER") {
        // By convention a colon-separated list of commands, with `%s` as the placeholder for the URL.
        for browser in browsers.split(':') {
            let mut words = words(browser);
            let mut has_place = false;
            for word in words.iter_mut().skip(1) {
                if word.contains("%s") {
                    *word = word.replace("%s", address);
                    has_place = true;
                }
            }
            if words.is_empty() {
                continue;
            }
            if !has_place {
                words.push(address.to_owned());
            }
            programs.push(words);
        }
    }
    let of_the_system: &[&[&str]] = if cfg!(windows) {
        &[&["rundll32.exe", "url.dll,FileProtocolHandler"]]
    } else if cfg!(target_vendor = "apple") {
        &[&["/usr/bin/open"]]
    } else {
        &[&["xdg-open"], &["wslview"], &["gio", "open"]]
    };
    programs.extend(of_the_system.iter().map(|words| {
        let words = words.iter().copied().chain([address]);
        words.map(str::to_owned).collect()
    }));
    programs
}

/// Splits a command into words. Quotes group words with spaces; no other character is special.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in command.chars() {
        let is_quote = quote.is_none() && matches!(character, '"' | '\'');
        if is_quote {
            quote = Some(character);
            word.get_or_insert_default();
        } else if quote == Some(character) {
            quote = None;
        } else if quote.is_none() && character.is_whitespace() {
            words.extend(word.take());
        } else {
            word.get_or_insert_default().push(character);
        }
    }
    words.extend(word);
    words
}

/// Selects the environment variables that a browser needs.
fn passed_on(variables: &Variables) -> impl Iterator<Item = (&OsString, &OsString)> {
    const NAMES: [&str; 33] = [
        "HOME",
        "PATH",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TMPDIR",
        "TZ",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "DBUS_SESSION_BUS_ADDRESS",
        "DESKTOP_SESSION",
        "BROWSER",
        "KDE_FULL_SESSION",
        "KDE_SESSION_VERSION",
        "GNOME_DESKTOP_SESSION_ID",
        "WSL_DISTRO_NAME",
        "WSL_INTEROP",
        "WSLENV",
        "SYSTEMROOT",
        "SYSTEMDRIVE",
        "WINDIR",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "PROGRAMFILES",
        "PROGRAMDATA",
        "TEMP",
        "TMP",
        "COMSPEC",
        "PATHEXT",
    ];
    const PREFIXES: [&str; 2] = ["XDG_", "LC_"];
    variables
        .iter()
        .filter(|(name, _)| {
            name.to_str().is_some_and(|name| {
                let is_same = |known: &&str| {
                    if cfg!(windows) {
                        known.eq_ignore_ascii_case(name)
                    } else {
                        **known == *name
                    }
                };
                NAMES.iter().any(is_same) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            })
        })
        .map(|(name, value)| (name, value))
}

fn variable<'v>(variables: &'v Variables, name: &str) -> Option<&'v str> {
    let (_, value) = variables.iter().find(|(key, _)| key == name)?;
    value.to_str().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    #[test]
    fn the_users_browser_is_started_without_a_shell() {
        let url = Url::parse("https://a.example/authorize?x=$(reboot)&y='`;|\"").unwrap();
        let check = |browser: &str, expected: &[&[&str]]| {
            let programs = programs(&url, &variables(&[("BROWSER", browser)]));
            let own = &programs[..programs.len() - programs_of_the_system()];
            assert_eq!(own, expected, "{browser}");
        };
        let address = url.as_str();
        check("firefox", &[&["firefox", address]]);
        check(
            "firefox --new-window %s",
            &[&["firefox", "--new-window", address]],
        );
        check(
            "'/opt/my browser/run' \"--app=%s\":  :lynx",
            &[
                &["/opt/my browser/run", &format!("--app={address}")],
                &["lynx", address],
            ],
        );
        // Shell metacharacters are ordinary characters.
        check("a;b $(c) `d`", &[&["a;b", "$(c)", "`d`", address]]);
        check("%s", &[&["%s", address]]);
        check("", &[]);
        // The URL is always a single argument.
        assert!(!address.contains([' ', '\'', '"', '<', '>']) || address.starts_with("https://"));
    }

    fn programs_of_the_system() -> usize {
        let url = Url::parse("https://a.example/").unwrap();
        programs(&url, &[]).len()
    }

    #[tokio::test]
    async fn only_pages_of_the_web_are_opened() {
        for url in [
            "file:///etc/passwd",
            "javascript:alert(1)",
            "vbscript:x",
            "data:text/html,x",
            "ms-settings:privacy",
            "ftp://a.example/",
        ] {
            let url = Url::parse(url).unwrap();
            // The program exists, so only the scheme can cause the error.
            let opened = open(&url, &variables(&[("BROWSER", "true"), ("PATH", "/bin")]));
            assert!(matches!(opened, Err(BrowserError::Scheme(_))), "{url}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_browser_that_exits_with_an_error_has_failed() {
        let url = Url::parse("https://a.example/").unwrap();
        for (program, has_failed) in [("true", false), ("false", true)] {
            let variables = variables(&[("BROWSER", program), ("PATH", "/bin:/usr/bin")]);
            let mut opening = open(&url, &variables).unwrap();
            assert_eq!(opening.failed().await, has_failed, "{program}");
        }
    }

    #[test]
    fn a_browser_gets_no_secret_of_anybody() {
        let variables = variables(&[
            ("HOME", "/home/a"),
            ("GITHUB_TOKEN", "canary"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
            ("ANTHROPIC_API_KEY", "canary"),
            ("LC_ALL", "C"),
        ]);
        let names: Vec<_> = passed_on(&variables)
            .map(|(name, _)| name.clone())
            .collect();
        assert_eq!(names, ["HOME", "XDG_RUNTIME_DIR", "LC_ALL"]);
    }

    #[cfg(not(any(windows, target_vendor = "apple")))]
    #[test]
    fn a_browser_is_at_hand_where_there_is_a_screen() {
        let check = |pairs: &[(&str, &str)], expected| {
            assert_eq!(is_at_hand(&variables(pairs)), expected, "{pairs:?}");
        };
        let display = ("DISPLAY", ":0");
        let ssh = ("SSH_CONNECTION", "10.0.0.1 1 10.0.0.2 22");
        check(&[], false);
        check(&[("DISPLAY", "")], false);
        check(&[display], true);
        check(&[("WAYLAND_DISPLAY", "wayland-0")], true);
        check(&[("WSL_DISTRO_NAME", "Ubuntu")], true);
        // X forwarding is slow, and the browser's loopback may be on another machine.
        check(&[display, ssh], false);
        check(&[ssh, ("BROWSER", "w3m")], true);
    }
}

//! Opening an address in the user's browser.
//!
//! Owns the choice of the program and the way it is started: by a vector of arguments and never through a shell, with
//! `http` and `https` addresses only, in a process group of its own so that Ctrl-C here does not reach it, and with the
//! part of the environment that a browser needs, which holds no token of anybody.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};
use url::Url;

/// The environment of the front end.
pub(crate) type Variables = [(OsString, OsString)];

/// A browser that was started.
#[derive(Debug)]
pub struct Opening(Child);

/// Why no browser was opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// Only pages of the web are opened.
    #[error("only http and https addresses are opened in a browser, and this is {0}:")]
    Scheme(String),
    /// There is no program to open it with.
    #[error("there is no program to open a browser with")]
    NoProgram,
    /// The program could not be started.
    #[error("{program} could not be started: {error}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        error: io::Error,
    },
}

/// Whether somebody sits before a screen that a browser could open on.
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

/// Opens an address. The browser lives on when this program ends.
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
    /// Waits until the program that opens the browser has ended; whether it says that it failed.
    ///
    /// Some end at once, others with the browser. Whoever stops waiting leaves nothing behind: the runtime collects the
    /// process when it ends.
    pub async fn failed(&mut self) -> bool {
        let ended: io::Result<ExitStatus> = self.0.wait().await;
        !ended.is_ok_and(|status| status.success())
    }
}

/// The programs to try, each with its arguments.
fn programs(url: &Url, variables: &Variables) -> Vec<Vec<String>> {
    let address = url.as_str();
    let mut programs = Vec::new();
    if let Some(browsers) = variable(variables, "BROWSER") {
        // By custom a list of commands with colons between them, `%s` standing for the address.
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

/// The words of a command, with quotes around those that hold spaces. Nothing else has a meaning.
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

/// What a browser needs to come up on the user's screen.
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
        // What a shell would do something with is a word like any other.
        check("a;b $(c) `d`", &[&["a;b", "$(c)", "`d`", address]]);
        check("%s", &[&["%s", address]]);
        check("", &[]);
        // The address is one argument, whatever is in it.
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
            // A program that would be found, so that only the scheme can be in the way.
            let opened = open(&url, &variables(&[("BROWSER", "true"), ("PATH", "/bin")]));
            assert!(matches!(opened, Err(BrowserError::Scheme(_))), "{url}");
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
        // A forwarded screen is slow, and the loopback of the browser another machine's.
        check(&[display, ssh], false);
        check(&[ssh, ("BROWSER", "w3m")], true);
    }
}

//! Reads environment variables. No other file of this crate does.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::tz::TimeZone;
use switchboard::internal::places::{Managed, Places, PlacesError};
use switchboard_config::expand;

use crate::cli::When;
use crate::error::Failure;
use crate::printer::Colors;

const LOG: &str = "SWITCHBOARD_LOG";
const HTTP: &str = "SWITCHBOARD_HTTP";
const TOKEN_FILE: &str = "SWITCHBOARD_TOKEN_FILE";

/// Everything read from the environment.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    /// Every variable, to be passed to servers.
    pub(crate) all: Arc<[(OsString, OsString)]>,
    /// The variables that configuration files can reference.
    pub(crate) variables: expand::Environment,
    /// The user's home folder, with links resolved.
    pub(crate) home: PathBuf,
    /// The user's configuration folder.
    pub(crate) config: PathBuf,
    /// The state folder.
    pub(crate) state: PathBuf,
    /// The enterprise configuration file.
    pub(crate) managed: Managed,
}

impl Environment {
    pub(crate) fn read() -> Result<Self, Failure> {
        let all: Arc<[_]> = std::env::vars_os().collect();
        let places = Places::of(&all).map_err(|error| match error {
            PlacesError::Relative(variable) => Failure::usage(error.to_string())
                .hint(format!("set {variable} to a path that starts with /")),
            _ => Failure::failed("the home folder is unknown")
                .because("HOME is not set to an absolute path")
                .hint("set HOME"),
        })?;
        let text = |text: &OsString| text.to_str().map(str::to_owned);
        Ok(Self {
            variables: all
                .iter()
                .filter_map(|(name, value)| Some((text(name)?, text(value)?)))
                .collect(),
            all,
            config: places.config,
            state: places.state,
            managed: places.managed,
            home: places.home,
        })
    }

    /// Reads a variable of another program as a folder.
    pub(crate) fn folder_of(&self, name: &str) -> Option<PathBuf> {
        self.variables
            .get(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }
}

/// Decides which streams are coloured: by the flag, else `NO_COLOR` and `TERM`, else whether the stream is a terminal.
pub(crate) fn colors(when: When) -> Colors {
    let automatic = variable("NO_COLOR").is_none()
        && variable("TERM").is_none_or(|terminal| terminal != "dumb");
    let decide = |terminal: bool| match when {
        When::Always => true,
        When::Never => false,
        When::Auto => automatic && terminal,
    };
    Colors {
        stdout: decide(std::io::stdout().is_terminal()),
        stderr: decide(std::io::stderr().is_terminal()),
    }
}

/// The time zone of the user, from `TZ` or the system; UTC if it is unknown.
pub(crate) fn time_zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// The value of `SWITCHBOARD_LOG`; `None` if unset or empty.
pub(crate) fn log() -> Option<OsString> {
    variable(LOG)
}

/// The address and the token files of `switchboard gateway`, unless flags set them.
pub(crate) fn listening() -> (Option<String>, Option<String>) {
    let text = |name| variable(name)?.into_string().ok();
    (text(HTTP), text(TOKEN_FILE))
}

/// The user's editor, from `VISUAL` or `EDITOR`, as a command line.
pub(crate) fn editor() -> String {
    let fallback = if cfg!(windows) { "notepad" } else { "vi" };
    let chosen = variable("VISUAL").or_else(|| variable("EDITOR"));
    let chosen = chosen.and_then(|editor| editor.into_string().ok());
    chosen.unwrap_or_else(|| fallback.to_owned())
}

/// Whether standard error is a terminal with a movable cursor.
pub(crate) fn can_draw() -> bool {
    std::io::stderr().is_terminal() && variable("TERM").is_some_and(|terminal| terminal != "dumb")
}

/// A protocol for images in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Graphics {
    Kitty,
    Iterm,
    /// Only PNG images.
    Sixel,
}

/// How the terminal shows images; `None` if its variables do not say so. Multiplexers do not pass these on.
pub(crate) fn graphics() -> Option<Graphics> {
    let text = |name| variable(name).and_then(|value| value.into_string().ok());
    let terminal = text("TERM").unwrap_or_default();
    if variable("TMUX").is_some() || terminal.starts_with("screen") || terminal.starts_with("tmux")
    {
        return None;
    }
    if terminal.contains("kitty") || terminal.contains("ghostty") {
        return Some(Graphics::Kitty);
    }
    match text("TERM_PROGRAM")?.as_str() {
        "iTerm.app" | "WezTerm" | "mintty" => Some(Graphics::Iterm),
        "ghostty" => Some(Graphics::Kitty),
        _ => None,
    }
}

/// Whether to ask the terminal for what it can show. The console of Linux cannot show images.
#[cfg(unix)]
pub(crate) fn may_show_sixel() -> bool {
    graphics().is_none() && variable("TERM").is_some_and(|name| name != "dumb" && name != "linux")
}

/// Whether the terminal reports a light background in `COLORFGBG`: `15` is white, and `7` light grey.
pub(crate) fn is_light() -> bool {
    let colors = variable("COLORFGBG").and_then(|value| value.into_string().ok());
    let background = colors
        .as_deref()
        .and_then(|colors| colors.rsplit(';').next());
    matches!(background, Some("7" | "15"))
}

/// Reads a variable; an empty value counts as unset.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

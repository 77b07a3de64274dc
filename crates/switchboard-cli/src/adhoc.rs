//! A server that is not configured: its URL or its command line, for one command.

use serde_json::json;
use switchboard_config::document::Source;
use switchboard_config::files::detached_source;
use switchboard_config::format::Format;
use switchboard_config::resolve::Config;
use switchboard_config::scope::Scope;
use switchboard_config::text::visible;
use switchboard_config::words;
use url::Url;

use crate::error::Failure;

/// What diagnostics name as the file.
const PLACE: &str = "the command line";
/// Longest name that is derived from a URL or a command.
const MAX_NAME: usize = 24;

/// A server given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AdHoc {
    Url(String),
    Command(Vec<String>),
}

/// Whether a word is the URL of a server.
pub(crate) fn is_url(word: &str) -> bool {
    let schemes = ["http://", "https://", "ws://", "wss://"];
    schemes.iter().any(|scheme| word.starts_with(scheme))
}

impl AdHoc {
    /// Parses a command line as a shell would, without running one.
    pub(crate) fn command(line: &str) -> Result<Self, Failure> {
        let words = words::split(line).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| {
            Failure::usage(format!("`{}` is not a command line", visible(line)))
                .hint("pass a program and its arguments, such as --command 'uvx mcp-server-time'")
        })?;
        Ok(Self::Command(words))
    }

    /// The configured server with the same URL or command, which has its own settings and login.
    pub(crate) fn configured(&self, config: &Config) -> Option<String> {
        let is_same = |server: &&switchboard_config::resolve::Server| {
            let entry = server.effective();
            match self {
                Self::Url(url) => entry.url.as_ref() == Some(url),
                Self::Command(words) => {
                    let stated = entry.command.iter().chain(&entry.args);
                    stated.eq(words)
                }
            }
        };
        let server = config.servers.iter().find(is_same);
        server.map(|server| server.name.clone())
    }

    /// A name for it that no configured server has.
    pub(crate) fn name(&self, config: &Config) -> String {
        let base = match self {
            Self::Url(url) => Url::parse(url)
                .ok()
                .and_then(|url| url.host_str().map(str::to_owned)),
            Self::Command(words) => {
                let is_option = |word: &&String| word.starts_with('-');
                let last = words.iter().rev().find(|word| !is_option(word));
                last.and_then(|word| word.rsplit(['/', '\\']).next().map(str::to_owned))
            }
        };
        let plain = |letter: char| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        };
        let name: String = base
            .unwrap_or_default()
            .chars()
            .take(MAX_NAME)
            .map(plain)
            .collect();
        let name = match name.trim_matches('-') {
            "" => "server".to_owned(),
            name => name.to_lowercase(),
        };
        let mut free = name.clone();
        for number in 2.. {
            if config.server(&free).is_none() {
                break;
            }
            free = format!("{name}-{number}");
        }
        free
    }

    /// The server as a source of configuration, so that the machine's lists and rules apply to it.
    pub(crate) fn source(&self, name: &str) -> Source {
        let entry = match self {
            Self::Url(url) => json!({ "url": url }),
            Self::Command(words) => json!({ "command": words.first(), "args": words.get(1..) }),
        };
        let text = json!({ "mcpServers": { name: entry } }).to_string();
        detached_source(Scope::Dynamic, PLACE, Format::Json, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_from_the_host_or_the_program() {
        let check = |server: AdHoc, expected: &str| {
            let config = Config::load(
                &switchboard_config::resolve::Inputs::default(),
                &switchboard_config::files::Disk,
            );
            assert_eq!(server.name(&config), expected);
        };
        check(
            AdHoc::Url("https://mcp.example.com/mcp?x=1".to_owned()),
            "mcp-example-com",
        );
        check(
            AdHoc::command("uvx mcp-server-time --local").unwrap(),
            "mcp-server-time",
        );
        check(AdHoc::command("/opt/My_Server").unwrap(), "my-server");
        check(AdHoc::Url("https://[::1]/".to_owned()), "1");
        assert!(AdHoc::command("'unclosed").is_err());
        assert!(AdHoc::command(" ").is_err());
    }
}

//! Parses `mcp add` lines of claude, codex, gemini and opencode with one grammar.
//!
//! All allow options before or after the name, and `--` before the command. They differ: codex passes everything after
//! a command's first word to the command; gemini accepts known options anywhere; claude's `--env` and `--header`, and
//! gemini's tool lists, take several values; opencode writes headers with `=`. Here an option that one of them knows is
//! an option anywhere before `--`; other words after the command's first word belong to the command. A line starting
//! with `codex` follows codex.

use std::collections::VecDeque;
use std::path::PathBuf;

use clap::ValueEnum as _;
use switchboard_config::entry::Transport;
use switchboard_config::entry::keys::nearest;
use switchboard_config::secret::Secret;
use switchboard_config::text::visible;

use super::options::{self, Known, Name};
use super::target::is_address;
use crate::cli::{GlobalFlags, When, WritableScope};
use crate::error::Failure;

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) scope: WritableScope,
    pub(super) transport: Option<Transport>,
    /// The command and its arguments, or the URL.
    pub(super) target: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) url: Option<String>,
    pub(super) bearer_token_env_var: Option<String>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: bool,
    pub(super) client_secret_value: Option<Secret>,
    pub(super) callback_port: Option<u16>,
    pub(super) oauth_resource: Option<String>,
    pub(super) timeout: Option<u64>,
    pub(super) include_tools: Vec<String>,
    pub(super) exclude_tools: Vec<String>,
    pub(super) force: bool,
    pub(super) flags: Flags,
    pub(super) notes: Vec<Note>,
}

/// An option that is ignored, and what to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) text: &'static str,
    pub(super) hint: &'static str,
}

/// Global flags found among the words.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Flags {
    cwd: Option<PathBuf>,
    config: Vec<PathBuf>,
    no_project: bool,
    trust_project: bool,
    json: bool,
    quiet: bool,
    verbose: bool,
    color: Option<When>,
}

impl Flags {
    /// Merges these flags into those before the command.
    pub(super) fn over(self, mut global: GlobalFlags) -> GlobalFlags {
        global.cwd = self.cwd.or(global.cwd);
        global.config.extend(self.config);
        global.no_project |= self.no_project;
        global.trust_project |= self.trust_project;
        global.json |= self.json;
        global.quiet |= self.quiet;
        global.verbose |= self.verbose;
        global.color = self.color.unwrap_or(global.color);
        global
    }
}

impl Line {
    pub(super) fn parse(words: Vec<String>) -> Result<Self, Failure> {
        let mut words = VecDeque::from(words);
        let program = take_program_name(&mut words);
        let mut line = Self::default();
        let mut name: Option<String> = None;
        while let Some(word) = words.pop_front() {
            if word == "--" {
                // The name may also follow the separator, before the command.
                if name.is_none() {
                    name = words.pop_front();
                }
                line.target.extend(words);
                break;
            }
            let remote =
                line.url.is_some() || line.target.first().is_some_and(|word| is_address(word));
            let in_command = !line.target.is_empty() && !remote;
            // Inside a command, a short option with a joined value could be a flag of the command.
            let found = match options::find(&word) {
                None if !in_command => options::find_joined(&word),
                found => found,
            };
            let is_ours = |known| known == Known::Elsewhere && program != Some("codex");
            match found {
                Some((option, joined)) if !in_command || is_ours(option.known) => {
                    let value = if option.takes_value {
                        Some(match joined {
                            Some(value) => value.to_owned(),
                            None => words.pop_front().ok_or_else(|| missing_value(&word))?,
                        })
                    } else {
                        None
                    };
                    line.set(option.name, value.unwrap_or_default(), &mut words)?;
                }
                _ if in_command => line.target.push(word),
                _ if word.starts_with('-') && word.len() > 1 => return Err(unknown_option(&word)),
                _ if name.is_none() => name = Some(word),
                _ => line.target.push(word),
            }
        }
        line.name = name.ok_or_else(|| {
            Failure::usage("the server has no name").hint(
                "write `switchboard mcp add NAME URL` or `switchboard mcp add NAME -- COMMAND`",
            )
        })?;
        line.check()
    }

    /// Applies an option. Some options take the following words as further values.
    fn set(
        &mut self,
        name: Name,
        value: String,
        words: &mut VecDeque<String>,
    ) -> Result<(), Failure> {
        match name {
            Name::Transport => {
                let transport = Transport::from_name(&value).ok_or_else(|| {
                    bad_value("--transport", &value, "use stdio, http, sse or ws")
                })?;
                self.transport = Some(transport);
            }
            Name::Scope => {
                self.scope = WritableScope::from_str(&value, true)
                    .map_err(|_| bad_value("--scope", &value, "use local, user or project"))?;
            }
            Name::Env => {
                self.env.push(variable(&value)?);
                while let Some(next) = words.front().filter(|word| is_plain_variable(word)) {
                    self.env.push(variable(next)?);
                    words.pop_front();
                }
            }
            Name::Header => {
                self.headers.push(header(&value)?);
                while let Some(next) = words.front().filter(|word| is_header(word)) {
                    self.headers.push(header(next)?);
                    words.pop_front();
                }
            }
            Name::Url => self.url = Some(value),
            Name::BearerTokenEnvVar => self.bearer_token_env_var = Some(value),
            Name::ClientId => self.client_id = Some(value),
            Name::ClientSecret => self.client_secret = true,
            Name::ClientSecretValue => self.client_secret_value = Some(Secret::new(value)),
            Name::CallbackPort => {
                let port = value.parse().ok().filter(|port| *port > 0);
                let hint = "use a port from 1 to 65535";
                self.callback_port =
                    Some(port.ok_or_else(|| bad_value("--callback-port", &value, hint))?);
            }
            Name::OAuthResource => self.oauth_resource = Some(value),
            Name::OAuthRegistration => self.notes.push(Note {
                text: "--oauth-client-registration is ignored: registration is negotiated at login",
                hint: "use --client-id for a client that is already registered",
            }),
            Name::Timeout => {
                let milliseconds = value.parse().ok().filter(|milliseconds| *milliseconds > 0);
                let hint = "use whole milliseconds above zero, such as 30000";
                self.timeout =
                    Some(milliseconds.ok_or_else(|| bad_value("--timeout", &value, hint))?);
            }
            Name::IncludeTools => {
                self.include_tools.extend(tools(&value));
                let more = self.further_tools(words);
                self.include_tools.extend(more);
            }
            Name::ExcludeTools => {
                self.exclude_tools.extend(tools(&value));
                let more = self.further_tools(words);
                self.exclude_tools.extend(more);
            }
            Name::Trust => self.notes.push(Note {
                text: "--trust is ignored: an entry cannot approve its own calls",
                hint: "allow single tools with [[permissions.rules]] in your user configuration",
            }),
            Name::Description => self.notes.push(Note {
                text: "--description is ignored: a server describes itself",
                hint: "write it as a comment beside the entry",
            }),
            Name::Force => self.force = true,
            Name::Cwd => self.flags.cwd = Some(value.into()),
            Name::Config => self.flags.config.push(value.into()),
            Name::NoProject => self.flags.no_project = true,
            Name::TrustProject => self.flags.trust_project = true,
            Name::Json => self.flags.json = true,
            Name::Quiet => self.flags.quiet = true,
            Name::Verbose => self.flags.verbose = true,
            Name::Color => {
                let when = When::from_str(&value, true)
                    .map_err(|_| bad_value("--color", &value, "use auto, always or never"))?;
                self.flags.color = Some(when);
            }
        }
        Ok(())
    }

    /// Takes the words after a tool list as further tools, once the line already has its command or URL.
    fn further_tools(&self, words: &mut VecDeque<String>) -> Vec<String> {
        let mut more = Vec::new();
        let has_target = self.url.is_some() || !self.target.is_empty();
        let is_tool = |word: &&String| has_target && !word.starts_with('-');
        while let Some(word) = words.front().filter(is_tool) {
            more.extend(tools(word));
            words.pop_front();
        }
        more
    }

    fn check(self) -> Result<Self, Failure> {
        match (&self.url, self.target.first()) {
            (None, None) => {
                let name = visible(&self.name);
                Err(Failure::usage(format!("no URL and no command for `{name}`"))
                    .hint("write `switchboard mcp add NAME URL` or `switchboard mcp add NAME -- COMMAND`"))
            }
            (Some(_), Some(_)) => Err(Failure::usage("the server has both --url and a command")
                .hint("keep one of the two")),
            (Some(_), None) if self.transport.is_some_and(Transport::is_local) => {
                Err(Failure::usage("a stdio server has no --url").hint("leave --transport out"))
            }
            _ => Ok(self),
        }
    }
}

/// Removes the `PROGRAM mcp add` prefix of a pasted line, and returns the program.
fn take_program_name(words: &mut VecDeque<String>) -> Option<&'static str> {
    let program = ["claude", "codex", "gemini", "opencode", "switchboard"]
        .into_iter()
        .find(|program| words.iter().take(3).eq([program, "mcp", "add"]))?;
    words.drain(..3);
    Some(program)
}

fn variable(word: &str) -> Result<(String, String), Failure> {
    let (name, value) = word
        .split_once('=')
        .filter(|(name, _)| !name.is_empty() && !name.starts_with('-'))
        .ok_or_else(|| {
            Failure::usage("--env takes NAME=VALUE")
                .hint("write it as -e API_KEY=value, once for each variable")
                .hint("if it belongs to the command, put the command after `--`")
        })?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Whether a word can only be another variable, and not for example a URL with a query.
fn is_plain_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Parses a header, with a colon as most tools write it, or with `=` as opencode does.
fn header(word: &str) -> Result<(String, String), Failure> {
    let with_equals = || word.split_once('=').filter(|(name, _)| is_token(name));
    let (name, value) = word
        .split_once(':')
        .filter(|_| is_header(word))
        .or_else(with_equals)
        .ok_or_else(|| {
            Failure::usage("--header takes 'NAME: VALUE'")
                .hint("write it as -H 'Authorization: Bearer ${TOKEN}', in quotes")
        })?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Whether a word is a header, and not for example a URL.
fn is_header(word: &str) -> bool {
    word.split_once(':')
        .is_some_and(|(name, value)| is_token(name.trim()) && !value.starts_with("//"))
}

fn is_token(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.bytes().all(allowed)
}

fn tools(list: &str) -> impl Iterator<Item = String> {
    list.split(',')
        .map(str::trim)
        .filter(|tool| !tool.is_empty())
        .map(String::from)
}

fn missing_value(option: &str) -> Failure {
    Failure::usage(format!("{} needs a value", visible(option)))
        .hint("`switchboard mcp add --help` shows what each option takes")
}

fn bad_value(option: &str, value: &str, hint: &str) -> Failure {
    Failure::usage(format!("{option} cannot be \"{}\"", visible(value))).hint(hint)
}

fn unknown_option(word: &str) -> Failure {
    // The part after `=` could be a secret.
    let option = word.split('=').next().unwrap_or(word);
    let failure = Failure::usage(format!("unknown option {}", visible(option)));
    if matches!(option, "-h" | "--help") {
        return failure
            .hint("`switchboard mcp add --help`, with nothing before it, shows all options");
    }
    let plain = option.trim_start_matches('-').replace('-', "_");
    let spellings: Vec<(String, &str)> = options::long_spellings()
        .map(|spelling| (spelling.trim_start_matches('-').replace('-', "_"), spelling))
        .collect();
    let near = nearest(&plain, spellings.iter().map(|(plain, _)| plain.as_str()));
    let near = near.and_then(|near| spellings.iter().find(|(plain, _)| plain == near));
    match near {
        Some((_, near)) => failure.hint(format!("did you mean {near}?")),
        None => {
            failure.hint("put the command after `--`: switchboard mcp add NAME -- COMMAND ARGS")
        }
    }
}

//! Variables of the user's shell that a server does not get and may miss. Names only: no value comes here.

use switchboard_config::text::visible;

use super::causes::finding;
use super::{Finding, Severity};
use crate::transport::{Connector, VariablePurpose, WithheldVariable};

/// How many names a finding lists.
const NAMED: usize = 8;
/// Words of variables and of servers that connect nothing with each other.
const COMMON: &[&str] = &[
    "access",
    "credentials",
    "mcp",
    "node",
    "password",
    "personal",
    "python",
    "secret",
    "server",
    "token",
];

/// What a server does not get of the environment.
#[derive(Debug, Default)]
pub(super) struct Variables {
    withheld: Vec<WithheldVariable>,
    listed: Vec<String>,
    may_install: bool,
}

impl Variables {
    pub(super) fn of(connector: &dyn Connector) -> Self {
        Self {
            withheld: connector.withheld_variables(),
            listed: connector.listed_variables().to_vec(),
            may_install: connector.may_install(),
        }
    }

    /// Whether the variable is set where Switchboard was started, and withheld.
    pub(super) fn has(&self, name: &str) -> bool {
        self.withheld.iter().any(|variable| variable.name == name)
    }

    /// The line of an entry that passes these on, besides those that it passes on already.
    pub(super) fn line<'a>(&'a self, names: impl IntoIterator<Item = &'a str>) -> String {
        let mut all: Vec<&str> = self.listed.iter().map(String::as_str).collect();
        for name in names {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        let quoted = all.iter().map(|name| format!("\"{}\"", visible(name)));
        format!("env_vars = [{}]", quoted.collect::<Vec<_>>().join(", "))
    }

    /// The variables that a server that failed may miss: what installs it, what decides which code runs, and credentials.
    pub(super) fn missed(&self, server: &str, about: &str) -> Option<Finding> {
        let mut missed: Vec<&WithheldVariable> = self.withheld.iter().collect();
        missed.retain(|variable| match variable.purpose {
            VariablePurpose::Install => self.may_install,
            VariablePurpose::Code | VariablePurpose::Credential => true,
            VariablePurpose::Unknown => false,
        });
        missed.sort_by_key(|variable| !is_related(&variable.name, about));
        self.note(server, "it may need variables from your shell", &missed)
    }

    /// Credentials that a server that works does not get although they are named after it.
    pub(super) fn related(&self, server: &str, about: &str) -> Option<Finding> {
        let mut related: Vec<&WithheldVariable> = self.withheld.iter().collect();
        related.retain(|variable| {
            variable.purpose == VariablePurpose::Credential && is_related(&variable.name, about)
        });
        self.note(
            server,
            "your shell has credentials named after it, which it does not inherit",
            &related,
        )
    }

    fn note(&self, server: &str, what: &str, variables: &[&WithheldVariable]) -> Option<Finding> {
        let first = variables.first()?;
        let names = variables.iter().take(NAMED);
        let names: Vec<_> = names.map(|variable| visible(&variable.name)).collect();
        let more = match variables.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(finding(
            "variables-withheld",
            Severity::Note,
            what,
            format!(
                "set in your shell, but not passed to servers: {}{more}",
                names.join(", ")
            ),
            format!(
                "list those it needs in [mcp_servers.{}]: {}",
                visible(server),
                self.line([first.name.as_str()])
            ),
        ))
    }
}

/// Whether a variable and a server share a word: `GITHUB_TOKEN` and `server-github`.
fn is_related(variable: &str, about: &str) -> bool {
    let words = |text: &str| {
        let lower = text.to_ascii_lowercase();
        let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric());
        let telling = words.filter(|word| word.len() > 3 && !COMMON.contains(word));
        telling.map(str::to_owned).collect::<Vec<_>>()
    };
    let about = words(about);
    words(variable).iter().any(|word| about.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_related_to_the_server_it_is_named_after() {
        for (variable, about, expected) in [
            ("GITHUB_TOKEN", "github npx", true),
            (
                "BRAVE_API_KEY",
                "search npx @modelcontextprotocol/server-brave-search",
                true,
            ),
            ("GITHUB_TOKEN", "gitlab npx", false),
            ("MCP_SERVER_TOKEN", "mcp-server-time", false),
            ("AWS_SECRET_ACCESS_KEY", "secret-access", false),
        ] {
            assert_eq!(is_related(variable, about), expected, "{variable} {about}");
        }
    }
}

//! Variables of the user's shell that a server does not inherit and may need. Handles names only, never values.

use switchboard_config::sort;
use switchboard_config::text::visible;

use super::causes::finding;
use super::{Finding, Severity};
use crate::transport::{Connector, VariablePurpose, WithheldVariable};

/// The maximum number of names in a finding.
const NAMED: usize = 8;
/// Words too common to relate a variable to a server.
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

/// Variables that a server does not inherit.
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

    /// Whether the variable is set in our environment but withheld.
    pub(super) fn has(&self, name: &str) -> bool {
        self.withheld.iter().any(|variable| variable.name == name)
    }

    /// The line of an entry that passes these variables, including those it passes already.
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

    /// The variables that a failed server may need: for its installation, for selecting code, and credentials.
    pub(super) fn missed(&self, server: &str, about: &str) -> Option<Finding> {
        let mut missed: Vec<&WithheldVariable> = self.withheld.iter().collect();
        missed.retain(|variable| match variable.purpose {
            VariablePurpose::Install => self.may_install,
            VariablePurpose::Code | VariablePurpose::Credential => true,
            VariablePurpose::Unknown => false,
        });
        sort::by_key(&mut missed, |variable| !is_related(&variable.name, about));
        self.note(server, "it may need variables from your shell", &missed)
    }

    /// Credentials related by name to a working server that does not inherit them.
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

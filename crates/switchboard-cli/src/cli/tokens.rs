//! Grammar of `switchboard tokens`.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::time;

#[derive(Debug, Subcommand)]
pub(crate) enum TokensCommand {
    /// Create a token and print it; it cannot be shown again
    Create(CreateTokenArguments),
    /// List all tokens: profile, expiry, last use
    #[command(visible_alias = "ls")]
    List,
    /// Revoke a token; running gateways end its sessions
    Revoke {
        /// Name of the token
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateTokenArguments {
    /// Name of the token, for the audit log and to revoke it
    pub(crate) name: String,
    /// Restrict the token to this profile
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Let the token expire after this time, such as 12h or 30d
    #[arg(long, value_name = "DURATION", value_parser = lifetime)]
    pub(crate) expires: Option<Duration>,
}

fn lifetime(text: &str) -> Result<Duration, String> {
    let length = time::length(text).filter(|length| !length.is_zero());
    length.ok_or_else(|| "expected a duration such as 90m, 12h or 30d".to_owned())
}

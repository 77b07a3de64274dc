//! Flags of commands that serve MCP clients.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Default, Args)]
pub(crate) struct ListenArguments {
    /// Serve over standard input and output (the default)
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Listen for HTTP on this port, address and port, or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// Accept connections from other machines
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Accept requests for this host name, optionally with a port
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Accept requests from web pages of this origin, such as `https://example.com`
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// File with a token that clients may send, created if missing; NAME=FILE to give it a name
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Vec<String>,
    /// Serve HTTPS with this certificate chain, in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM format
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Accept access tokens of this OAuth authorization server
    #[arg(long, value_name = "URL", requires = "oauth_audience")]
    pub(crate) oauth_issuer: Option<String>,
    /// URL of this server as clients know it, which access tokens must be for
    #[arg(long, value_name = "URL", requires = "oauth_issuer")]
    pub(crate) oauth_audience: Option<String>,
    /// Most requests of one client that run at once
    #[arg(long, value_name = "N")]
    pub(crate) max_requests: Option<NonZeroU32>,
    /// Most requests of one client per second; unlimited by default
    #[arg(long, value_name = "N")]
    pub(crate) max_rate: Option<NonZeroU32>,
}

impl ListenArguments {
    /// Uses the address and the token files of the environment where no flag sets them.
    pub(crate) fn or(&mut self, http: Option<String>, token_files: Option<&str>) {
        if !self.stdio && self.http.is_none() {
            self.http = http;
        }
        if let Some(files) = token_files
            && self.token_file.is_empty()
        {
            self.token_file = files.split(',').map(str::to_owned).collect();
        }
    }

    /// The first flag that has no effect without HTTP.
    pub(crate) fn http_flag(&self) -> Option<&'static str> {
        let flags = [
            (self.allow_remote, "--allow-remote"),
            (!self.allow_host.is_empty(), "--allow-host"),
            (!self.allow_origin.is_empty(), "--allow-origin"),
            (!self.token_file.is_empty(), "--token-file"),
            (self.tls_cert.is_some(), "--tls-cert"),
            (self.oauth_issuer.is_some(), "--oauth-issuer"),
            (self.max_requests.is_some(), "--max-requests"),
            (self.max_rate.is_some(), "--max-rate"),
        ];
        flags
            .into_iter()
            .find_map(|(is_set, flag)| is_set.then_some(flag))
    }
}

//! The front ends of commands that serve MCP clients: standard input and output, or HTTP.
//!
//! Standard output is reserved for the protocol. HTTP clients authenticate with a token, stored in a file that only its
//! owner can read; standard error shows how to connect, without the token.

use std::io::IsTerminal as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use switchboard::internal::auth::Fetcher;
use switchboard::internal::transport::http::{HttpClient, HttpSettings, ProxySettings};
use switchboard_config::text::visible;
use switchboard_server::Handler;
use switchboard_server::http::{
    Access, Address, HttpOptions, HttpServer, NamedTokens, OAuthOptions, TlsFiles, Token,
    TokenName, TokenSources,
};
use switchboard_server::stdio::{StdioOptions, serve};
use switchboard_store::SqliteStore;
use tokio::task::JoinSet;
use url::Url;

use crate::cli::ListenArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::{session, standard_streams, view};

/// Serves one client over standard input and output. `on_a_terminal` is printed if a user starts the server by hand.
pub(crate) async fn over_stdio(
    handler: Arc<dyn Handler>,
    context: &Context,
    mut interrupts: Interrupts,
    on_a_terminal: &str,
) -> Outcome {
    let startup_failure = |error: std::io::Error| Failure::failed("could not start").because(error);
    let input = standard_streams::input().map_err(startup_failure)?;
    let printer = &context.printer;
    printer.detail("serving over standard input and output");
    if std::io::stdin().is_terminal() {
        printer.note(on_a_terminal);
    }
    // A task of its own: a message then wakes only this one, not everything that the command waits for.
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let options = StdioOptions::default();
        serve(&*handler, input, standard_streams::output(), &options).await
    });
    tokio::select! {
        exit = interrupts.first() => Err(Failure::interrupted(exit)),
        ended = serving.join_next() => match ended {
            Some(Ok(Err(error))) => Err(Failure::failed(error.to_string()).because(error.source)),
            Some(Err(error)) => Err(Failure::failed("the server stopped").because(error)),
            Some(Ok(Ok(_))) | None => Ok(Exit::Done),
        },
    }
}

/// Serves clients over HTTP until a signal arrives. `what` is served, in words.
pub(crate) async fn over_http(
    options: HttpOptions,
    handler: Arc<dyn Handler>,
    what: &str,
    context: &Context,
    mut interrupts: Interrupts,
) -> Outcome {
    let socket = match &options.address {
        #[cfg(unix)]
        Address::Unix(path) => Some(path.clone()),
        _ => None,
    };
    let bound = HttpServer::bind(options, handler).await;
    let (server, shutdown) = bound.map_err(|error| {
        let failure = Failure::failed(error.to_string());
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let place = server
        .url()
        .or_else(|| Some(view::path(&socket?, &context.environment.home)));
    let place = place.unwrap_or_default();
    context.printer.note(format!("serving {what} at {place}"));
    let mut serving = std::pin::pin!(server.serve());
    tokio::select! {
        exit = interrupts.first() => {
            // Ctrl-C ends at once. SIGTERM, as a container or a service manager sends it, lets running requests finish.
            if exit == Exit::Terminated {
                shutdown.drain();
            } else {
                shutdown.stop();
            }
            serving.await;
            Err(Failure::interrupted(exit))
        }
        () = &mut serving => Ok(Exit::Done),
    }
}

/// Where the tokens of a command are.
pub(crate) struct TokenPlace {
    /// Name of the file in the state folder with the token `default`, unless other files are given.
    pub(crate) file: &'static str,
    /// Whether the tokens of `switchboard tokens` are accepted, too.
    pub(crate) has_named: bool,
}

/// Builds the address and access options. Prints where the token is.
pub(crate) fn http_options(
    arguments: &ListenArguments,
    tokens: &TokenPlace,
    context: &Context,
) -> Result<Option<HttpOptions>, Failure> {
    let Some(text) = arguments.http.as_deref() else {
        return match arguments.http_flag() {
            Some(flag) => Err(Failure::usage(format!("{flag} needs --http"))),
            None => Ok(None),
        };
    };
    let address = address(text).ok_or_else(|| {
        Failure::usage(format!("\"{}\" is not a valid address", visible(text)))
            .hint("use for example 8765, 127.0.0.1:8765 or unix:/run/user/1000/agent.sock")
    })?;
    let mut sources = TokenSources::default();
    for (name, file) in token_files(arguments, tokens, context) {
        Token::load_or_create(&file).map_err(|error| {
            let failure = Failure::failed(error.to_string());
            match error.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })?;
        let shown = view::path(&file, &context.environment.home);
        context.printer.note(format!(
            "clients send the token in {shown}: Authorization: Bearer $(cat {shown})"
        ));
        sources.files.push((name, file));
    }
    if tokens.has_named {
        let store = SqliteStore::new(session::store_file(context));
        sources.named = Some(NamedTokens::new(Arc::new(store)));
    }
    let mut options = HttpOptions::new(Access::Tokens(sources));
    options.address = address;
    options.allow_remote = arguments.allow_remote;
    options.allowed_hosts.clone_from(&arguments.allow_host);
    options.allowed_origins.clone_from(&arguments.allow_origin);
    options.cors = !arguments.allow_origin.is_empty();
    if let (Some(certificate), Some(key)) = (&arguments.tls_cert, &arguments.tls_key) {
        options.tls = Some(TlsFiles {
            certificate: context.project.join(certificate),
            key: context.project.join(key),
        });
    }
    options.oauth = oauth(arguments, context)?;
    if let Some(most) = arguments.max_requests {
        options.limits.max_requests_per_client = most.get() as usize;
    }
    options.limits.max_rate_per_client = arguments.max_rate;
    Ok(Some(options))
}

/// The authorization server whose access tokens are accepted.
fn oauth(arguments: &ListenArguments, context: &Context) -> Result<Option<OAuthOptions>, Failure> {
    let (Some(issuer), Some(audience)) = (&arguments.oauth_issuer, &arguments.oauth_audience)
    else {
        return Ok(None);
    };
    let url = |flag: &str, text: &str| {
        let url = Url::parse(text).ok();
        let url = url.filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
        url.ok_or_else(|| {
            Failure::usage(format!("{flag}: \"{}\" is not a valid URL", visible(text)))
                .hint("use a URL such as https://login.example.com")
        })
    };
    url("--oauth-issuer", issuer)?;
    let audience = url("--oauth-audience", audience)?;
    let variables = &context.environment.variables;
    let client = HttpClient::new(HttpSettings {
        proxy: ProxySettings::from_variables(|name| variables.get(name).map(str::to_owned)),
        ..HttpSettings::default()
    });
    let client = client.map_err(|error| Failure::failed("cannot use TLS").because(error))?;
    let fetcher = Fetcher::new(&client);
    Ok(Some(OAuthOptions::new(issuer.clone(), audience, fetcher)))
}

/// The token files, with the names of their tokens.
fn token_files(
    arguments: &ListenArguments,
    tokens: &TokenPlace,
    context: &Context,
) -> Vec<(TokenName, PathBuf)> {
    if arguments.token_file.is_empty() {
        let file = context.environment.state.join(tokens.file);
        return vec![(TokenName::default_token(), file)];
    }
    let files = arguments.token_file.iter().map(|text| {
        let named = text.split_once('=');
        let named = named.and_then(|(name, file)| Some((TokenName::new(name)?, file)));
        let (name, file) = named.unwrap_or_else(|| (TokenName::default_token(), text));
        (name, context.project.join(file))
    });
    files.collect()
}

/// Parses a loopback port, an address and port, or `unix:PATH`.
fn address(text: &str) -> Option<Address> {
    #[cfg(unix)]
    if let Some(path) = text.strip_prefix("unix:") {
        let path = PathBuf::from(path);
        return path.is_absolute().then_some(Address::Unix(path));
    }
    let loopback = |port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let port = text.strip_prefix(':').unwrap_or(text);
    let named = port.strip_prefix("localhost:").unwrap_or(port).parse().ok();
    let address = named.map(loopback).or_else(|| text.parse().ok())?;
    Some(Address::Tcp(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed() {
        let check = |text: &str, expected: Option<&str>| {
            let found = match address(text) {
                Some(Address::Tcp(address)) => Some(address.to_string()),
                Some(_) => Some("a socket".to_owned()),
                None => None,
            };
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("8765", Some("127.0.0.1:8765"));
        check(":8765", Some("127.0.0.1:8765"));
        check("localhost:0", Some("127.0.0.1:0"));
        check("0.0.0.0:80", Some("0.0.0.0:80"));
        check("[::1]:80", Some("[::1]:80"));
        check("example.org:80", None);
        check("127.0.0.1", None);
        check("99999", None);
        check("", None);
        if cfg!(unix) {
            check("unix:/run/agent.sock", Some("a socket"));
            check("unix:agent.sock", None);
        }
    }
}

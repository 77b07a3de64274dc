//! Fetches server entries from the provider at `cloud_url`, and caches them for an hour.
//!
//! An unreachable provider is not an error: the cached answer is used, with a warning.

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reqwest::Url;
use reqwest::blocking::{Client, Response};
use reqwest::redirect::{Attempt, Policy};
use serde::{Deserialize, Serialize};
use switchboard_config::document::Source;
use switchboard_config::files::{Disk, Files as _, detached_source};
use switchboard_config::format::Format;
use switchboard_config::mask;
use switchboard_config::scope::Scope;
use switchboard_config::text::visible;

use crate::printer::Printer;
use crate::store;

/// Name of the cache file in the state folder.
const CACHE_FILE: &str = "cloud.json";
/// Lifetime of a cached answer.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);
/// Timeout of the fetch: commands wait for it.
const DEADLINE: Duration = Duration::from_secs(5);
const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
const MAX_REDIRECTS: usize = 5;

#[derive(Debug, Serialize, Deserialize)]
struct Cached {
    url: String,
    fetched_at: u64,
    text: String,
}

/// Returns the provider's servers: from the cache if fresh, else fetched. If the fetch fails, warns and falls back to
/// the stale cache.
pub(crate) fn source(url: &str, state: &Path, printer: &Printer) -> Option<Source> {
    let cache = state.join(CACHE_FILE);
    let cached = read_cache(&cache).filter(|cached| cached.url == url);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    // If the clock was set back, a cached answer counts as stale.
    let fresh = |cached: &Cached| {
        now.checked_sub(cached.fetched_at)
            .is_some_and(|age| age < MAX_AGE.as_secs())
    };
    let shown = mask::url(url);
    let shown = visible(&shown);
    let text = match cached {
        Some(cached) if fresh(&cached) => {
            printer.detail(format!("using the cached servers of {shown}"));
            cached.text
        }
        cached => match fetch(url) {
            Ok(text) => {
                write_cache(
                    &cache,
                    &Cached {
                        url: url.to_owned(),
                        fetched_at: now,
                        text: text.clone(),
                    },
                    printer,
                );
                text
            }
            Err(reason) => {
                let outlook = match &cached {
                    Some(_) => "using its cached servers",
                    None => "its servers are missing",
                };
                let message = format!("cannot fetch {shown}; {outlook}: {}", visible(&reason));
                let hint = "check the address in [cloud] and the network, or remove [cloud]";
                printer.warning(message, Some(hint));
                cached?.text
            }
        },
    };
    Some(detached_source(Scope::Cloud, &shown, Format::Json, text))
}

/// The provider's servers from the cache, however old.
pub(crate) fn cached(url: &str, state: &Path) -> Option<Source> {
    let cached = read_cache(&state.join(CACHE_FILE)).filter(|cached| cached.url == url)?;
    let shown = mask::url(url);
    let shown = visible(&shown);
    Some(detached_source(
        Scope::Cloud,
        &shown,
        Format::Json,
        cached.text,
    ))
}

fn read_cache(path: &Path) -> Option<Cached> {
    let bytes = Disk.read(path).ok()??;
    serde_json::from_slice(&bytes).ok()
}

fn write_cache(path: &Path, cached: &Cached, printer: &Printer) {
    let written = serde_json::to_string(cached)
        .map_err(|error| error.to_string())
        .and_then(|text| store::replace(path, &text).map_err(|failure| failure.to_string()));
    if let Err(reason) = written {
        printer.detail(format!("cannot cache the provider's answer: {reason}"));
    }
}

/// Sends one request. Errors leave out the URL, which can contain a key.
fn fetch(url: &str) -> Result<String, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    let start = url.clone();
    let start_time = Instant::now();
    // Fails only if a crypto provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .timeout(DEADLINE)
        .redirect(Policy::custom(move |attempt| follow(attempt, &start)))
        .user_agent(concat!("switchboard/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(reason)?;
    let response = client
        .get(url)
        .header("Accept", "application/json")
        .send()
        .map_err(reason)?;
    if !response.status().is_success() {
        return Err(format!("status {}", response.status()));
    }
    let text = read_text(response, start_time)?;
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("the answer is not a JSON object: {error}")),
    }
}

/// Reads the body. The client's timeout applies to each read, so a slow trickle is cut off here.
fn read_text(mut response: Response, start_time: Instant) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = response
            .read(&mut piece)
            .map_err(|error| error.to_string())?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(piece.get(..count).unwrap_or_default());
        if bytes.len() > MAX_BODY_BYTES {
            return Err(format!("the answer exceeds {MAX_BODY_BYTES} bytes"));
        }
        if start_time.elapsed() > DEADLINE {
            return Err(too_slow());
        }
    }
    String::from_utf8(bytes).map_err(|_| "the answer is not UTF-8".to_owned())
}

fn too_slow() -> String {
    format!("no answer within {} seconds", DEADLINE.as_secs())
}

fn follow(attempt: Attempt<'_>, start: &Url) -> reqwest::redirect::Action {
    // A remote provider must not redirect us to a server on this machine.
    let safe =
        attempt.url().scheme() == "https" || (is_loopback(attempt.url()) && is_loopback(start));
    if !safe {
        attempt.error("redirect to an address that is not https")
    } else if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error("too many redirects")
    } else {
        attempt.follow()
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    if error.is_timeout() {
        return too_slow();
    }
    // The outer error says only that a request failed; the innermost has the cause.
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

//! Servers that a provider hands out: fetched from the configured address, kept for an hour.
//!
//! A provider that cannot be reached stops nobody: the last answer is used, with a warning.

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

/// The last answer, in the state folder.
const CACHE_FILE: &str = "cloud.json";
/// How long an answer is believed.
const FRESH: Duration = Duration::from_secs(60 * 60);
/// A command must not wait long for somebody else's machine.
const DEADLINE: Duration = Duration::from_secs(5);
/// No answer is larger.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;
const MOST_REDIRECTS: usize = 5;

#[derive(Debug, Serialize, Deserialize)]
struct Cached {
    url: String,
    fetched_at: u64,
    text: String,
}

/// The provider's servers: a fresh answer, or the last one with a warning, or nothing with a warning.
pub(crate) fn source(url: &str, state: &Path, printer: &Printer) -> Option<Source> {
    let cache = state.join(CACHE_FILE);
    let cached = read_cache(&cache).filter(|cached| cached.url == url);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    // A clock that went backwards makes an answer stale, not fresh for years.
    let fresh = |cached: &Cached| {
        now.checked_sub(cached.fetched_at)
            .is_some_and(|age| age < FRESH.as_secs())
    };
    let shown = mask::url(url);
    let shown = visible(&shown);
    let text = match cached {
        Some(cached) if fresh(&cached) => {
            printer.detail(format!("using the servers that {shown} gave earlier"));
            cached.text
        }
        cached => match fetch(url) {
            Ok(text) => {
                keep(
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
                    Some(_) => "the servers it gave earlier are used",
                    None => "its servers are not there",
                };
                let message = format!("{shown} cannot be used, so {outlook}: {}", visible(&reason));
                let hint = "check the address in [cloud] and the network, or remove [cloud]";
                printer.warning(message, Some(hint));
                cached?.text
            }
        },
    };
    Some(detached_source(Scope::Cloud, &shown, Format::Json, text))
}

fn read_cache(path: &Path) -> Option<Cached> {
    let bytes = Disk.read(path).ok()??;
    serde_json::from_slice(&bytes).ok()
}

fn keep(path: &Path, cached: &Cached, printer: &Printer) {
    let written = serde_json::to_string(cached)
        .map_err(|error| error.to_string())
        .and_then(|text| store::replace(path, &text).map_err(|failure| failure.to_string()));
    if let Err(reason) = written {
        printer.detail(format!("the provider's answer was not kept: {reason}"));
    }
}

/// One request. The address itself stays out of the reasons: it can hold a key.
fn fetch(url: &str) -> Result<String, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    let start = url.clone();
    let start_time = Instant::now();
    // Fails only when a provider is installed already, which is just as good.
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
        return Err(format!("it answered with status {}", response.status()));
    }
    let text = read_text(response, start_time)?;
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("it did not answer with a JSON object: {error}")),
    }
}

/// Reads the answer. The client's deadline is for each piece of it, so one that trickles is cut off here.
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
        if bytes.len() > LARGEST_ANSWER {
            return Err(format!("it answered with more than {LARGEST_ANSWER} bytes"));
        }
        if start_time.elapsed() > DEADLINE {
            return Err(too_slow());
        }
    }
    String::from_utf8(bytes).map_err(|_| "it did not answer with UTF-8 text".to_owned())
}

fn too_slow() -> String {
    format!("it did not answer within {} seconds", DEADLINE.as_secs())
}

fn follow(attempt: Attempt<'_>, start: &Url) -> reqwest::redirect::Action {
    // A provider on the internet must not send us to a server of this machine.
    let safe =
        attempt.url().scheme() == "https" || (is_loopback(attempt.url()) && is_loopback(start));
    if !safe {
        attempt.error("it redirects to an address that is not https")
    } else if attempt.previous().len() > MOST_REDIRECTS {
        attempt.error("it redirects too often")
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
    // The outer error says only that a request failed; the innermost says why.
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

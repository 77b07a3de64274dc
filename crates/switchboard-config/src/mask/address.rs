//! Finds secrets in URLs: user names and passwords, tokens in path segments, query values, and the fragment. The host
//! is never masked: the user decides about it.

use std::ops::Range;

use url::Url;

use super::scan::is_reference;
use super::{names, shape};

/// Ranges of the secrets in a URL with a scheme, in order.
pub(super) fn secrets(address: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let fragment = address.find('#');
    let before_fragment = fragment.unwrap_or(address.len());
    let rest = address.get(..before_fragment).unwrap_or(address);
    let query = rest.find('?');
    let base_end = query.unwrap_or(rest.len());
    let base = rest.get(..base_end).unwrap_or(rest);
    let path = user(base, query.map(|_| rest), &mut found);
    segments(address, path.min(base_end)..base_end, &mut found);
    if let Some(query) = query.filter(|query| *query >= path) {
        parameters(address, query + 1..before_fragment, &mut found);
    }
    if let Some(fragment) = fragment.filter(|fragment| *fragment + 1 < address.len()) {
        let text = address.get(fragment + 1..).unwrap_or_default();
        if !is_reference(text) && path <= fragment {
            found.push(fragment + 1..address.len());
        }
    }
    found
}

/// Finds the user information, and returns the offset of the host.
fn user(base: &str, with_query: Option<&str>, found: &mut Vec<Range<usize>>) -> usize {
    let Some(start) = base.find("://").map(|at| at + "://".len()) else {
        // A URL without a scheme may still have a password, whose start is unknown.
        return match base.rfind('@') {
            Some(at) if at > 0 => {
                found.push(0..at);
                at
            }
            _ => 0,
        };
    };
    let rest = base.get(start..).unwrap_or_default();
    let authority = rest.split(['/', '\\']).next().unwrap_or_default();
    if let Some(at) = authority.rfind('@') {
        if at > 0 {
            found.push(start..start + at);
        }
        return start + authority.len();
    }
    // A password with a slash or question mark ends the authority early: then the text after the colon is not a port.
    let has_port = authority
        .split_once(':')
        .is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let whole = with_query.unwrap_or(base);
    // `[::1]`, and hosts given by a variable.
    let is_odd_host = authority.starts_with('[') || authority.contains('$');
    if !has_port
        && !is_odd_host
        && let Some(at) = whole.rfind('@').filter(|at| *at > start)
    {
        found.push(start..at);
        return at;
    }
    start + authority.len()
}

/// Finds path segments that are tokens.
fn segments(address: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let path = address.get(range.clone()).unwrap_or_default();
    let mut start = range.start;
    let mut before_is_secret = false;
    for segment in path.split('/') {
        let end = start + segment.len();
        match segment.split_once('=') {
            Some((name, secret)) if is_secret_parameter(name, secret) => {
                found.push(of_parameter(start, name)..end);
            }
            _ if is_key(segment) || (before_is_secret && is_short_token(segment)) => {
                found.push(start..end);
            }
            _ => {}
        }
        before_is_secret = !segment.contains('=') && names::sounds_secret(segment);
        start = end + 1;
    }
}

/// Finds query values that are secret by name or appearance.
fn parameters(address: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let query = address.get(range.clone()).unwrap_or_default();
    let mut start = range.start;
    for part in query.split(['&', ';']) {
        let end = start + part.len();
        match part.split_once('=') {
            Some((name, secret)) if is_secret_parameter(name, secret) => {
                found.push(of_parameter(start, name)..end);
            }
            None if is_key(part) => found.push(start..end),
            _ => {}
        }
        start = end + 1;
    }
}

/// Start of the secret in a parameter: its value, or its name if that is a key itself.
fn of_parameter(start: usize, name: &str) -> usize {
    if is_key(name) {
        start
    } else {
        start + name.len() + 1
    }
}

fn is_secret_parameter(name: &str, secret: &str) -> bool {
    // A URL in a parameter may contain a password.
    let has_user = secret.contains('@') && (secret.contains("://") || secret.contains("%3A%2F%2F"));
    !secret.is_empty()
        && !is_reference(secret)
        && (names::sounds_secret(name) || has_user || is_key(secret))
}

fn is_key(text: &str) -> bool {
    shape::begins_like_a_key(text) || shape::is_token(text)
}

/// Whether a segment after `token` or `key` is a token rather than a word.
fn is_short_token(segment: &str) -> bool {
    segment.len() >= 6
        && segment.bytes().any(|byte| byte.is_ascii_digit())
        && segment.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Normalizes a URL: lowercase scheme and host, without default port, trailing slash, fragment and user name.
pub(crate) fn url_signature(address: &str) -> String {
    let Ok(mut url) = Url::parse(address) else {
        return address.to_owned();
    };
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    let text = String::from(url);
    text.strip_suffix('/').map(String::from).unwrap_or(text)
}

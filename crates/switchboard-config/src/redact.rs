//! Masks known secrets in text: in errors, logs and echoed values.
//!
//! [`crate::mask`] guesses from the text; this module knows the values. A [`Redactor`] belongs to one server (or one
//! model provider) and knows the secrets passed to it. Tool results are not redacted.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use crate::entry::ServerEntry;
use crate::expand::is_only_references;
use crate::mask;
use crate::secret::Secret;

/// Shorter values are not masked: they would match unrelated words.
pub const SHORTEST_KNOWN: usize = 8;

/// Maximum number of known values; renewed tokens evict older ones.
const MOST_KNOWN: usize = 64;

/// Masks the secrets of one server. Cheap to clone; clones share their secrets.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Vec<Known>>>);

/// A secret in all its encodings.
struct Known {
    secret: String,
    spellings: Vec<String>,
}

impl Redactor {
    /// Learns the secrets of an entry. Its references must be expanded; `variable` looks up the variables that it
    /// names.
    pub fn of_entry(entry: &ServerEntry, variable: impl Fn(&str) -> Option<String>) -> Self {
        let redactor = Self::default();
        for (name, value) in &entry.headers {
            redactor.learn_header(name, value);
        }
        for (name, value) in &entry.env {
            redactor.learn_variable(name, value.expose());
        }
        for name in &entry.env_vars {
            redactor.learn_variable(name, &variable(name).unwrap_or_default());
        }
        let oauth = entry.oauth.iter();
        let named = oauth.clone().flat_map(|oauth| {
            [
                &oauth.client_secret_env_var,
                &oauth.private_key_env_var,
                &oauth.idp_client_secret_env_var,
                &oauth.assertion_env_var,
            ]
        });
        let bearer = [&entry.bearer_token_env_var];
        for name in named.chain(bearer).flatten() {
            redactor.learn(&Secret::new(variable(name).unwrap_or_default()));
        }
        for secret in oauth.filter_map(|oauth| oauth.client_secret.as_ref()) {
            redactor.learn(secret);
        }
        let words = mask::secrets_of_arguments(&entry.args).into_iter();
        let helper = mask::secrets_of_arguments(&entry.headers_helper);
        let address = mask::secrets_of_url(entry.url.as_deref().unwrap_or_default());
        for secret in words.chain(helper).chain(address) {
            redactor.learn(&Secret::new(secret));
        }
        redactor
    }

    /// Masks this value from now on, unless it is shorter than [`SHORTEST_KNOWN`].
    pub fn learn(&self, secret: &Secret) {
        let secret = secret.expose().trim();
        if secret.len() < SHORTEST_KNOWN || is_only_references(secret) {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.iter().any(|known| known.secret == secret) {
            return;
        }
        if known.len() >= MOST_KNOWN {
            known.remove(0);
        }
        known.push(Known {
            secret: secret.to_owned(),
            spellings: spellings(secret),
        });
    }

    /// Masks the value of a header, with and without the authentication scheme.
    pub fn learn_header(&self, name: &str, value: &Secret) {
        if mask::is_harmless_header(name) {
            return;
        }
        self.learn(value);
        if let Some((_, credential)) = value.expose().trim().split_once(' ') {
            self.learn(&Secret::new(credential));
        }
    }

    /// Masks the value of a variable if it is secret by name or appearance.
    fn learn_variable(&self, name: &str, value: &str) {
        if mask::sounds_secret(name) {
            self.learn(&Secret::new(value));
        }
        let parts = mask::secrets_of_argument(value).into_iter();
        for secret in parts.chain(mask::secrets_of_url(value)) {
            self.learn(&Secret::new(secret));
        }
    }

    /// Masks all known secrets, and everything that is secret by name or appearance.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut places = mask::places_in_message(text);
        places.extend(self.known_places(text));
        mask::masked(text, merged(places))
    }

    /// Masks only known secrets.
    pub fn redact_known<'t>(&self, text: &'t str) -> Cow<'t, str> {
        mask::masked(text, merged(self.known_places(text)))
    }

    fn known_places(&self, text: &str) -> Vec<Range<usize>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let spellings = known.iter().flat_map(|known| &known.spellings);
        let found = spellings.flat_map(|spelling| text.match_indices(spelling.as_str()));
        found.map(|(at, found)| at..at + found.len()).collect()
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// Sorts ranges and merges overlapping ones.
fn merged(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_by_key(|place| place.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(places.len());
    for place in places {
        match merged.last_mut() {
            Some(last) if place.start < last.end => last.end = last.end.max(place.end),
            _ => merged.push(place),
        }
    }
    merged
}

/// Encodings of a secret: plain, JSON, percent-encoded, base64 alone or as part of a longer text.
fn spellings(secret: &str) -> Vec<String> {
    let mut spellings = vec![secret.to_owned()];
    let mut add = |spelling: String| {
        if spelling.len() >= SHORTEST_KNOWN && !spellings.contains(&spelling) {
            spellings.push(spelling);
        }
    };
    let json = serde_json::to_string(secret).unwrap_or_default();
    let json = json.trim_start_matches('"');
    let json = json.strip_suffix('"').unwrap_or(json);
    add(json.to_owned());
    add(json.replace('/', "\\/"));
    for space in ["%20", "+"] {
        for digits in [*b"0123456789ABCDEF", *b"0123456789abcdef"] {
            add(percent_encoded(secret, space, digits));
        }
    }
    for alphabet in [STANDARD, URL_SAFE] {
        for offset in 0..3 {
            add(base64_core(secret.as_bytes(), offset, alphabet));
        }
    }
    spellings
}

/// Percent-encodes a text as a query value.
fn percent_encoded(secret: &str, space: &str, digits: [u8; 16]) -> String {
    let digit = |nibble: u8| char::from(digits.get(usize::from(nibble)).copied().unwrap_or(b'0'));
    let mut encoded = String::with_capacity(secret.len() * 3);
    for byte in secret.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push_str(space),
            byte => encoded.extend(['%', digit(byte >> 4), digit(byte & 0xF)]),
        }
    }
    encoded
}

const STANDARD: [u8; 2] = *b"+/";
const URL_SAFE: [u8; 2] = *b"-_";

/// The base64 characters that depend only on this text, if `offset` bytes precede it: characters at its ends that also
/// encode neighbouring bytes are left out.
fn base64_core(bytes: &[u8], offset: usize, alphabet: [u8; 2]) -> String {
    let padded: Vec<u8> = std::iter::repeat_n(0, offset)
        .chain(bytes.iter().copied())
        .collect();
    let bits = padded.len() * 8;
    let first = (offset * 8).div_ceil(6);
    let last = bits / 6;
    let sextet = |index: usize| {
        (0..6).fold(0_u8, |value, bit| {
            let at = index * 6 + bit;
            let byte = padded.get(at / 8).copied().unwrap_or_default();
            (value << 1) | ((byte >> (7 - at % 8)) & 1)
        })
    };
    (first..last)
        .map(|index| match sextet(index) {
            value @ 0..=25 => char::from(b'A' + value),
            value @ 26..=51 => char::from(b'a' + value - 26),
            value @ 52..=61 => char::from(b'0' + value - 52),
            62 => char::from(alphabet[0]),
            _ => char::from(alphabet[1]),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_secret_is_masked_in_every_spelling() {
        let redactor = Redactor::default();
        redactor.learn(&Secret::new("pä/ss \"w+rd"));
        let check = |text: &str, shown: &str| assert_eq!(redactor.redact(text), shown, "{text}");
        check("got pä/ss \"w+rd!", "got ********!");
        check(r#"got pä/ss \"w+rd!"#, "got ********!");
        check(r#"got pä\/ss \"w+rd!"#, "got ********!");
        check("got p%C3%A4%2Fss%20%22w%2Brd!", "got ********!");
        check("got p%c3%a4%2fss+%22w%2brd!", "got ********!");
        // base64 of `pä/ss "w+rd`, alone and after one and two other bytes; the remaining characters reveal nothing.
        check("got cMOkL3NzICJ3K3Jk!", "got ********!");
        check("got eHDDpC9zcyAidytyZA==!", "got eH********A==!");
        check("got eHhww6Qvc3MgIncrcmQ=!", "got eHh********Q=!");
        check("nothing here", "nothing here");
    }

    #[test]
    fn what_an_entry_gives_to_its_server_is_known() {
        let pair = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
        let entry = ServerEntry {
            args: [
                "--api-key",
                "argument-secret",
                "--header",
                "X-Key: header-in-args",
            ]
            .map(String::from)
            .to_vec(),
            env: vec![
                pair("API_TOKEN", "token-of-env"),
                pair("LEVEL", "debugging"),
                pair("DATABASE", "postgres://u:database-pw@h/x"),
                pair("SHORT_TOKEN", "short"),
            ],
            env_vars: vec!["PASSED_TOKEN".to_owned(), "LANG".to_owned()],
            url: Some("https://h/mcp?key=key-of-address".to_owned()),
            headers: vec![
                pair("Authorization", "Bearer header-token"),
                pair("X-Team", "team-secret"),
                pair("Content-Type", "application/json"),
            ],
            bearer_token_env_var: Some("BEARER".to_owned()),
            ..ServerEntry::default()
        };
        let redactor = Redactor::of_entry(&entry, |name| Some(format!("value of {name}")));
        for secret in [
            "argument-secret",
            "header-in-args",
            "token-of-env",
            "database-pw",
            "value of PASSED_TOKEN",
            "key-of-address",
            "header-token",
            "team-secret",
            "value of BEARER",
        ] {
            let text = format!("it is <{secret}>.");
            assert_eq!(redactor.redact(&text), "it is <********>.", "{secret}");
        }
        for shown in ["debugging", "short", "value of LANG", "application/json"] {
            assert_eq!(redactor.redact(shown), shown);
        }
        assert_eq!(format!("{redactor:?}"), "Redactor { .. }");
    }

    #[test]
    fn tokens_that_are_renewed_do_not_pile_up() {
        let redactor = Redactor::default();
        for number in 0..1_000 {
            redactor.learn(&Secret::new(format!("renewed-{number:04}")));
        }
        assert_eq!(
            redactor.redact("renewed-0999 renewed-0000"),
            "******** renewed-0000"
        );
    }

    #[test]
    fn places_that_overlap_are_masked_once() {
        let redactor = Redactor::default();
        redactor.learn(&Secret::new("abcdefgh"));
        redactor.learn(&Secret::new("efghijkl"));
        assert_eq!(redactor.redact("x abcdefghijkl y"), "x ******** y");
        assert_eq!(redactor.redact("token=abcdefgh,"), "token=********,");
    }
}

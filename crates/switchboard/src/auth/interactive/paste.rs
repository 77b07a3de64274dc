//! Parser for an authorization response pasted by the user.
//!
//! Accepts the whole URL from the address bar, its query, the bare code that a page shows, or `code#state`, with
//! spaces, quotes and line breaks around or within it. Input that is not a response to this login is rejected with a
//! reason, and the user can paste again.

use switchboard_config::secret::Secret;
use url::Url;

use crate::auth::Callback;

/// Maximum length of pasted text.
const MAXIMUM_BYTES: usize = 16 * 1024;

/// Reason for rejecting pasted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PasteError {
    /// Only whitespace and quotes.
    #[error("nothing was pasted")]
    Empty,
    /// Exceeds the length limit.
    #[error("that is too long for a login response")]
    TooLong,
    /// The authorization URL itself.
    #[error("that is the URL to open, not the one it redirects to")]
    AuthorizationUrl,
    /// A URL other than the redirect URI.
    #[error("that is not the redirect URL of this login")]
    OtherAddress,
    /// Neither a code nor an error.
    #[error("it contains no code")]
    NoCode,
    /// The `state` is missing or differs.
    #[error("that is the response to another login")]
    OtherLogin,
}

impl PasteError {
    /// Returns what to paste instead.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::OtherLogin => "open the newest URL and paste the one it redirects to",
            _ => "paste the complete URL from the browser's address bar",
        }
    }
}

/// Parses pasted text as the response to the login with this state.
pub(super) fn read(text: &str, redirect_uri: &Url, state: &Secret) -> Result<Callback, PasteError> {
    if text.len() > MAXIMUM_BYTES {
        return Err(PasteError::TooLong);
    }
    // Terminals break long lines, and mail clients put quotes or brackets around URLs.
    let text: String = text.split_whitespace().collect();
    let text = text.trim_matches(['"', '\'', '<', '>', '`']);
    if text.is_empty() {
        return Err(PasteError::Empty);
    }
    let callback = if let Some((scheme, _)) = text.split_once("://") {
        let is_scheme = scheme
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || "+-.".contains(one));
        let url = Url::parse(text).ok().filter(|_| is_scheme);
        let url = url.ok_or(PasteError::OtherAddress)?;
        let is_redirect = url.scheme() == redirect_uri.scheme()
            && url.host() == redirect_uri.host()
            && url.port_or_known_default() == redirect_uri.port_or_known_default()
            && url.path() == redirect_uri.path();
        if !is_redirect {
            let asks = url.query_pairs().any(|(name, _)| name == "response_type");
            return Err(if asks {
                PasteError::AuthorizationUrl
            } else {
                PasteError::OtherAddress
            });
        }
        Callback::from_query(url.query().unwrap_or_default())
    } else if text.starts_with('?') || text.contains("code=") || text.contains("error=") {
        let query = text.rsplit_once('?').map_or(text, |(_, query)| query);
        Callback::from_query(query)
    } else {
        // A bare code comes without a state. The user asserts that it answers this login, and PKCE prevents redeeming a
        // code issued for another.
        let (code, given) = text.split_once('#').unwrap_or((text, state.expose()));
        // An `&` indicates a truncated URL; codes do not contain it.
        if code.is_empty()
            || !code
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'&')
        {
            return Err(PasteError::NoCode);
        }
        Callback {
            code: Some(Secret::new(code)),
            state: Some(Secret::new(given)),
            ..Callback::default()
        }
    };
    if callback.code.is_none() && callback.error.is_none() {
        return Err(PasteError::NoCode);
    }
    if callback.state.as_ref() != Some(state) {
        return Err(PasteError::OtherLogin);
    }
    Ok(callback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Option<String>, Option<String>), PasteError> {
        let redirect = Url::parse("http://127.0.0.1:8765/callback").unwrap();
        let callback = super::read(text, &redirect, &Secret::new("state-1"))?;
        assert_eq!(callback.state, Some(Secret::new("state-1")));
        let code = callback.code.map(|code| code.expose().to_owned());
        Ok((code, callback.error))
    }

    #[test]
    fn an_answer_is_found_however_it_was_pasted() {
        let code = |code: &str| Ok((Some(code.to_owned()), None));
        for text in [
            "http://127.0.0.1:8765/callback?code=a%2Fb&state=state-1",
            "  http://127.0.0.1:8765/callback?state=state-1&code=a%2Fb \n",
            "'http://127.0.0.1:8765/call\n  back?code=a%2Fb&sta\r\nte=state-1'",
            "<http://127.0.0.1:8765/callback?code=a%2Fb&state=state-1#>",
            "/callback?code=a%2Fb&state=state-1",
            "?code=a%2Fb&state=state-1",
            "code=a%2Fb&state=state-1",
            "a/b",
            "\ta/b\n",
            "a/b#state-1",
        ] {
            assert_eq!(read(text), code("a/b"), "{text}");
        }
        let refused = read("http://127.0.0.1:8765/callback?error=access_denied&state=state-1");
        assert_eq!(refused, Ok((None, Some("access_denied".to_owned()))));
    }

    #[test]
    fn what_is_no_answer_is_refused_with_the_reason() {
        let check = |text: &str, expected| assert_eq!(read(text), Err(expected), "{text}");
        check("", PasteError::Empty);
        check(" \n '' ", PasteError::Empty);
        check(&"x".repeat(20_000), PasteError::TooLong);
        check(
            "https://issuer.example/authorize?response_type=code&state=state-1",
            PasteError::AuthorizationUrl,
        );
        check(
            "https://evil.example/callback?code=a&state=state-1",
            PasteError::OtherAddress,
        );
        check(
            "http://127.0.0.1:8766/callback?code=a&state=state-1",
            PasteError::OtherAddress,
        );
        check("http://", PasteError::OtherAddress);
        check(
            "http://127.0.0.1:8765/callback?state=state-1",
            PasteError::NoCode,
        );
        check("?code=a&code=b&state=state-1", PasteError::NoCode);
        check("#state-1", PasteError::NoCode);
        check("&state=state-1", PasteError::NoCode);
        check("na\u{ef}ve", PasteError::NoCode);
        check(
            "http://127.0.0.1:8765/callback?code=a&state=other",
            PasteError::OtherLogin,
        );
        check(
            "http://127.0.0.1:8765/callback?code=a",
            PasteError::OtherLogin,
        );
        check("a/b#other", PasteError::OtherLogin);
        check("?error=access_denied", PasteError::OtherLogin);
    }
    #[test]
    fn a_long_code_is_accepted() {
        let code = "x".repeat(16 * 1024);
        assert_eq!(read(&code), Ok((Some(code.clone()), None)));
    }
    #[test]
    fn the_hint_says_what_to_paste() {
        let hint = |error: PasteError| error.hint();
        assert!(hint(PasteError::OtherLogin).contains("newest URL"));
        assert!(hint(PasteError::NoCode).contains("address bar"));
    }
}

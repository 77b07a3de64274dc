//! Seals state that leaves for a client: only the same client can bring it back, for the same request and in time.
//!
//! In the stateless era a server that needs input ends the request, and the client repeats it with the input and the
//! server's state. What we hand out is encrypted and authenticated together with the client and a digest of the request.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// How long a client may take to provide input.
const LIFETIME: Duration = Duration::from_secs(60 * 60);

/// What a client brings back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    /// State of the server that asked; `None` if it sent none.
    Server {
        server: String,
        state: Option<String>,
    },
    /// A call that waits in this gateway.
    Waiting { call: u64 },
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    state: State,
    /// Seconds since 1970.
    expires: u64,
}

/// Identifies a request beyond its repetitions: its method, its target and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestDigest([u8; 32]);

impl RequestDigest {
    pub(super) fn of(method: &str, target: &str, arguments: Option<&RawValue>) -> Self {
        // Parsed, so that another order of the members or other spaces do not matter.
        let arguments: Value = arguments
            .and_then(|arguments| serde_json::from_str(arguments.get()).ok())
            .unwrap_or_default();
        let mut digest = Sha256::new();
        for part in [method, target, &arguments.to_string()] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        Self(digest.finalize().into())
    }
}

/// Seals and opens state, with a key of its own.
pub(super) struct Sealer {
    key: LessSafeKey,
    random: SystemRandom,
}

impl Sealer {
    /// `None` if the system provides no random numbers.
    pub(super) fn new() -> Option<Self> {
        let random = SystemRandom::new();
        let mut key = [0; 32];
        random.fill(&mut key).ok()?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).ok()?;
        Some(Self {
            key: LessSafeKey::new(key),
            random,
        })
    }

    pub(super) fn seal(
        &self,
        client: &str,
        request: &RequestDigest,
        state: State,
    ) -> Option<String> {
        let expires = now() + LIFETIME.as_secs();
        let mut text = serde_json::to_vec(&Sealed { state, expires }).ok()?;
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let bound = Nonce::assume_unique_for_key(nonce);
        let context = context(client, request);
        self.key
            .seal_in_place_append_tag(bound, Aad::from(context), &mut text)
            .ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat()))
    }

    /// `None` if it was not sealed here for this client and request, or has expired.
    pub(super) fn open(
        &self,
        client: &str,
        request: &RequestDigest,
        sealed: &str,
    ) -> Option<State> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let context = context(client, request);
        let opened = self.key.open_in_place(nonce, Aad::from(context), &mut text);
        let opened: Sealed = serde_json::from_slice(opened.ok()?).ok()?;
        (now() < opened.expires).then_some(opened.state)
    }
}

fn context(client: &str, request: &RequestDigest) -> Vec<u8> {
    [&request.0[..], client.as_bytes()].concat()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(arguments: &str) -> RequestDigest {
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        RequestDigest::of("tools/call", "files/read", Some(&arguments))
    }

    #[test]
    fn state_returns_only_to_its_client_and_request() {
        let sealer = Sealer::new().unwrap();
        let state = State::Server {
            server: "files".into(),
            state: Some("opaque".into()),
        };
        let request = digest(r#"{"a":1,"b":2}"#);
        let text = sealer.seal("alice", &request, state.clone()).unwrap();
        assert!(!text.contains("opaque"), "{text}");
        // Another order of the members is the same request.
        let again = digest(r#"{ "b": 2, "a": 1 }"#);
        assert_eq!(sealer.open("alice", &again, &text), Some(state));
        assert_eq!(sealer.open("mallory", &request, &text), None);
        assert_eq!(sealer.open("alice", &digest(r#"{"a":2}"#), &text), None);
        assert_eq!(Sealer::new().unwrap().open("alice", &request, &text), None);
        let cut = &text[..text.len() - 2];
        assert_eq!(sealer.open("alice", &request, cut), None);
        assert_eq!(sealer.open("alice", &request, ""), None);
    }
}

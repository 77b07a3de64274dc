//! Seals state that leaves for a client: only the same client can bring it back, for the same request and in time.
//!
//! In the stateless era a server that needs input ends the request, and the client repeats it with the input and the
//! server's state. What we hand out is encrypted and authenticated together with the client and a digest of the request.
//! Session ids are sealed, too. Both contain the id of the node that made them, so that another node with the same key
//! can tell whose they are.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// What the seal of a session id is bound to.
const SESSION: &[u8] = b"session";
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

/// A process that serves a gateway. All that waits in its memory is pinned to it: sessions of the stateful era, and calls
/// that wait for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeId(u64);

/// The secret of an installation: the nodes that have it can open what any of them has sealed.
pub(super) struct GatewayKey([u8; 32]);

impl GatewayKey {
    /// `None` if the system provides no random numbers.
    pub(super) fn random() -> Option<Self> {
        let mut key = [0; 32];
        SystemRandom::new().fill(&mut key).ok()?;
        Some(Self(key))
    }

    /// A key for one purpose. Knowing it reveals no other.
    pub(super) fn derived(&self, purpose: &str) -> [u8; 32] {
        let tag = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, &self.0),
            purpose.as_bytes(),
        );
        let mut key = [0; 32];
        for (to, from) in key.iter_mut().zip(tag.as_ref()) {
            *to = *from;
        }
        key
    }
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    node: NodeId,
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

/// Seals and opens state, on one node.
pub(super) struct Sealer {
    key: LessSafeKey,
    random: SystemRandom,
    node: NodeId,
}

impl Sealer {
    /// `None` if the system provides no random numbers.
    pub(super) fn new(key: &GatewayKey) -> Option<Self> {
        let random = SystemRandom::new();
        let mut node = [0; 8];
        random.fill(&mut node).ok()?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key.derived("seal")).ok()?;
        Some(Self {
            key: LessSafeKey::new(key),
            random,
            node: NodeId(u64::from_be_bytes(node)),
        })
    }

    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// A new session id, of 48 characters. `None` if the system provides no random numbers.
    pub(super) fn session_id(&self) -> Option<String> {
        // The nonce makes it unique, and the tag unguessable.
        self.encrypted(SESSION, self.node.0.to_be_bytes().to_vec())
    }

    /// The node that made a session id; `None` if none of this installation did.
    pub(super) fn node_of_session(&self, id: &str) -> Option<NodeId> {
        let node = self.decrypted(SESSION, id)?;
        Some(NodeId(u64::from_be_bytes(node.try_into().ok()?)))
    }

    /// Encrypts and authenticates a text together with its context.
    fn encrypted(&self, context: &[u8], mut text: Vec<u8>) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let bound = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(bound, Aad::from(context), &mut text)
            .ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat()))
    }

    fn decrypted(&self, context: &[u8], sealed: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let opened = self.key.open_in_place(nonce, Aad::from(context), &mut text);
        Some(opened.ok()?.to_vec())
    }

    pub(super) fn seal(
        &self,
        client: &str,
        request: &RequestDigest,
        state: State,
    ) -> Option<String> {
        let expires = now() + LIFETIME.as_secs();
        let node = self.node;
        let sealed = Sealed {
            node,
            state,
            expires,
        };
        let text = serde_json::to_vec(&sealed).ok()?;
        self.encrypted(&context(client, request), text)
    }

    /// The state, and the node that sealed it. `None` if it was not sealed for this client and request, or has expired.
    pub(super) fn open(
        &self,
        client: &str,
        request: &RequestDigest,
        sealed: &str,
    ) -> Option<(NodeId, State)> {
        let text = self.decrypted(&context(client, request), sealed)?;
        let opened: Sealed = serde_json::from_slice(&text).ok()?;
        (now() < opened.expires).then_some((opened.node, opened.state))
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

    fn sealer() -> Sealer {
        Sealer::new(&GatewayKey::random().unwrap()).unwrap()
    }

    #[test]
    fn nodes_with_one_key_recognize_what_the_others_have_sealed() {
        let key = GatewayKey::random().unwrap();
        let (first, second) = (Sealer::new(&key).unwrap(), Sealer::new(&key).unwrap());
        assert_ne!(first.node(), second.node());
        let id = first.session_id().unwrap();
        assert_eq!(id.len(), 48);
        assert_ne!(Some(&id), first.session_id().as_ref());
        assert_eq!(second.node_of_session(&id), Some(first.node()));
        assert_eq!(sealer().node_of_session(&id), None);
        assert_eq!(first.node_of_session("forged"), None);
        let request = digest("{}");
        let text = first.seal("alice", &request, State::Waiting { call: 7 });
        let opened = second.open("alice", &request, &text.unwrap());
        assert_eq!(opened, Some((first.node(), State::Waiting { call: 7 })));
    }

    #[test]
    fn state_returns_only_to_its_client_and_request() {
        let sealer = sealer();
        let state = State::Server {
            server: "files".into(),
            state: Some("opaque".into()),
        };
        let request = digest(r#"{"a":1,"b":2}"#);
        let text = sealer.seal("alice", &request, state.clone()).unwrap();
        assert!(!text.contains("opaque"), "{text}");
        // Another order of the members is the same request.
        let again = digest(r#"{ "b": 2, "a": 1 }"#);
        let opened = sealer.open("alice", &again, &text);
        assert_eq!(opened, Some((sealer.node(), state)));
        assert_eq!(sealer.open("mallory", &request, &text), None);
        assert_eq!(sealer.open("alice", &digest(r#"{"a":2}"#), &text), None);
        assert_eq!(self::sealer().open("alice", &request, &text), None);
        let cut = &text[..text.len() - 2];
        assert_eq!(sealer.open("alice", &request, cut), None);
        assert_eq!(sealer.open("alice", &request, ""), None);
    }
}

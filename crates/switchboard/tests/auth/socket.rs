//! Tests of WebSocket authorization: on opening, and a retry with new credentials after a refusal.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use switchboard::internal::auth::{Authorizer, Credentials, Refusal, Target, Verdict};
use switchboard::internal::transport::http::RemoteServer;
use switchboard::internal::transport::websocket::WebSocketConnector;
use switchboard::transport::{Closed, Connector as _, Inbound, RequestFailure};
use switchboard_config::secret::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::Url;

use crate::world::client;

/// Provides a new token after each refusal, twice, and records the requests.
#[derive(Debug, Default)]
struct Counting(Mutex<Vec<String>>);

impl Counting {
    fn note(&self, line: String) {
        self.0.lock().expect("the notes").push(line);
    }
}

impl Authorizer for Counting {
    fn credentials<'a>(&'a self, target: Target<'a>) -> BoxFuture<'a, Credentials> {
        self.note(format!("{} {}", target.method, target.url.path()));
        let notes = self.0.lock().expect("the notes");
        let count = notes.iter().filter(|line| line.starts_with("GET")).count();
        Box::pin(ready(Credentials {
            headers: vec![("authorization", Secret::new(format!("Bearer {count}")))],
            generation: count as u64,
        }))
    }

    fn refused<'a>(
        &'a self,
        _target: Target<'a>,
        shown: &'a Credentials,
        refusal: Refusal<'a>,
    ) -> BoxFuture<'a, Verdict> {
        let Refusal {
            status,
            challenges,
            attempts,
            ..
        } = refusal;
        self.note(format!(
            "{status} {challenges:?} {attempts} {}",
            shown.generation
        ));
        Box::pin(ready(if attempts < 2 {
            Verdict::Again
        } else {
            Verdict::NeedsPerson
        }))
    }

    fn nonce(&self, _url: &Url, nonce: &str) {
        self.note(format!("nonce {nonce}"));
    }
}

struct Nobody;

impl Inbound for Nobody {
    fn frame(&self, _frame: Bytes) {}
    fn oversized(&self, _start: &[u8], _limit: usize) {}
    fn failed(&self, _request: u64, _failure: RequestFailure) {}
    fn diagnostic(&self, _line: &str) {}
    fn closed(&self, _closed: Closed) {}
}

#[tokio::test]
async fn a_socket_that_is_refused_is_opened_with_better_credentials() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let mut shown = Vec::new();
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            let line = head.lines().find(|line| line.starts_with("authorization:"));
            shown.push(line.expect("credentials").to_owned());
            let refusal = b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: DPoP\r\ndpop-nonce: n\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(refusal).await.unwrap();
        }
        shown
    });
    let authorizer = Arc::new(Counting::default());
    let mut server = RemoteServer::new(format!("ws://{address}/ws"));
    server.authorizer = Some(Arc::clone(&authorizer) as Arc<dyn Authorizer>);
    let connector = WebSocketConnector::new(&client(), server).unwrap();
    let error = connector.connect(Arc::new(Nobody)).await.err();
    assert_eq!(error.expect("no link").status(), Some(401));
    assert_eq!(
        serving.await.unwrap(),
        [
            "authorization: Bearer 1",
            "authorization: Bearer 2",
            "authorization: Bearer 3"
        ]
    );
    let notes = authorizer.0.lock().unwrap().clone();
    let round = |count: u64, attempts: u32| {
        [
            "GET /ws".to_owned(),
            "nonce n".to_owned(),
            format!("401 [\"DPoP\"] {attempts} {count}"),
        ]
    };
    assert_eq!(notes, [round(1, 0), round(2, 1), round(3, 2)].concat());
}

use switchboard_config::entry::OAuthEntry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;

const STATE: &str = "state-1";

async fn listening() -> CallbackListener {
    CallbackListener::bind(&CallbackAddress::default())
        .await
        .unwrap()
}

/// Sends bytes and reads the whole response.
async fn send(port: u16, request: &[u8]) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .unwrap();
    stream.write_all(request).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

fn request(line: &str, host: &str) -> Vec<u8> {
    format!("{line} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: test\r\n\r\n").into_bytes()
}

fn status(response: &str) -> &str {
    response.split("\r\n").next().unwrap()
}

#[tokio::test]
async fn whatever_is_not_the_answer_does_not_end_the_wait() {
    let listener = listening().await;
    let port = listener.port;
    let own = format!("127.0.0.1:{port}");
    let state = Secret::new(STATE);
    let strangers = async {
        let check = async |request: Vec<u8>, expected: &str| {
            let response = send(port, &request).await;
            assert_eq!(
                status(&response),
                expected,
                "{}",
                String::from_utf8_lossy(&request)
            );
            assert!(!response.contains("canary"), "{response}");
        };
        let answer = "GET /callback?code=canary&state=state-1";
        // DNS rebinding: another host name that resolves to this machine.
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost",
            "127.0.0.1:1",
            "",
        ] {
            check(request(answer, host), "HTTP/1.1 403 Forbidden").await;
        }
        check(
            request(answer, &format!("evil.example:{port}")),
            "HTTP/1.1 403 Forbidden",
        )
        .await;
        let twice = format!("{answer} HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n");
        check(twice.into_bytes(), "HTTP/1.1 403 Forbidden").await;
        let none = format!("{answer} HTTP/1.1\r\n\r\n").into_bytes();
        check(none, "HTTP/1.1 403 Forbidden").await;
        let not_found = "HTTP/1.1 404 Not Found";
        for path in [
            "/",
            "/favicon.ico",
            "/callback/",
            "/Callback",
            "//callback",
            "/x/../callback",
        ] {
            let line = format!("GET {path}?code=canary&state=state-1");
            check(request(&line, &own), not_found).await;
        }
        let absolute = format!("GET http://{own}/callback?code=canary&state=state-1");
        check(request(&absolute, &own), not_found).await;
        let posted = "POST /callback?code=canary&state=state-1";
        check(request(posted, &own), "HTTP/1.1 405 Method Not Allowed").await;
        for query in [
            "code=canary&state=other",
            "code=canary",
            "state=state-1",
            "error=canary",
            "error=canary&state=",
            "code=canary&code=canary&state=state-1",
            "code=%3Cscript%3Ecanary%3C/script%3E&state=%3Cscript%3E",
            "",
        ] {
            let line = format!("GET /callback?{query}");
            check(request(&line, &own), "HTTP/1.1 400 Bad Request").await;
        }
        check(b"nonsense\r\n\r\n".to_vec(), "HTTP/1.1 400 Bad Request").await;
        check(b"\xff\xfe\r\n\r\n".to_vec(), "HTTP/1.1 400 Bad Request").await;
        let large = [b"GET /callback?".to_vec(), vec![b'x'; 17 * 1024]].concat();
        check(large, "HTTP/1.1 431 Request Header Fields Too Large").await;
        send(port, &request(&answer.replace("canary", "code-1"), &own)).await
    };
    let (answer, page) = tokio::join!(listener.answer(&state), strangers);
    assert_eq!(answer.code, Some(Secret::new("code-1")));
    assert_eq!(
        page,
        "HTTP/1.1 200 OK\r\n\
         Content-Type: text/html; charset=utf-8\r\n\
         Content-Length: 230\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n\
         Cache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\
         \r\n\
         <!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Back to Switchboard</title>\n\
         <h1>Back to Switchboard</h1>\n\
         <p>The response has arrived. You can close this window; Switchboard shows whether the login worked.</p>\n\
         </html>\n"
    );
}

#[tokio::test]
async fn connections_that_say_nothing_do_not_keep_the_answer_out() {
    let listener = listening().await;
    let port = listener.port;
    let mut silent = Vec::new();
    for _ in 0..AT_ONCE - 1 {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .unwrap();
        stream.write_all(b"GET /callback").await.unwrap();
        silent.push(stream);
    }
    let state = Secret::new(STATE);
    let request = request(
        "GET /callback?error=access_denied&state=state-1",
        &format!("localhost:{port}"),
    );
    let (answer, page) = tokio::join!(listener.answer(&state), send(port, &request));
    assert_eq!(answer.error.as_deref(), Some("access_denied"));
    assert_eq!(status(&page), "HTTP/1.1 200 OK");
    assert!(page.contains("The login was refused."));
    // The listener is open for one login only.
    drop(listener);
    assert!(
        TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_ends_is_given_up() {
    let listener = listening().await;
    let (state, port) = (Secret::new(STATE), listener.port);
    let slow = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .unwrap();
        stream.write_all(b"GET /callback?").await.unwrap();
        let mut response = Vec::new();
        let closed = stream.read_to_end(&mut response).await;
        (closed.is_ok(), response)
    };
    tokio::select! {
        _ = listener.answer(&state) => panic!("there was no answer"),
        closed = slow => assert_eq!(closed, (true, Vec::new())),
    }
}

#[tokio::test]
async fn the_entry_says_where_the_answer_comes() {
    let free = listening().await;
    let port = free.port;
    drop(free);
    let bind = async |uri: &str| {
        let address = CallbackAddress {
            redirect_uri: Some(uri.to_owned()),
            port: None,
        };
        CallbackListener::bind(&address).await
    };
    let uri = format!("http://localhost:{port}/oauth/done");
    let listener = bind(&uri).await.unwrap();
    assert_eq!(listener.redirect_uri().as_str(), uri);
    let state = Secret::new(STATE);
    let request = request(
        "GET /oauth/done?code=a&state=state-1",
        &format!("localhost:{port}"),
    );
    let (answer, _) = tokio::join!(listener.answer(&state), send(port, &request));
    assert_eq!(answer.code, Some(Secret::new("a")));
    // A port in use is an error; no other port is tried.
    assert!(matches!(bind(&uri).await, Err(BindError::Io { .. })));
    for uri in [
        "https://app.example/done",
        "http://192.168.0.1:80/done",
        "com.example.app:/done",
    ] {
        assert!(
            matches!(bind(uri).await, Err(BindError::Elsewhere(_))),
            "{uri}"
        );
    }
    for uri in [
        "nonsense",
        "http://localhost:1/a?b=c",
        "http://localhost:1/a#b",
    ] {
        assert!(
            matches!(bind(uri).await, Err(BindError::Unusable(_))),
            "{uri}"
        );
    }
    let port = CallbackAddress {
        port: Some(port),
        redirect_uri: None,
    };
    drop(listener);
    let listener = CallbackListener::bind(&port).await.unwrap();
    assert_eq!(
        listener.redirect_uri().as_str(),
        format!("http://127.0.0.1:{}/callback", listener.port)
    );
    assert_eq!(Some(listener.port), port.port);
}

#[tokio::test]
async fn a_request_may_have_a_long_code_and_cookies() {
    let listener = listening().await;
    let port = listener.port;
    let state = Secret::new(STATE);
    let padded = |length: usize| {
        let line = "GET /callback?code=a&state=state-1 HTTP/1.1";
        let padding = "x".repeat(length);
        format!("{line}\r\nHost: 127.0.0.1:{port}\r\nCookie: {padding}\r\n\r\n").into_bytes()
    };
    let sent = async {
        let refused = send(port, &padded(32 * 1024)).await;
        assert_eq!(
            status(&refused),
            "HTTP/1.1 431 Request Header Fields Too Large"
        );
        let accepted = send(port, &padded(12 * 1024)).await;
        assert_eq!(status(&accepted), "HTTP/1.1 200 OK");
    };
    let (callback, ()) = tokio::join!(listener.answer(&state), sent);
    assert_eq!(callback.code, Some(Secret::new("a")));
}

#[tokio::test]
async fn a_numeric_redirect_uri_is_bound_at_its_own_address_only() {
    for (host, address) in [
        ("127.0.0.1", IpAddr::V4(Ipv4Addr::LOCALHOST)),
        ("[::1]", IpAddr::V6(Ipv6Addr::LOCALHOST)),
    ] {
        // Another program may have the port at the other address.
        let Ok(free) = listen(SocketAddr::new(address, 0)).await else {
            assert!(address.is_ipv6(), "every machine has an IPv4 loopback");
            continue;
        };
        let port = port_of(&free).unwrap();
        drop(free);
        let callback = CallbackAddress {
            redirect_uri: Some(format!("http://{host}:{port}/callback")),
            port: None,
        };
        let bound = CallbackListener::bind(&callback).await.unwrap();
        let listeners = bound.listeners.iter();
        let found: Vec<SocketAddr> = listeners
            .map(|listener| listener.local_addr().unwrap())
            .collect();
        assert_eq!(found, [SocketAddr::new(address, port)]);
    }
}

fn bind_error(error: io::Error) -> BindError {
    BindError::Io {
        address: "an address".to_owned(),
        error,
    }
}

#[test]
fn a_machine_without_ipv6_listens_at_its_ipv4_address() {
    let in_use = || Err(bind_error(io::ErrorKind::AddrInUse.into()));
    let missing = || Err(bind_error(io::ErrorKind::AddrNotAvailable.into()));
    for (bound, expected) in [
        (vec![Ok(4), Ok(6)], Ok(vec![4, 6])),
        (vec![Ok(4), missing()], Ok(vec![4])),
        (vec![missing(), Ok(6)], Ok(vec![6])),
        (vec![Ok(4), in_use()], Err(io::ErrorKind::AddrInUse)),
        (vec![in_use(), Ok(6)], Err(io::ErrorKind::AddrInUse)),
        // The port in use is the error to report, not the missing family.
        (vec![in_use(), missing()], Err(io::ErrorKind::AddrInUse)),
        (vec![missing(), in_use()], Err(io::ErrorKind::AddrInUse)),
        (vec![missing()], Err(io::ErrorKind::AddrNotAvailable)),
    ] {
        let described = format!("{bound:?}");
        let found = usable(bound).map_err(|error| match error {
            BindError::Io { error, .. } => error.kind(),
            other => panic!("{other:?}"),
        });
        assert_eq!(found, expected, "{described}");
    }
}

#[test]
fn an_address_family_is_missing_without_an_address_or_without_kernel_support() {
    assert!(lacks_family(&io::ErrorKind::AddrNotAvailable.into()));
    assert!(!lacks_family(&io::ErrorKind::AddrInUse.into()));
    #[cfg(unix)]
    {
        let unsupported = rustix::io::Errno::AFNOSUPPORT;
        assert!(lacks_family(&unsupported.into()));
        assert!(!lacks_family(&rustix::io::Errno::ACCESS.into()));
    }
}

#[tokio::test]
async fn the_rest_of_a_request_is_read_to_its_end() {
    let mut rest: &[u8] = &[0; 5000];
    drain(&mut rest).await;
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn a_request_head_has_a_maximum_size() {
    for (length, is_accepted) in [(MAXIMUM_BYTES, true), (MAXIMUM_BYTES + 1, false)] {
        let head = "x".repeat(length);
        // The end of the head arrives on its own.
        let mut stream = head.as_bytes().chain(&b"\r\n\r\n"[..]);
        let found = read_head(&mut stream).await;
        assert_eq!(found, Some(is_accepted.then_some(head)), "{length}");
    }
    // The connection is closed before the end.
    assert_eq!(read_head(&mut &b"GET / HTTP/1.1\r\n"[..]).await, None);
}

#[test]
fn the_callback_address_is_that_of_the_entry() {
    let oauth = OAuthEntry {
        callback_port: Some(8765),
        redirect_uri: Some("http://localhost:8765/done".to_owned()),
        ..OAuthEntry::default()
    };
    let entry = ServerEntry {
        oauth: Some(oauth.clone()),
        ..ServerEntry::default()
    };
    let found = CallbackAddress::of(&entry);
    assert_eq!(found.port, oauth.callback_port);
    assert_eq!(found.redirect_uri, oauth.redirect_uri);
    let found = CallbackAddress::of(&ServerEntry::default());
    assert_eq!((found.port, found.redirect_uri), (None, None));
}

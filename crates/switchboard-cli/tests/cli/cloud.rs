//! Cloud servers: fetched, cached, used while the provider is unreachable, and excluded where not allowed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{EMBEDDED, TestContext, named};

/// A provider on loopback that always returns the same answer, and counts requests.
pub(crate) struct Provider {
    pub(crate) url: String,
    requests: Arc<AtomicUsize>,
}

impl Provider {
    pub(crate) fn answering(status: &str, headers: &str, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/servers.json", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                count.fetch_add(1, Ordering::SeqCst);
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines
                    .next()
                    .and_then(Result::ok)
                    .is_some_and(|line| !line.is_empty())
                {}
                // Some tests close the connection early.
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { url, requests }
    }

    pub(crate) fn serving(body: &str) -> Self {
        Self::answering("200 OK", "", body)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

const SERVERS: &str = r#"{"mcpServers": {"from-cloud": {"url": "https://cloud.example/mcp"}}}"#;

fn machine(provider: &Provider) -> TestContext {
    let context = TestContext::new();
    context.write(
        "config/mcp.toml",
        format!("[cloud]\nurl = \"{}\"\n", provider.url),
    );
    context
}

#[test]
fn servers_are_fetched_once_an_hour() {
    let provider = Provider::serving(SERVERS);
    let context = machine(&provider);
    for _ in 0..3 {
        let list = context.json("mcp list --no-connect --json");
        let server = named(&list, "from-cloud");
        assert_eq!(
            (&server["scope"], &server["state"]),
            (&"cloud".into(), &"ready".into())
        );
        assert_eq!(server["source"]["file"], provider.url);
    }
    assert_eq!(provider.requests(), 1);
    let cached = context.read("state/cloud.json");
    let old: serde_json::Value = serde_json::from_str(&cached).unwrap();
    let stale = cached.replace(&old["fetched_at"].to_string(), "1000");
    context.write("state/cloud.json", &stale);
    context.json("mcp list --no-connect --json");
    assert_eq!(provider.requests(), 2);
    // A cache entry from the future counts as stale.
    context.write(
        "state/cloud.json",
        cached.replace(&old["fetched_at"].to_string(), "99999999999"),
    );
    context.json("mcp list --no-connect --json");
    assert_eq!(provider.requests(), 3);
}

#[test]
fn the_last_answer_is_used_when_the_provider_is_away() {
    let context = TestContext::new();
    // The port is closed again, so connecting fails.
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{gone}/servers.json");
    context.write(
        "config/mcp.toml",
        format!("[cloud]\nurl = \"{url}\"\n[mcp_servers.healthy]\ncommand = \"npx\"\n"),
    );
    let run = context.line("mcp list --no-connect --json");
    assert_eq!(run.code, 0);
    assert!(
        run.stderr.contains("its servers are missing"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("healthy"));

    let cached = serde_json::json!({"url": url, "fetched_at": 1000, "text": SERVERS});
    context.write("state/cloud.json", cached.to_string());
    let run = context.line("mcp list --no-connect --json");
    assert!(
        run.stderr.contains("using its cached servers"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("from-cloud"));

    // The cached answer of another URL is not used.
    let other =
        serde_json::json!({"url": "https://other.example", "fetched_at": 1000, "text": SERVERS});
    context.write("state/cloud.json", other.to_string());
    assert!(
        !context
            .line("mcp list --no-connect --json")
            .stdout
            .contains("from-cloud")
    );
}

#[test]
fn a_bad_answer_is_not_used() {
    let large = format!("{{\"x\": \"{}\"}}", "y".repeat(5 * 1024 * 1024));
    for (provider, reason) in [
        (
            Provider::answering("500 Internal Server Error", "", "{}"),
            "status 500",
        ),
        (Provider::serving("<html>"), "not a JSON object"),
        (Provider::serving("[1]"), "not a JSON object"),
        (Provider::serving(&large), "exceeds 4194304 bytes"),
        (
            Provider::answering("302 Found", "Location: http://evil.example/\r\n", ""),
            "not https",
        ),
        (
            Provider::answering("302 Found", "Location: /servers.json\r\n", ""),
            "too many redirects",
        ),
    ] {
        let context = machine(&provider);
        let run = context.line("mcp list --no-connect --json");
        assert_eq!(
            (run.code, run.server_names()),
            (0, EMBEDDED.map(str::to_owned).to_vec()),
            "{reason}"
        );
        assert!(run.stderr.contains(reason), "{reason}\n{}", run.stderr);
        assert!(!context.exists("state/cloud.json"), "{reason}");
    }
}

#[test]
fn an_enterprise_file_keeps_the_provider_out() {
    for mode in ["exclusive", "merge"] {
        let provider = Provider::serving(SERVERS);
        let context = machine(&provider);
        let cloud = format!("mode = \"{mode}\"\n[cloud]\nurl = \"{}\"\n", provider.url);
        context.write("managed.toml", cloud);
        let run = context.line("mcp list --no-connect --json");
        assert_eq!(run.server_names(), EMBEDDED, "{mode}");
        assert_eq!(provider.requests(), 0, "{mode}");
    }
}

#[test]
fn a_project_cannot_choose_the_provider() {
    let provider = Provider::serving(SERVERS);
    let context = TestContext::new();
    for file in ["project/.mcp.toml", "project/.switchboard.local.toml"] {
        context.write(file, format!("[cloud]\nurl = \"{}\"\n", provider.url));
    }
    let run = context.line("mcp list --no-connect --json --trust-project");
    assert_eq!(run.server_names(), EMBEDDED);
    assert!(
        run.stderr.contains("has no effect in project scope"),
        "{}",
        run.stderr
    );
    assert_eq!(provider.requests(), 0);
}

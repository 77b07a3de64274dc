//! Servers of a provider: fetched, kept, used when the provider is away, and never where they may not be.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{TestContext, named};

/// A provider on loopback that gives the same answer to everybody, and counts.
pub(crate) struct Provider {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
}

impl Provider {
    pub(crate) fn answering(status: &str, headers: &str, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/servers.json", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        let count = Arc::clone(&asked);
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
                // A client that went away is part of what is tested.
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { url, asked }
    }

    pub(crate) fn serving(body: &str) -> Self {
        Self::answering("200 OK", "", body)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
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
    assert_eq!(provider.asked(), 1);
    let cached = context.read("state/cloud.json");
    let old: serde_json::Value = serde_json::from_str(&cached).unwrap();
    let stale = cached.replace(&old["fetched_at"].to_string(), "1000");
    context.write("state/cloud.json", &stale);
    context.json("mcp list --no-connect --json");
    assert_eq!(provider.asked(), 2);
    // A time in the future is no reason to believe an answer for years.
    context.write(
        "state/cloud.json",
        cached.replace(&old["fetched_at"].to_string(), "99999999999"),
    );
    context.json("mcp list --no-connect --json");
    assert_eq!(provider.asked(), 3);
}

#[test]
fn the_last_answer_is_used_when_the_provider_is_away() {
    let context = TestContext::new();
    // Nobody listens on a port that was free a moment ago.
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
        run.stderr.contains("its servers are not there"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("healthy"));

    let cached = serde_json::json!({"url": url, "fetched_at": 1000, "text": SERVERS});
    context.write("state/cloud.json", cached.to_string());
    let run = context.line("mcp list --no-connect --json");
    assert!(
        run.stderr.contains("the servers it gave earlier are used"),
        "{}",
        run.stderr
    );
    assert!(run.stdout.contains("from-cloud"));

    // The answer of another address is not this one's.
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
        (Provider::serving("<html>"), "not answer with a JSON object"),
        (Provider::serving("[1]"), "not answer with a JSON object"),
        (Provider::serving(&large), "more than 4194304 bytes"),
        (
            Provider::answering("302 Found", "Location: http://evil.example/\r\n", ""),
            "not https",
        ),
        (
            Provider::answering("302 Found", "Location: /servers.json\r\n", ""),
            "redirects too often",
        ),
    ] {
        let context = machine(&provider);
        let run = context.line("mcp list --no-connect --json");
        assert_eq!((run.code, run.stdout.trim()), (0, "[]"), "{reason}");
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
        assert_eq!(
            context.json("mcp list --no-connect --json"),
            serde_json::json!([]),
            "{mode}"
        );
        assert_eq!(provider.asked(), 0, "{mode}");
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
    assert_eq!(run.stdout.trim(), "[]");
    assert!(
        run.stderr.contains("has no effect in project scope"),
        "{}",
        run.stderr
    );
    assert_eq!(provider.asked(), 0);
}

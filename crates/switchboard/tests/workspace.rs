//! Tests of the embedded server: its tools, resources and prompt over the in-process link, and its refusals.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test helpers fail by panicking"
)]

#[expect(
    dead_code,
    reason = "the tests of the dispatcher need more of the client"
)]
mod in_process;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use switchboard::Workspace;
use switchboard::service::Service;
use tempfile::TempDir;

use in_process::{Client, MODERN};

/// A folder with all kinds of files, next to one that must not be reachable.
struct Fixture {
    _outside: TempDir,
    folder: TempDir,
    client: Client,
    next: u64,
}

impl Fixture {
    async fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, contents) in [
            (".gitignore", b"target/\n".as_slice()),
            ("README.md", b"one\ntwo\nthree\n"),
            ("src/main.rs", b"fn main() {\n    // TODO\n}\n"),
            ("src/deep/lib.rs", b"// todo: nothing\r\n"),
            ("target/out.rs", b"// TODO\n"),
            ("binary", b"TODO\0\xff"),
            ("latin", b"caf\xe9\n"),
            ("empty", b""),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(outside.path().join("secret"), root.join("link out")).unwrap();
            symlink(outside.path(), root.join("folder out")).unwrap();
            symlink("README.md", root.join("link in")).unwrap();
            symlink("loop", root.join("loop")).unwrap();
        }
        let service: Arc<dyn Service> = Arc::new(Workspace::new(root).unwrap());
        Self {
            client: Client::connect_to(service).await,
            _outside: outside,
            folder,
            next: 0,
        }
    }

    async fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let mut params = params.clone();
        let meta: Value = serde_json::from_str(&format!("{{{MODERN}}}")).unwrap();
        params["_meta"] = meta["_meta"].clone();
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.client.send(&request.to_string()).await;
        let mut answer: Value = serde_json::from_str(&self.client.next().await).unwrap();
        assert_eq!(answer["id"], json!(self.next));
        if let Some(error) = answer.get_mut("error") {
            return json!({"error": error["message"]});
        }
        // The members of every result are tested with the dispatcher.
        let result = answer["result"].as_object_mut().unwrap();
        for member in ["_meta", "resultType", "ttlMs", "cacheScope"] {
            result.remove(member);
        }
        answer["result"].take()
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.request("tools/call", &params).await
    }

    fn uri(&self, path: &str) -> String {
        let root = self.folder.path().canonicalize().unwrap();
        url::Url::from_file_path(root.join(path)).unwrap().into()
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn failed(reason: &str) -> Value {
    json!({"isError": true, "content": [text(reason)]})
}

#[tokio::test]
async fn files_are_read_whole_or_by_lines() {
    let mut fixture = Fixture::new().await;
    for (arguments, expected) in [
        (
            json!({"path": "README.md"}),
            json!({"content": [text("one\ntwo\nthree\n")]}),
        ),
        (
            json!({"path": "./src/../README.md"}),
            json!({"content": [text("one\ntwo\nthree\n")]}),
        ),
        (json!({"path": "empty"}), json!({"content": [text("")]})),
        (
            json!({"path": "README.md", "offset": 2, "limit": 1}),
            json!({"content": [text("two\n"), text("[more follows: read on with offset 3]")]}),
        ),
        (
            json!({"path": "README.md", "offset": 3}),
            json!({"content": [text("three\n")]}),
        ),
        (
            json!({"path": "README.md", "offset": 4}),
            failed("README.md: it has fewer than 4 lines"),
        ),
        (
            json!({"path": "latin"}),
            json!({"content": [text("caf\u{fffd}\n"), text("[bytes that are not UTF-8 are shown as \u{fffd}]")]}),
        ),
        (
            json!({"path": "binary"}),
            failed("binary: a binary file; read it as a resource to get its bytes"),
        ),
        (
            json!({"path": "src"}),
            failed("src: a folder; name a file, or use glob to list what is in it"),
        ),
        (
            json!({"path": "none"}),
            failed("none: no such file in the workspace"),
        ),
        (
            json!({"path": "README.md/x"}),
            failed("README.md/x: no such file in the workspace"),
        ),
        (
            json!({}),
            failed("invalid arguments: missing field `path` at line 1 column 2"),
        ),
        (
            json!({"path": "a", "mode": 1}),
            failed(
                "invalid arguments: unknown field `mode`, expected one of `path`, `offset`, `limit` at line 1 column 7",
            ),
        ),
    ] {
        assert_eq!(
            fixture.call("read_file", arguments.clone()).await,
            expected,
            "{arguments}"
        );
    }
    fixture.client.end().await;
}

#[tokio::test]
async fn nothing_leads_out_of_the_folder() {
    let mut fixture = Fixture::new().await;
    let outside = |path: &str| {
        failed(&format!(
            "{path}: outside the workspace; only files within it can be read"
        ))
    };
    let mut paths = vec!["..", "../x", "src/../../x", "/etc/passwd", "/", "./.."];
    if cfg!(unix) {
        paths.extend(["link out", "folder out/secret", "folder out"]);
    }
    for path in paths {
        assert_eq!(
            fixture.call("read_file", json!({"path": path})).await,
            outside(path),
            "{path}"
        );
        assert_eq!(
            fixture
                .call("grep", json!({"path": path, "pattern": "."}))
                .await,
            outside(path),
            "{path}"
        );
    }
    for uri in [
        "file:///etc/passwd".to_owned(),
        fixture.uri("folder out/secret"),
        format!("{}/..%2f..%2fx", fixture.uri("src")),
        "file://elsewhere/etc/passwd".to_owned(),
        "https://example.com/".to_owned(),
        "README.md".to_owned(),
        fixture.uri("none"),
    ] {
        assert_eq!(
            fixture
                .request("resources/read", &json!({"uri": uri}))
                .await,
            json!({"error": "resource not found"}),
            "{uri}"
        );
    }
    fixture.client.end().await;
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_no_regular_file_is_refused_without_waiting() {
    let mut fixture = Fixture::new().await;
    let socket = fixture.folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    let pipe = fixture.folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for path in ["pipe", "socket"] {
        assert_eq!(
            fixture.call("read_file", json!({"path": path})).await,
            failed(&format!("{path}: not a regular file"))
        );
    }
    assert_eq!(
        fixture.call("read_file", json!({"path": "link in"})).await,
        json!({"content": [text("one\ntwo\nthree\n")]})
    );
    let circle = fixture.call("read_file", json!({"path": "loop"})).await;
    assert_eq!(circle["isError"], json!(true));
    // Neither can be listed or searched.
    assert_eq!(
        fixture
            .call("glob", json!({"pattern": "{pipe,socket,link*,loop}"}))
            .await,
        json!({"content": [text("no file matches")], "structuredContent": {"paths": [], "truncated": false}})
    );
    fixture.client.end().await;
}

#[tokio::test]
async fn files_are_found_by_pattern() {
    let mut fixture = Fixture::new().await;
    let found = |paths: &[&str]| {
        let words = if paths.is_empty() {
            "no file matches".to_owned()
        } else {
            paths.join("\n")
        };
        json!({"content": [text(&words)], "structuredContent": {"paths": paths, "truncated": false}})
    };
    for (pattern, paths) in [
        ("**/*.rs", ["src/deep/lib.rs", "src/main.rs"].as_slice()),
        ("src/*.rs", &["src/main.rs"]),
        ("./README.md", &["README.md"]),
        (".git*", &[".gitignore"]),
        ("*.rs", &[]),
        ("target/*", &[]),
    ] {
        assert_eq!(
            fixture.call("glob", json!({"pattern": pattern})).await,
            found(paths),
            "{pattern}"
        );
    }
    assert_eq!(
        fixture
            .call("glob", json!({"pattern": "**", "limit": 1}))
            .await,
        json!({
            "content": [text(".gitignore"), text("[there may be more files: narrow the pattern]")],
            "structuredContent": {"paths": [".gitignore"], "truncated": true},
        })
    );
    let bad = fixture.call("glob", json!({"pattern": "a[z-a]"})).await;
    assert_eq!(bad["isError"], json!(true));
    fixture.client.end().await;
}

#[tokio::test]
async fn text_is_found_by_expression() {
    let mut fixture = Fixture::new().await;
    let main = json!({"path": "src/main.rs", "line": 2, "text": "    // TODO"});
    let library = json!({"path": "src/deep/lib.rs", "line": 1, "text": "// todo: nothing"});
    let out = json!({"path": "target/out.rs", "line": 1, "text": "// TODO"});
    for (arguments, matches) in [
        (json!({"pattern": "TODO"}), vec![&main]),
        (
            json!({"pattern": "todo", "ignore_case": true}),
            vec![&library, &main],
        ),
        (
            json!({"pattern": "todo", "ignore_case": true, "path": "src/deep"}),
            vec![&library],
        ),
        (json!({"pattern": "(?i)todo", "glob": "m*.rs"}), vec![&main]),
        (
            json!({"pattern": "(?i)todo$", "glob": "src/*.rs"}),
            vec![&main],
        ),
        // A file named explicitly is searched even if git ignores it.
        (
            json!({"pattern": "TODO", "path": "target/out.rs"}),
            vec![&out],
        ),
        (json!({"pattern": "nowhere"}), vec![]),
    ] {
        let answer = fixture.call("grep", arguments.clone()).await;
        assert_eq!(
            answer["structuredContent"],
            json!({"matches": matches, "truncated": false}),
            "{arguments}"
        );
    }
    assert_eq!(
        fixture
            .call(
                "grep",
                json!({"pattern": "^t", "path": "README.md", "limit": 1})
            )
            .await,
        json!({
            "content": [
                text("README.md:2: two"),
                text("[there may be more matches: narrow with path, glob or pattern]"),
            ],
            "structuredContent": {
                "matches": [{"path": "README.md", "line": 2, "text": "two"}],
                "truncated": true,
            },
        })
    );
    for pattern in ["(", r"(\w{500}){500}"] {
        let bad = fixture.call("grep", json!({"pattern": pattern})).await;
        assert_eq!(bad["isError"], json!(true), "{pattern}");
    }
    fixture.client.end().await;
}

#[tokio::test]
async fn large_files_are_bounded_and_say_so() {
    let mut fixture = Fixture::new().await;
    let root = fixture.folder.path().to_owned();
    fs::write(root.join("large"), "x".repeat(3 * 1024 * 1024)).unwrap();
    let read = fixture.call("read_file", json!({"path": "large"})).await;
    assert_eq!(
        read["content"][0]["text"].as_str().unwrap().len(),
        256 * 1024
    );
    assert_eq!(
        read["content"][1],
        text("[cut at 262144 bytes, in line 1: read on with offset, or use grep]")
    );
    let searched = fixture.call("grep", json!({"pattern": "xx"})).await;
    assert_eq!(
        searched["content"],
        json!([
            text("nothing matches"),
            text("[1 files were not searched: unreadable, or larger than 2097152 bytes]"),
        ])
    );
    let uri = fixture.uri("large");
    assert_eq!(
        fixture
            .request("resources/read", &json!({"uri": uri}))
            .await,
        json!({"error": "large: larger than 2097152 bytes; use grep or read_file with offset and limit"})
    );
    fs::write(root.join("large"), format!("{}needle", "x".repeat(70_000))).unwrap();
    assert_eq!(
        fixture.call("grep", json!({"pattern": "needle"})).await["content"],
        json!([
            text("nothing matches"),
            text("[only the first 65536 bytes of very long lines were searched]"),
        ])
    );
    fixture.client.end().await;
}

#[tokio::test]
async fn files_are_resources() {
    let mut fixture = Fixture::new().await;
    let names = [
        ".gitignore",
        "README.md",
        "binary",
        "empty",
        "latin",
        "src/deep/lib.rs",
        "src/main.rs",
    ];
    let listed: Vec<Value> = names
        .iter()
        .map(|name| json!({"uri": fixture.uri(name), "name": name}))
        .collect();
    assert_eq!(
        fixture.request("resources/list", &json!({})).await,
        json!({"resources": listed})
    );

    let (readme, binary) = (fixture.uri("README.md"), fixture.uri("binary"));
    assert_eq!(
        fixture
            .request("resources/read", &json!({"uri": readme}))
            .await,
        json!({"contents": [{"uri": readme, "mimeType": "text/plain", "text": "one\ntwo\nthree\n"}]})
    );
    assert_eq!(
        fixture
            .request("resources/read", &json!({"uri": binary}))
            .await,
        json!({"contents": [{"uri": binary, "mimeType": "application/octet-stream", "blob": "VE9ETwD/"}]})
    );
    let templates = fixture
        .request("resources/templates/list", &json!({}))
        .await;
    assert_eq!(
        templates["resourceTemplates"][0]["uriTemplate"],
        json!(format!("{}/{{+path}}", fixture.uri("")).replace("//{", "/{"))
    );
    fixture.client.end().await;
}

#[tokio::test]
async fn many_resources_come_in_pages() {
    let mut fixture = Fixture::new().await;
    let many = fixture.folder.path().join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..2100 {
        fs::write(many.join(format!("{number:04}")), "").unwrap();
    }
    let mut names = Vec::new();
    let mut sizes = Vec::new();
    let mut params = json!({});
    loop {
        let page = fixture.request("resources/list", &params).await;
        let resources = page["resources"].as_array().unwrap();
        sizes.push(resources.len());
        names.extend(
            resources
                .iter()
                .map(|resource| resource["name"].as_str().unwrap().to_owned()),
        );
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(sizes, [1000, 1000, 107]);
    assert!(names.is_sorted());
    names.dedup();
    assert_eq!(names.len(), 2107);
    fixture.client.end().await;
}

#[tokio::test]
async fn the_prompt_brings_its_file_and_completes_its_argument() {
    let mut fixture = Fixture::new().await;
    let prompt = |path: &str| json!({"name": "explain_file", "arguments": {"path": path}});
    let readme = fixture.uri("README.md");
    assert_eq!(
        fixture.request("prompts/get", &prompt("README.md")).await,
        json!({"messages": [
            {"role": "user", "content": text("Explain what the file README.md does, and how.")},
            {"role": "user", "content": {"type": "resource", "resource": {
                "uri": readme, "mimeType": "text/plain", "text": "one\ntwo\nthree\n",
            }}},
        ]})
    );
    for (params, error) in [
        (prompt("none"), "none: no such file in the workspace"),
        (
            json!({"name": "explain_file"}),
            "the argument `path` is missing",
        ),
        (json!({"name": "other"}), "unknown prompt: other"),
    ] {
        assert_eq!(
            fixture.request("prompts/get", &params).await,
            json!({"error": error})
        );
    }
    for (argument, values) in [
        ("path", vec!["src/deep/lib.rs", "src/main.rs"]),
        ("mood", vec![]),
    ] {
        let typed = json!({
            "ref": {"type": "ref/prompt", "name": "explain_file"},
            "argument": {"name": argument, "value": "src/"},
        });
        assert_eq!(
            fixture.request("completion/complete", &typed).await,
            json!({"completion": {"values": values}})
        );
    }
    fixture.client.end().await;
}

#[tokio::test]
async fn it_says_what_it_offers() {
    let mut fixture = Fixture::new().await;
    let tools = fixture.request("tools/list", &json!({})).await;
    let offered: Vec<(&str, bool, &Value)> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            (
                tool["name"].as_str().unwrap(),
                tool.get("outputSchema").is_some(),
                &tool["annotations"]["readOnlyHint"],
            )
        })
        .collect();
    let yes = json!(true);
    assert_eq!(
        offered,
        [
            ("glob", true, &yes),
            ("grep", true, &yes),
            ("read_file", false, &yes)
        ]
    );
    let prompts = fixture.request("prompts/list", &json!({})).await;
    assert_eq!(prompts["prompts"][0]["name"], json!("explain_file"));
    assert_eq!(
        fixture.call("write_file", json!({})).await,
        json!({"error": "unknown tool: write_file"})
    );
    fixture.client.end().await;
}

#[test]
fn a_folder_that_is_not_there_cannot_be_served() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.as_path(), Path::new("no such folder")] {
        assert!(Workspace::new(path).is_err(), "{}", path.display());
    }
}

//! Tests of the diagnoses: findings for given symptoms.

use bytes::Bytes;
use switchboard_protocol::negotiate::{Because, NoAnswer, VersionProblem};
use switchboard_protocol::{ErrorCode, ErrorObject};

use super::*;
use crate::sandbox::SandboxError;
use crate::transport::Closed;

fn symptoms<'a>(failed: &'a Failed, destination: &'a Destination) -> Symptoms<'a> {
    let transport = match destination {
        Destination::Address { .. } => Transport::Http,
        _ => Transport::Stdio,
    };
    Symptoms {
        server: "files",
        step: Step::Initialize,
        failed,
        transport,
        destination,
        stderr: &[],
        noise: &[],
        home: None,
        is_confined: false,
        installed: None,
        variables: &NO_VARIABLES,
    }
}

static NO_VARIABLES: std::sync::LazyLock<Variables> = std::sync::LazyLock::new(Variables::default);

fn program(name: &str) -> Destination {
    Destination::Program(name.to_owned())
}

fn address(path: &str) -> Destination {
    Destination::Address {
        shown: format!("https://example.com{path}"),
        path: path.to_owned(),
        has_credentials: false,
        can_log_in: true,
        has_proxy: false,
    }
}

fn explained(symptoms: &Symptoms<'_>) -> Finding {
    let mut findings = explain(symptoms);
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = findings.remove(0);
    let is_fragment = |text: &str| !text.is_empty() && !text.ends_with('.') && !text.contains("  ");
    let is_complete = is_fragment(&finding.what) && is_fragment(&finding.remedy);
    assert!(is_complete && !finding.why.is_empty(), "{finding:?}");
    finding
}

fn transport(kind: TransportErrorKind, message: &str) -> Failed {
    Failed::Open(OpenErrorKind::Transport(TransportError::new(kind, message)))
}

fn status(status: u16, body: &'static str) -> Failed {
    let mut refusal = HttpRefusal::new(status);
    refusal.body = Bytes::from_static(body.as_bytes());
    Failed::Open(OpenErrorKind::Transport(TransportError::refused(Box::new(
        refusal,
    ))))
}

#[test]
fn a_sandbox_is_named_where_there_is_one() {
    let failed = Failed::Open(OpenErrorKind::Closed(Closed::Exited(1)));
    let destination = program("npx");
    let lines = ["PermissionError: [Errno 13] Permission denied: '/data'".to_owned()];
    let finding = explained(&Symptoms {
        stderr: &lines,
        is_confined: true,
        ..symptoms(&failed, &destination)
    });
    assert_eq!(finding.code, "sandbox-refused");
    assert!(
        finding.remedy.contains("mkdir -p ~/.npm ~/.cache"),
        "{finding:?}"
    );
    let error = SandboxError::NoLandlock.to_string();
    let failed = Failed::Open(OpenErrorKind::Transport(TransportError::new(
        TransportErrorKind::Sandbox,
        error,
    )));
    check(&failed, &destination, "no-sandbox", "docs/sandbox.md");
}

/// Checks the finding for a process that exited with status 1 after these lines.
#[track_caller]
fn check_stderr(lines: &str, code: &str, what: &str) {
    let failed = Failed::Open(OpenErrorKind::Closed(Closed::Exited(1)));
    let destination = program("npx");
    let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    let finding = explained(&Symptoms {
        stderr: &lines,
        ..symptoms(&failed, &destination)
    });
    assert_eq!(
        (finding.code, finding.what.as_str()),
        (code, what),
        "{finding:?}"
    );
}

#[track_caller]
fn check(failed: &Failed, destination: &Destination, code: &str, remedy_says: &str) {
    let finding = explained(&symptoms(failed, destination));
    assert_eq!(finding.code, code, "{finding:?}");
    assert!(finding.remedy.contains(remedy_says), "{finding:?}");
}

#[test]
fn package_managers_tell_what_they_miss() {
    check_stderr(
        "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/mcp-serer-x - Not found\n\
         npm error 404  'mcp-serer-x@*' is not in this registry.",
        "package-not-found",
        "npm has no package mcp-serer-x@*",
    );
    check_stderr(
        "npm ERR! code E404",
        "package-not-found",
        "npm has no package of that name",
    );
    check_stderr(
        "npm error code ETARGET\nnpm error notarget No matching version found for mcp-x@99.0.0.",
        "package-version",
        "npm does not have this version of the package",
    );
    check_stderr(
        "npm error could not determine executable to run",
        "package-without-program",
        "the package contains no executable",
    );
    check_stderr(
        "npm ERR! code ENOTFOUND\nnpm ERR! network request to https://registry.npmjs.org failed",
        "registry-unreachable",
        "npm cannot reach its registry",
    );
    check_stderr(
        "npm error code EACCES\nnpm error path /home/me/.npm/_cacache",
        "npm-cache",
        "npm cannot write to its cache",
    );
    check_stderr(
        "  × No solution found when resolving tool dependencies:\n  ╰─▶ Because mcp-tme was not found in the package \
         registry and you require mcp-tme, we can conclude",
        "package-not-found",
        "Python package or version not found",
    );
    check_stderr(
        "ERROR: No matching distribution found for mcp-tme",
        "package-not-found",
        "Python package or version not found",
    );
    check_stderr(
        "An executable named `mcp-time` is not provided by package `mcp-server-time`.",
        "package-without-program",
        "the package contains no executable of that name",
    );
    check_stderr(
        "error: Failed to fetch: `https://pypi.org/simple/mcp/`",
        "registry-unreachable",
        "cannot reach the package index",
    );
}

#[test]
fn docker_tells_what_it_misses() {
    check_stderr(
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "docker-not-running",
        "Docker is not running",
    );
    check_stderr(
        "docker: permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "docker-permission",
        "you do not have permission to use Docker",
    );
    check_stderr(
        "the input device is not a TTY",
        "docker-terminal",
        "Docker was started with -t, but has no terminal",
    );
    check_stderr(
        "Unable to find image 'mcp/tme:latest' locally\ndocker: Error response from daemon: pull access denied for \
         mcp/tme, repository does not exist or may require 'docker login'",
        "docker-image",
        "image not found",
    );
}

#[test]
fn interpreters_of_the_wrong_version_are_recognised() {
    for log in [
        "npm WARN EBADENGINE Unsupported engine {",
        "file:///x/index.js:3\nimport { parseArgs } from 'util';\nSyntaxError: The requested module 'util' does not \
         provide an export named 'parseArgs'",
        "/x/cli.js:12\n  a ??= 1;\nSyntaxError: Unexpected token '??='\n    at wrapSafe (internal/modules/cjs/loader.js:915:16)",
        "ReferenceError: ReadableStream is not defined\n    at Object.<anonymous>",
        "This server requires Node >= 20",
    ] {
        check_stderr(log, "node-version", "it needs another version of Node.js");
    }
    for log in [
        "  File \"/x/server.py\", line 4\n    match kind:\n          ^\nSyntaxError: invalid syntax",
        "ERROR: Package 'mcp' requires a different Python: 3.8.10 not in '>=3.10'",
    ] {
        check_stderr(log, "python-version", "it needs another version of Python");
    }
}

#[test]
fn servers_tell_what_they_miss() {
    for log in [
        "Error: GITHUB_PERSONAL_ACCESS_TOKEN environment variable is required",
        "Please set GITHUB_PERSONAL_ACCESS_TOKEN: it is not set",
        "KeyError: 'GITHUB_PERSONAL_ACCESS_TOKEN'",
        "  missing env var GITHUB_PERSONAL_ACCESS_TOKEN",
    ] {
        check_stderr(
            log,
            "variable-missing",
            "the server needs the environment variable GITHUB_PERSONAL_ACCESS_TOKEN",
        );
    }
    check_stderr(
        "Error: Cannot find module '/srv/dist/index.js'\n  code: 'MODULE_NOT_FOUND'",
        "module-missing",
        "a file or module is missing",
    );
    check_stderr(
        "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'zod' imported from /x",
        "module-missing",
        "a file or module is missing",
    );
    check_stderr(
        "ModuleNotFoundError: No module named 'mcp'",
        "module-missing",
        "a Python module is missing",
    );
    check_stderr(
        "/usr/bin/env: ‘node’: No such file or directory",
        "inner-program-not-found",
        "a program that it runs was not found",
    );
    check_stderr(
        "sh: 1: mcp-server: not found",
        "inner-program-not-found",
        "a program that it runs was not found",
    );
    check_stderr(
        "Error: self-signed certificate in certificate chain",
        "inner-certificate",
        "it does not trust a certificate on its way out",
    );
    check_stderr(
        "HTTPError: 401 Unauthorized",
        "inner-credentials",
        "the service behind it rejects its credentials",
    );
    check_stderr(
        "Error: listen EADDRINUSE: address already in use :::3000",
        "port-taken",
        "its port is already in use",
    );
    check_stderr(
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        "out-of-memory",
        "it ran out of memory",
    );
    check_stderr(
        "x: /lib/libc.so.6: version `GLIBC_2.38' not found (required by x)",
        "library-missing",
        "it is not built for this system",
    );
    check_stderr(
        "usage: server [-h]\nserver: error: unrecognized arguments: --fast",
        "arguments",
        "it rejects its arguments",
    );
    check_stderr(
        "Error: ENOENT: no such file or directory, stat '/data'",
        "file-missing",
        "a file or folder it needs does not exist",
    );
    check_stderr(
        "Warning: Cannot access directory /nowhere, skipping\nError: None of the specified directories are accessible",
        "file-missing",
        "a file or folder it needs does not exist",
    );
    check_stderr(
        "PermissionError: [Errno 13] Permission denied: '/data'",
        "permission-denied",
        "it has no permission for a file or folder",
    );
    check_stderr(
        "something nobody has seen before",
        "exited-early",
        "the process exited with status 1 before it answered",
    );
}

#[test]
fn programs_that_cannot_be_started() {
    use TransportErrorKind::{NoSuchFolder, ProgramNotExecutable, ProgramNotFound, Spawn};
    let missing = transport(ProgramNotFound, "the program was not found in: /bin");
    for (name, remedy) in [
        ("npx", "install Node.js"),
        ("npx.cmd", "install Node.js"),
        ("uvx", "install uv"),
        ("docker", "install Docker"),
        ("python3", "install Python"),
        ("mine", "install it, or correct `command`"),
        ("/opt/mine/server", "correct `command`"),
    ] {
        check(&missing, &program(name), "program-not-found", remedy);
    }
    check(
        &missing,
        &program("npx -y @scope/server /data"),
        "command-with-arguments",
        r#"command = "npx", args = ["-y", "@scope/server", "/data"]"#,
    );
    check(
        &transport(
            ProgramNotExecutable,
            "/x/run cannot be run: permission denied",
        ),
        &program("/x/run"),
        "program-not-executable",
        "chmod +x /x/run",
    );
    check(
        &transport(NoSuchFolder, "the folder to start in does not exist: /gone"),
        &program("npx"),
        "no-such-folder",
        "`cwd`",
    );
    check(
        &transport(Spawn, "out of processes"),
        &program("npx"),
        "not-started",
        "memory",
    );
    check(
        &transport(Spawn, "the helper ended"),
        &address("/mcp"),
        "not-started",
        "headers_helper",
    );
}

#[test]
fn a_program_outside_the_path_is_found_where_it_is_mostly_installed() {
    let home = tempfile::tempdir().unwrap();
    let failed = transport(TransportErrorKind::ProgramNotFound, "not found in: /bin");
    let destination = program("switchboard-doctor-test");
    for folder in [
        ".nvm/versions/node/v9.0.0/bin",
        ".nvm/versions/node/v22.1.0/bin",
        ".local/bin",
    ] {
        let file = home.path().join(folder).join("switchboard-doctor-test");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        if folder.contains("v9") {
            continue;
        }
        let finding = explained(&Symptoms {
            home: Some(home.path()),
            ..symptoms(&failed, &destination)
        });
        assert_eq!(finding.code, "program-not-in-path");
        let expected = format!("command = \"{}\"", file.display());
        assert!(finding.remedy.contains(&expected), "{finding:?}");
    }
}

#[test]
fn addresses_that_lead_nowhere() {
    use TransportErrorKind::{Dns, Invalid, Protocol, Refused, Timeout, Tls, Unreachable};
    let place = address("/mcp");
    for (kind, message, code, remedy) in [
        (
            Dns,
            "cannot resolve host x",
            "unknown-host",
            "check the host name",
        ),
        (
            Refused,
            "the connection to x:1 was refused",
            "connection-refused",
            "start the server",
        ),
        (
            Unreachable,
            "x cannot be reached",
            "unreachable",
            "firewall",
        ),
        (
            Timeout,
            "x did not answer in time",
            "connect-timeout",
            "VPN",
        ),
        (Tls, "x does not speak TLS; if", "no-tls", "http://"),
        (
            Tls,
            "the certificate of x is signed by an authority that this machine does not know",
            "certificate-unknown",
            "authority",
        ),
        (
            Tls,
            "the certificate of x has expired",
            "certificate-expired",
            "renew",
        ),
        (
            Tls,
            "the certificate of x is not valid yet; is",
            "certificate-not-valid-yet",
            "clock",
        ),
        (
            Tls,
            "the certificate of x is for another name",
            "certificate-name",
            "`url`",
        ),
        (Tls, "x refused the TLS handshake", "tls", "proxy"),
        (
            Protocol,
            "x does not answer in HTTP (bad)",
            "not-http",
            "https://",
        ),
        (
            Protocol,
            "the server answered with text/html where JSON was expected",
            "web-page",
            "usually /sse (now `/mcp`)",
        ),
        (Invalid, "the header `x` is bad", "entry-invalid", "correct"),
    ] {
        check(&transport(kind, message), &place, code, remedy);
    }
}

#[test]
fn a_proxy_is_named_where_it_may_be_what_failed() {
    let failed = transport(
        TransportErrorKind::Refused,
        "the connection to x:1 was refused",
    );
    let mut destination = address("/mcp");
    assert!(
        !explained(&symptoms(&failed, &destination))
            .remedy
            .contains("NO_PROXY")
    );
    if let Destination::Address { has_proxy, .. } = &mut destination {
        *has_proxy = true;
    }
    check(&failed, &destination, "connection-refused", "NO_PROXY");
    check(&status(407, ""), &destination, "proxy-login", "HTTPS_PROXY");
}

#[test]
fn statuses_mean_what_they_say() {
    let place = address("/");
    for (code, body, expected, remedy) in [
        (401, "", "login-needed", "switchboard mcp login files"),
        (403, "", "forbidden", "token"),
        (
            404,
            "no such page",
            "wrong-path",
            "usually /mcp or /sse (now `/`)",
        ),
        (405, "", "wrong-path", "/mcp"),
        (404, " <!DOCTYPE html><html>", "web-page", "/mcp"),
        (500, "<html>oops</html>", "server-error", "log"),
        (503, "", "unavailable", "later"),
        (429, "", "too-many-requests", "later"),
        (406, "", "request-rejected", "header"),
        (302, "", "redirected", "`url`"),
    ] {
        check(&status(code, body), &place, expected, remedy);
    }
    let not_mcp = Failed::Open(OpenErrorKind::Negotiation(Failure::NotMcp { status: 410 }));
    check(&not_mcp, &place, "wrong-path", "/mcp");
}

#[test]
fn a_login_asks_for_what_is_missing() {
    let mut refusal = HttpRefusal::new(401);
    refusal.challenges = vec!["Bearer realm=\"x\u{1b}[31m\"".to_owned()];
    let failed = Failed::Open(OpenErrorKind::Unauthorized(Box::new(refusal)));
    let mut destination = address("/mcp");
    let finding = explained(&symptoms(&failed, &destination));
    assert_eq!(
        finding.why,
        "HTTP status 401, requires: Bearer realm=\"x\\u{1b}[31m\""
    );
    if let Destination::Address {
        has_credentials, ..
    } = &mut destination
    {
        *has_credentials = true;
    }
    // With headers other than `Authorization`, a login may be missing.
    check(&failed, &destination, "login-needed", "mcp login");
    if let Destination::Address { can_log_in, .. } = &mut destination {
        *can_log_in = false;
    }
    check(&failed, &destination, "token-rejected", "expired");
}

#[test]
fn conversations_that_fail() {
    let place = program("server");
    let negotiation = |failure| Failed::Open(OpenErrorKind::Negotiation(failure));
    let request = |error| Failed::Open(OpenErrorKind::Request(error));
    let rejection = ErrorObject::new(ErrorCode(-32000), "set a token first");
    for (failed, code, remedy) in [
        (
            negotiation(Failure::NoCommonRevision {
                offered: vec!["2031-01-01".to_owned()],
            }),
            "no-common-version",
            "2026-07-28",
        ),
        (
            negotiation(Failure::HandshakeNeeded(Because::Silence)),
            "no-common-version",
            "update",
        ),
        (
            negotiation(Failure::Version {
                answered: Some("1.0".to_owned()),
                why: VersionProblem::Unknown,
            }),
            "no-common-version",
            "update",
        ),
        (
            negotiation(Failure::Refused(rejection.clone())),
            "refuses-initialize",
            "its message",
        ),
        (
            negotiation(Failure::NoAnswer(NoAnswer::Unreadable)),
            "unreadable",
            "MCP server",
        ),
        (
            negotiation(Failure::NoAnswer(NoAnswer::Silence)),
            "timed-out",
            "startup_timeout_sec",
        ),
        (
            Failed::Deadline(Duration::from_secs(60)),
            "timed-out",
            "startup_timeout_sec",
        ),
        (
            request(RequestError::Rejected(Box::new(rejection))),
            "list-refused",
            "token",
        ),
        (
            request(RequestError::TooLarge(10)),
            "response-too-large",
            "max_message_bytes",
        ),
        (
            request(RequestError::Lost("gone".to_owned())),
            "connection-lost",
            "by hand",
        ),
        (
            Failed::Open(OpenErrorKind::Closed(Closed::Exited(0))),
            "exited-early",
            "`serve`",
        ),
        (
            Failed::Open(OpenErrorKind::Closed(Closed::Exited(127))),
            "exited-early",
            "not found",
        ),
        (
            Failed::Open(OpenErrorKind::Closed(Closed::Signalled(9))),
            "killed-by-signal",
            "memory",
        ),
        (
            Failed::Open(OpenErrorKind::Closed(Closed::ByServer)),
            "connection-lost",
            "by hand",
        ),
        (
            transport(TransportErrorKind::Io, "odd"),
            "failed",
            "--verbose",
        ),
    ] {
        check(&failed, &place, code, remedy);
    }
}

#[test]
fn text_in_place_of_messages_is_quoted_and_bounded() {
    let failed = Failed::Deadline(Duration::from_secs(60));
    let destination = program("server");
    let noise = [format!(
        "Listening on port 3000\u{1b}[2J{}",
        "x".repeat(10_000)
    )];
    let finding = explained(&Symptoms {
        noise: &noise,
        ..symptoms(&failed, &destination)
    });
    assert_eq!(finding.code, "text-instead-of-messages");
    assert!(
        finding
            .why
            .starts_with("the first line is: Listening on port 3000\\u{1b}[2Jxxx"),
        "{finding:?}"
    );
    assert!(finding.why.chars().count() < QUOTED + 50, "{finding:?}");
}

#[test]
fn entries_that_are_no_servers() {
    for (failure, code, what) in [
        (
            ConnectorError::MissingVariable("API_TOKEN".to_owned()),
            "variable-not-set",
            "the variable API_TOKEN is not set",
        ),
        (
            ConnectorError::NoEndpoint,
            "no-endpoint",
            "the entry has neither a command nor a url",
        ),
        (
            ConnectorError::Itself("connect"),
            "own-program",
            "it starts Switchboard itself (`switchboard connect`), which would connect to itself without end",
        ),
        (
            ConnectorError::NoSandbox("on this system"),
            "no-sandbox",
            "the entry requires a sandbox, which is not available on this system",
        ),
    ] {
        let finding = connector(&failure);
        assert_eq!((finding.code, finding.what.as_str()), (code, what));
    }
}

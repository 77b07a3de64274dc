//! What the log of a server says about its end: the marks that npm, uv, Docker, Node, Python and servers leave there.
//!
//! A mark is no proof, so a finding always quotes the line it rests on. The lines are looked at only after a failure.

use switchboard_config::entry::Transport;
use switchboard_config::text::visible;

use super::{Symptoms, error, quoted};
use crate::doctor::Finding;
use crate::doctor::variables::Variables;

/// Explains a failure by what the process wrote to its standard error.
pub(super) fn explain(symptoms: &Symptoms<'_>) -> Option<Finding> {
    if symptoms.transport != Transport::Stdio || symptoms.stderr.is_empty() {
        return None;
    }
    let log = Log::new(symptoms);
    MARKS.iter().find_map(|mark| mark(&log))
}

/// Explains a failure of a server in a sandbox that says it was refused something.
pub(super) fn refused_by_sandbox(symptoms: &Symptoms<'_>) -> Option<Finding> {
    if !symptoms.is_confined {
        return None;
    }
    let log = Log::new(symptoms);
    let line = log.line_with(REFUSALS)?;
    Some(by_line(
        "sandbox-refused",
        "it was refused something, probably by its sandbox",
        line,
        "see what it wanted: a server that writes files needs sandbox = \"workspace\" and may write below the project's \
         folder only, one that calls others needs network = true; `npx` and `uvx` want to write their caches, so install \
         the program first and start it by its own name, or use sandbox = \"own-files\" and make the folders of the caches \
         first (mkdir -p ~/.npm ~/.cache)",
    ))
}

/// How programs say that the system refused them something.
const REFUSALS: &[&str] = &[
    "permission denied",
    "eacces",
    "eperm",
    "permissionerror",
    "operation not permitted",
    "read-only file system",
];

type Mark = fn(&Log<'_>) -> Option<Finding>;

/// Asked in order: the most telling first, the vague ones last.
const MARKS: &[Mark] = &[
    docker_without_rights,
    docker_not_running,
    docker_terminal,
    docker_image,
    npm_package,
    npm_version,
    npm_no_program,
    npm_registry,
    npm_cache,
    python_package,
    python_no_program,
    python_registry,
    program_missing,
    node_version,
    python_version,
    node_module,
    python_module,
    variable_missing,
    certificate,
    credentials,
    port_taken,
    out_of_memory,
    library_missing,
    arguments,
    file_missing,
    permission,
];

/// What a server wrote, and what helps to read it.
pub(super) struct Log<'a> {
    /// The lines, each also in lowercase.
    lines: Vec<(&'a str, String)>,
    server: &'a str,
    variables: &'a Variables,
}

impl<'a> Log<'a> {
    pub(super) fn new(symptoms: &Symptoms<'a>) -> Self {
        let lower = |line: &'a String| (line.as_str(), line.to_lowercase());
        Self {
            lines: symptoms.stderr.iter().map(lower).collect(),
            server: symptoms.server,
            variables: symptoms.variables,
        }
    }

    /// `env: ‘node’: No such file or directory`, `sh: 1: foo: not found`.
    pub(super) fn program_missing(&self) -> Option<&'a str> {
        self.line_where(|line| {
            (line.contains("env: ") && line.contains("no such file or directory"))
                || line.contains("command not found")
                || line.contains("is not recognized as an internal or external command")
                || (line.starts_with("sh: ") && line.ends_with(": not found"))
                || (line.contains("spawn ") && line.contains("enoent"))
        })
    }

    /// The first line that holds one of these, which are lowercase.
    pub(super) fn line_with(&self, marks: &[&str]) -> Option<&'a str> {
        self.line_where(|line| marks.iter().any(|mark| line.contains(mark)))
    }

    /// The first line whose lowercase form is like that.
    fn line_where(&self, is_it: impl Fn(&str) -> bool) -> Option<&'a str> {
        let found = self.lines.iter().find(|(_, lower)| is_it(lower));
        found.map(|(line, _)| *line)
    }

    pub(super) fn has(&self, marks: &[&str]) -> bool {
        self.line_with(marks).is_some()
    }
}

/// A finding that rests on a line.
fn by_line(
    code: &'static str,
    what: impl Into<String>,
    line: &str,
    remedy: impl Into<String>,
) -> Finding {
    error(code, what, format!("it wrote: {}", quoted(line)), remedy)
}

fn docker_without_rights(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&["permission denied while trying to connect to the docker"])?;
    Some(by_line(
        "docker-without-rights",
        "you may not use Docker",
        line,
        "add your user to the group `docker` and log in again, or use rootless Docker",
    ))
}

fn docker_not_running(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "cannot connect to the docker daemon",
        "is the docker daemon running",
        "docker desktop is not running",
        "dockerdesktoplinuxengine",
        "cannot connect to podman",
    ])?;
    Some(by_line(
        "docker-not-running",
        "Docker is not running",
        line,
        "start Docker Desktop, or the service: sudo systemctl start docker",
    ))
}

fn docker_terminal(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&["the input device is not a tty"])?;
    Some(by_line(
        "docker-terminal",
        "Docker was told to use a terminal, and there is none",
        line,
        "take -t out of `args`: -i alone is right for a server",
    ))
}

fn docker_image(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "pull access denied",
        "manifest unknown",
        "repository does not exist",
        "invalid reference format",
    ])?;
    Some(by_line(
        "docker-image",
        "there is no such image",
        line,
        "look for a typing mistake in the image's name and tag; a private one wants `docker login` first",
    ))
}

fn npm_package(log: &Log<'_>) -> Option<Finding> {
    let line = log
        .line_with(&["is not in this registry", "is not in the npm registry"])
        .or_else(|| log.line_with(&["404 not found - get"]))
        .or_else(|| log.line_with(&["code e404"]))?;
    let what = match between(line, '\'') {
        Some(package) => format!("npm knows no package {}", quoted(package)),
        None => "npm knows no package of that name".to_owned(),
    };
    Some(by_line(
        "package-not-found",
        what,
        line,
        "look for a typing mistake in `args`; a private package wants its registry and token in ~/.npmrc",
    ))
}

fn npm_version(log: &Log<'_>) -> Option<Finding> {
    let line = log
        .line_with(&["no matching version found for"])
        .or_else(|| log.line_with(&["code etarget"]))?;
    Some(by_line(
        "package-version",
        "npm has the package, but not in that version",
        line,
        "correct the version after the @ in `args`, or leave it out",
    ))
}

fn npm_no_program(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&["could not determine executable to run"])?;
    Some(by_line(
        "package-without-program",
        "the package has no program to run",
        line,
        "it may be a library, or name its program otherwise: npx -y --package=PACKAGE PROGRAM",
    ))
}

fn npm_registry(log: &Log<'_>) -> Option<Finding> {
    const NETWORK: [&str; 6] = [
        "enotfound",
        "econnrefused",
        "etimedout",
        "eai_again",
        "econnreset",
        "network request",
    ];
    let line = log.line_where(|line| {
        line.contains("npm err") && NETWORK.iter().any(|mark| line.contains(mark))
    })?;
    Some(by_line(
        "registry-unreachable",
        "npm cannot reach its registry",
        line,
        "see whether you are online; behind a proxy, name HTTPS_PROXY in `env_vars`: servers get a small environment \
         here. An installed package needs no registry",
    ))
}

fn npm_cache(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_where(|line| {
        line.contains("npm err")
            && ["eacces", "eperm", "erofs"]
                .iter()
                .any(|mark| line.contains(mark))
    })?;
    Some(by_line(
        "npm-cache",
        "npm may not write where it keeps its packages",
        line,
        "give the folder back to your user (sudo chown -R $(id -u) ~/.npm); it was made by another, mostly by sudo",
    ))
}

fn python_package(log: &Log<'_>) -> Option<Finding> {
    let line = log
        .line_with(&["was not found in the package registry"])
        .or_else(|| log.line_with(&["no matching distribution found for"]))
        .or_else(|| log.line_with(&["could not find a version that satisfies"]))
        .or_else(|| log.line_with(&["no solution found when resolving"]))?;
    Some(by_line(
        "package-not-found",
        "the Python package, or that version of it, was not found",
        line,
        "look for a typing mistake in `args`; for a package that needs another Python, uvx --python 3.12 PACKAGE",
    ))
}

fn python_no_program(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&["an executable named", "no executables are provided by"])?;
    Some(by_line(
        "package-without-program",
        "the package has no program of that name",
        line,
        "name both: uvx --from PACKAGE PROGRAM",
    ))
}

fn python_registry(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "failed to fetch: `http",
        "error sending request for url",
        "newconnectionerror",
        "failed to establish a new connection",
    ])?;
    Some(by_line(
        "registry-unreachable",
        "the package index cannot be reached",
        line,
        "see whether you are online; behind a proxy, name HTTPS_PROXY in `env_vars`: servers get a small environment \
         here. An installed package needs no index",
    ))
}

fn program_missing(log: &Log<'_>) -> Option<Finding> {
    let line = log.program_missing()?;
    Some(by_line(
        "inner-program-not-found",
        "a program that it starts was not found",
        line,
        "install that program; if you have it, add its folder to PATH in `env`: servers get the PATH Switchboard was \
         started with, which on a desktop is not your shell's",
    ))
}

fn node_version(log: &Log<'_>) -> Option<Finding> {
    let line = log
        .line_with(&[
            "unsupported engine",
            "ebadengine",
            "engine \"node\" is incompatible",
            "requires node",
            "unsupported node",
            "node.js version",
            "err_require_esm",
            "err_unknown_builtin_module",
            "no such built-in module",
            "does not provide an export named",
        ])
        .or_else(|| {
            const GLOBALS: [&str; 7] = [
                "fetch",
                "headers",
                "readablestream",
                "structuredclone",
                "webassembly",
                "crypto",
                "file",
            ];
            log.line_where(|line| {
                GLOBALS.iter().any(|global| {
                    line.contains(&format!("referenceerror: {global} is not defined"))
                })
            })
        })
        .or_else(|| {
            // Python's message has no quote; a SyntaxError of Node comes with a trace through its internals.
            let is_node = log.has(&["node:internal", "internal/modules", "at wrapsafe", "vm.js"]);
            log.line_with(&["syntaxerror:"]).filter(|_| is_node)
        })?;
    Some(by_line(
        "node-version",
        "it wants another version of Node.js",
        line,
        "see `node --version`; install the newest LTS (nvm install --lts), and write the full path of its npx as \
         `command` if several are installed",
    ))
}

fn python_version(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "requires a different python",
        "requires-python",
        "requires python",
        "the current python version",
        "syntaxerror: invalid syntax",
    ])?;
    Some(by_line(
        "python-version",
        "it wants another version of Python",
        line,
        "with uv: uvx --python 3.12 PACKAGE; otherwise write the full path of a newer Python as `command`",
    ))
}

fn node_module(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "cannot find module",
        "cannot find package",
        "err_module_not_found",
    ])?;
    Some(by_line(
        "module-missing",
        "a file or module it needs is not there",
        line,
        "if it is the server's own file, correct its path in `args` (relative ones are taken from `cwd`) or build it; \
         if it is a package, run `npm install` in its folder, or clear the cache of npx (~/.npm/_npx)",
    ))
}

fn python_module(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&["modulenotfounderror", "no module named"])?;
    Some(by_line(
        "module-missing",
        "a Python module it needs is not installed",
        line,
        "start it with the Python of its own environment (command = \"/…/.venv/bin/python\"), or with uv: uv run \
         --directory FOLDER …",
    ))
}

fn variable_missing(log: &Log<'_>) -> Option<Finding> {
    const SAYS_SO: [&str; 12] = [
        "environment variable",
        "env var",
        "is not set",
        "not set",
        "is required",
        "must be set",
        "must be provided",
        "missing",
        "not provided",
        "is undefined",
        "not defined",
        "keyerror",
    ];
    let (line, name) = log.lines.iter().find_map(|(line, lower)| {
        let says_so = SAYS_SO.iter().any(|mark| lower.contains(mark));
        let name = variable_in(line).filter(|_| says_so)?;
        Some((*line, name))
    })?;
    let entry = format!("[mcp_servers.{}]", visible(log.server));
    let pass_on = log.variables.line([name]);
    let remedy = if log.variables.has(name) {
        format!(
            "{name} is set in your shell, and servers do not get it unasked: add this line to {entry}: {pass_on}"
        )
    } else {
        format!(
            "{name} is not set where Switchboard was started, or empty: export it and add this line to {entry}: {pass_on}; or set \
             it in `env`"
        )
    };
    Some(by_line(
        "variable-missing",
        format!("it wants the variable {name}"),
        line,
        remedy,
    ))
}

fn certificate(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "self_signed_cert",
        "self signed certificate",
        "self-signed certificate",
        "unable_to_verify_leaf",
        "unable_to_get_issuer_cert",
        "certificate_verify_failed",
        "unable to get local issuer certificate",
        "invalid peer certificate",
    ])?;
    Some(by_line(
        "inner-certificate",
        "it does not trust a certificate on its way out",
        line,
        "behind a company's proxy, tell it the company's authority in `env`: NODE_EXTRA_CA_CERTS (Node), SSL_CERT_FILE \
         (Python, uv)",
    ))
}

fn credentials(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "401 unauthorized",
        "status code 401",
        "invalid api key",
        "invalid_api_key",
        "invalid token",
        "bad credentials",
        "authentication failed",
        "invalid access token",
    ])?;
    Some(by_line(
        "inner-credentials",
        "the service behind it refuses its credentials",
        line,
        "the token in `env` is wrong or has expired: get a new one",
    ))
}

fn port_taken(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&["eaddrinuse", "address already in use"])?;
    Some(by_line(
        "port-taken",
        "the port it wants to listen on is taken",
        line,
        "another copy may run: end it, or give this one another port; a server that listens wants a `url` instead of \
         a `command`",
    ))
}

fn out_of_memory(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "heap out of memory",
        "memoryerror",
        "cannot allocate memory",
    ])?;
    Some(by_line(
        "out-of-memory",
        "it ran out of memory",
        line,
        "give it less to do, or more memory (NODE_OPTIONS=--max-old-space-size=4096 in `env`, for Node)",
    ))
}

fn library_missing(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "error while loading shared libraries",
        "version `glibc",
        "library not loaded",
        "exec format error",
    ])?;
    Some(by_line(
        "library-missing",
        "it is not built for this system",
        line,
        "install the library it names, or a build of the server for this system and processor",
    ))
}

fn arguments(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "unrecognized arguments",
        "unrecognized option",
        "unknown option",
        "unknown argument",
        "unexpected argument",
        "arguments are required",
        "missing required argument",
        "usage:",
    ])?;
    Some(by_line(
        "arguments",
        "it does not like its arguments",
        line,
        "compare `args` with its documentation: each argument is a text of its own in the list",
    ))
}

fn file_missing(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "no such file or directory",
        "filenotfounderror",
        "enoent",
        "cannot find the path",
        "cannot access",
        "does not exist",
        "is not a directory",
        "can't open file",
    ])?;
    Some(by_line(
        "file-missing",
        "a file or folder it needs does not exist",
        line,
        "correct the path in `args` or `env` (relative ones are taken from `cwd`, or the project's folder; ~ is not \
         expanded, ${home} is)",
    ))
}

fn permission(log: &Log<'_>) -> Option<Finding> {
    let line = log.line_with(&[
        "permission denied",
        "eacces",
        "permissionerror",
        "operation not permitted",
    ])?;
    Some(by_line(
        "permission-denied",
        "it may not use a file or folder it needs",
        line,
        "see who owns what it names, and chmod or chown it",
    ))
}

/// What stands between the first two of these marks.
fn between(line: &str, mark: char) -> Option<&str> {
    let (_, rest) = line.split_once(mark)?;
    let (inside, _) = rest.split_once(mark)?;
    (!inside.is_empty()).then_some(inside)
}

/// A word that is written as variables are: `GITHUB_TOKEN`.
fn variable_in(line: &str) -> Option<&str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    line.split(|character| !is_part(character)).find(|word| {
        let has_underscore = word.trim_matches('_').contains('_');
        let is_upper = !word.contains(|character: char| character.is_ascii_lowercase());
        let starts_well = word.starts_with(|character: char| character.is_ascii_uppercase());
        // Node's own error codes look the same.
        has_underscore && is_upper && starts_well && !word.starts_with("ERR_") && word.len() <= 64
    })
}

//! Causes found in a server's log: messages of npm, uv, Docker, Node, Python and servers.
//!
//! A match is not proof, so a finding always quotes the line. The log is searched only after a failure.

use switchboard_config::entry::Transport;
use switchboard_config::text::visible;

use super::{Symptoms, error, quoted};
use crate::doctor::Finding;
use crate::doctor::variables::Variables;

/// Diagnoses a failure from the process's standard error.
pub(super) fn explain(symptoms: &Symptoms<'_>) -> Option<Finding> {
    if symptoms.transport != Transport::Stdio || symptoms.stderr.is_empty() {
        return None;
    }
    let log = Log::new(symptoms);
    CAUSES.iter().find_map(|cause| cause.explain(&log))
}

/// Diagnoses a failure of a sandboxed server that reports a denied access.
pub(super) fn refused_by_sandbox(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let log = symptoms.is_confined.then(|| Log::new(symptoms))?;
    REFUSED.explain(&log)
}

/// A cause that can be recognized in the log.
enum Cause {
    /// Quotes the first matching line.
    Line(LineCause),
    /// A line that mentions a missing environment variable.
    Variable,
}

/// A cause with a fixed explanation.
struct LineCause {
    code: &'static str,
    /// Line patterns, in groups: earlier groups take precedence wherever they match. See [`matches`].
    patterns: &'static [&'static [&'static str]],
    /// The log must also contain one of these, unless empty.
    beside: &'static [&'static str],
    /// `{name}` stands for the text in single quotes in the line.
    what: &'static str,
    remedy: &'static str,
}

impl Cause {
    fn explain(&self, log: &Log<'_>) -> Option<Finding> {
        match self {
            Self::Line(cause) => cause.explain(log),
            Self::Variable => missing_variable(log),
        }
    }
}

impl LineCause {
    fn explain(&self, log: &Log<'_>) -> Option<Finding> {
        if !self.beside.is_empty() && !log.has(self.beside) {
            return None;
        }
        let line = self
            .patterns
            .iter()
            .find_map(|group| log.line_with(group))?;
        let name = || between(line, '\'').map_or_else(|| "of that name".to_owned(), quoted);
        let what = match self.what.split_once("{name}") {
            Some((before, after)) => format!("{before}{}{after}", name()),
            None => self.what.to_owned(),
        };
        let evidence = format!("it wrote: {}", quoted(line));
        Some(error(self.code, what, evidence, self.remedy))
    }
}

/// Whether a line contains all parts of a pattern, separated by ` & `. A part that starts with `^` must start the line,
/// and one that ends with `$` must end it. Both must be lowercase.
fn matches(line: &str, pattern: &str) -> bool {
    pattern.split(" & ").all(|part| {
        if let Some(start) = part.strip_prefix('^') {
            line.starts_with(start)
        } else if let Some(end) = part.strip_suffix('$') {
            line.ends_with(end)
        } else {
            line.contains(part)
        }
    })
}

/// A server's log, with the context to interpret it.
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

    /// The line that reports a missing program.
    pub(super) fn program_missing(&self) -> Option<&'a str> {
        self.line_with(PROGRAM_MISSING)
    }

    /// The first line that matches one of these patterns.
    pub(super) fn line_with(&self, patterns: &[&str]) -> Option<&'a str> {
        let is_it = |lower: &str| patterns.iter().any(|pattern| matches(lower, pattern));
        let found = self.lines.iter().find(|(_, lower)| is_it(lower));
        found.map(|(line, _)| *line)
    }

    pub(super) fn has(&self, patterns: &[&str]) -> bool {
        self.line_with(patterns).is_some()
    }
}

fn missing_variable(log: &Log<'_>) -> Option<Finding> {
    let (line, name) = log.lines.iter().find_map(|(line, lower)| {
        let says_so = VARIABLE_MISSING.iter().any(|mark| lower.contains(mark));
        let name = variable_in(line).filter(|_| says_so)?;
        Some((*line, name))
    })?;
    let entry = format!("[mcp_servers.{}]", visible(log.server));
    let pass_on = log.variables.line([name]);
    let remedy = if log.variables.has(name) {
        format!(
            "{name} is set in your shell, but servers do not inherit it: add this line to {entry}: {pass_on}"
        )
    } else {
        format!(
            "{name} is unset or empty where Switchboard was started: export it and add this line to {entry}: {pass_on}; or set \
             it in `env`"
        )
    };
    let what = format!("the server needs the environment variable {name}");
    let evidence = format!("it wrote: {}", quoted(line));
    Some(error("variable-missing", what, evidence, remedy))
}

/// The text between the first two occurrences of `mark`.
fn between(line: &str, mark: char) -> Option<&str> {
    let (_, rest) = line.split_once(mark)?;
    let (inside, _) = rest.split_once(mark)?;
    (!inside.is_empty()).then_some(inside)
}

/// A word spelled like a variable: `GITHUB_TOKEN`.
fn variable_in(line: &str) -> Option<&str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    line.split(|character| !is_part(character)).find(|word| {
        let has_underscore = word.trim_matches('_').contains('_');
        let is_upper = !word.contains(|character: char| character.is_ascii_lowercase());
        let starts_well = word.starts_with(|character: char| character.is_ascii_uppercase());
        // Node's error codes are spelled the same.
        has_underscore && is_upper && starts_well && !word.starts_with("ERR_") && word.len() <= 64
    })
}

/// Messages about a missing variable.
const VARIABLE_MISSING: &[&str] = &[
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

/// `env: ‘node’: No such file or directory`, `sh: 1: foo: not found`.
const PROGRAM_MISSING: &[&str] = &[
    "env:  & no such file or directory",
    "command not found",
    "is not recognized as an internal or external command",
    "^sh:  & : not found$",
    "spawn  & enoent",
];

const REFUSED: LineCause = LineCause {
    code: "sandbox-refused",
    patterns: &[&[
        "permission denied",
        "eacces",
        "eperm",
        "permissionerror",
        "operation not permitted",
        "read-only file system",
    ]],
    what: "access denied, probably by the sandbox",
    remedy: "check what it tried to do: a server that writes files needs sandbox = \"workspace\" and may write below the project's \
             folder only, one that makes network connections needs network = true; `npx` and `uvx` write to their caches, so install \
             the program first and start it by its own name, or use sandbox = \"own-files\" and create the \
             cache folders first (mkdir -p ~/.npm ~/.cache)",
    ..BARE
};

/// An empty cause, for struct update syntax.
const BARE: LineCause = LineCause {
    code: "",
    patterns: &[],
    beside: &[],
    what: "",
    remedy: "",
};

/// Tried in order, from specific to vague.
const CAUSES: &[Cause] = &[
    Cause::Line(LineCause {
        code: "docker-permission",
        patterns: &[&["permission denied while trying to connect to the docker"]],
        what: "you do not have permission to use Docker",
        remedy: "add your user to the group `docker` and log in again, or use rootless Docker",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "docker-not-running",
        patterns: &[&[
            "cannot connect to the docker daemon",
            "is the docker daemon running",
            "docker desktop is not running",
            "dockerdesktoplinuxengine",
            "cannot connect to podman",
        ]],
        what: "Docker is not running",
        remedy: "start Docker Desktop, or the service: sudo systemctl start docker",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "docker-terminal",
        patterns: &[&["the input device is not a tty"]],
        what: "Docker was started with -t, but has no terminal",
        remedy: "remove -t from `args`: a server needs only -i",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "docker-image",
        patterns: &[&[
            "pull access denied",
            "manifest unknown",
            "repository does not exist",
            "invalid reference format",
        ]],
        what: "image not found",
        remedy: "check the image's name and tag; a private image needs `docker login` first",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "package-not-found",
        patterns: &[
            &["is not in this registry", "is not in the npm registry"],
            &["404 not found - get"],
            &["code e404"],
        ],
        what: "npm has no package {name}",
        remedy: "check the name in `args`; a private package needs its registry and token in ~/.npmrc",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "package-version",
        patterns: &[&["no matching version found for"], &["code etarget"]],
        what: "npm does not have this version of the package",
        remedy: "correct or remove the version after the @ in `args`",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "package-without-program",
        patterns: &[&["could not determine executable to run"]],
        what: "the package contains no executable",
        remedy: "it may be a library, or its executable may have another name: npx -y --package=PACKAGE PROGRAM",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "registry-unreachable",
        patterns: &[&[
            "npm err & enotfound",
            "npm err & econnrefused",
            "npm err & etimedout",
            "npm err & eai_again",
            "npm err & econnreset",
            "npm err & network request",
        ]],
        what: "npm cannot reach its registry",
        remedy: "check your network connection; behind a proxy, add HTTPS_PROXY to `env_vars`: servers inherit only a small \
                 environment. An installed package needs no registry",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "npm-cache",
        patterns: &[&["npm err & eacces", "npm err & eperm", "npm err & erofs"]],
        what: "npm cannot write to its cache",
        remedy: "make your user the owner (sudo chown -R $(id -u) ~/.npm); another user created it, usually through sudo",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "package-not-found",
        patterns: &[
            &["was not found in the package registry"],
            &["no matching distribution found for"],
            &["could not find a version that satisfies"],
            &["no solution found when resolving"],
        ],
        what: "Python package or version not found",
        remedy: "check the name in `args`; for a package that needs another Python version: uvx --python 3.12 PACKAGE",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "package-without-program",
        patterns: &[&["an executable named", "no executables are provided by"]],
        what: "the package contains no executable of that name",
        remedy: "specify both: uvx --from PACKAGE PROGRAM",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "registry-unreachable",
        patterns: &[&[
            "failed to fetch: `http",
            "error sending request for url",
            "newconnectionerror",
            "failed to establish a new connection",
        ]],
        what: "cannot reach the package index",
        remedy: "check your network connection; behind a proxy, add HTTPS_PROXY to `env_vars`: servers inherit only a small \
                 environment. An installed package needs no index",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "inner-program-not-found",
        patterns: &[PROGRAM_MISSING],
        what: "a program that it runs was not found",
        remedy: "install the program; if it is installed, add its folder to PATH in `env`: servers get the PATH that Switchboard \
                 was started with, which on a desktop is not your shell's",
        ..BARE
    }),
    Cause::Line(LineCause {
        patterns: &[
            &[
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
            ],
            &[
                "referenceerror: fetch is not defined",
                "referenceerror: headers is not defined",
                "referenceerror: readablestream is not defined",
                "referenceerror: structuredclone is not defined",
                "referenceerror: webassembly is not defined",
                "referenceerror: crypto is not defined",
                "referenceerror: file is not defined",
            ],
        ],
        ..NODE_VERSION
    }),
    Cause::Line(LineCause {
        // Python's message has no quote; a SyntaxError in Node has a stack trace through its internals.
        patterns: &[&["syntaxerror:"]],
        beside: &["node:internal", "internal/modules", "at wrapsafe", "vm.js"],
        ..NODE_VERSION
    }),
    Cause::Line(LineCause {
        code: "python-version",
        patterns: &[&[
            "requires a different python",
            "requires-python",
            "requires python",
            "the current python version",
            "syntaxerror: invalid syntax",
        ]],
        what: "it needs another version of Python",
        remedy: "with uv: uvx --python 3.12 PACKAGE; otherwise write the full path of a newer Python as `command`",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "module-missing",
        patterns: &[&[
            "cannot find module",
            "cannot find package",
            "err_module_not_found",
        ]],
        what: "a file or module is missing",
        remedy: "if it is the server's own file, correct its path in `args` (relative to `cwd`) or build \
                 it; if it is a package, run `npm install` in its folder, or clear the cache of npx (~/.npm/_npx)",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "module-missing",
        patterns: &[&["modulenotfounderror", "no module named"]],
        what: "a Python module is missing",
        remedy: "start it with the Python of its own environment (command = \"/…/.venv/bin/python\"), or with uv: uv run \
                 --directory FOLDER …",
        ..BARE
    }),
    Cause::Variable,
    Cause::Line(LineCause {
        code: "inner-certificate",
        patterns: &[&[
            "self_signed_cert",
            "self signed certificate",
            "self-signed certificate",
            "unable_to_verify_leaf",
            "unable_to_get_issuer_cert",
            "certificate_verify_failed",
            "unable to get local issuer certificate",
            "invalid peer certificate",
        ]],
        what: "it does not trust a certificate on its way out",
        remedy: "behind a company's proxy, name the company's certificate authority in `env`: NODE_EXTRA_CA_CERTS (Node), \
                 SSL_CERT_FILE (Python, uv)",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "inner-credentials",
        patterns: &[&[
            "401 unauthorized",
            "status code 401",
            "invalid api key",
            "invalid_api_key",
            "invalid token",
            "bad credentials",
            "authentication failed",
            "invalid access token",
        ]],
        what: "the service behind it rejects its credentials",
        remedy: "the token in `env` is wrong or has expired: get a new one",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "port-taken",
        patterns: &[&["eaddrinuse", "address already in use"]],
        what: "its port is already in use",
        remedy: "another copy may be running: stop it, or choose another port; a server that listens on a port needs a `url` instead \
                 of a `command`",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "out-of-memory",
        patterns: &[&[
            "heap out of memory",
            "memoryerror",
            "cannot allocate memory",
        ]],
        what: "it ran out of memory",
        remedy: "give it more memory (NODE_OPTIONS=--max-old-space-size=4096 in `env`, for Node)",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "library-missing",
        patterns: &[&[
            "error while loading shared libraries",
            "version `glibc",
            "library not loaded",
            "exec format error",
        ]],
        what: "it is not built for this system",
        remedy: "install the library it names, or a build of the server for this system and processor",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "arguments",
        patterns: &[&[
            "unrecognized arguments",
            "unrecognized option",
            "unknown option",
            "unknown argument",
            "unexpected argument",
            "arguments are required",
            "missing required argument",
            "usage:",
        ]],
        what: "it rejects its arguments",
        remedy: "check `args` against its documentation: each argument is a separate string in the list",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "file-missing",
        patterns: &[&[
            "no such file or directory",
            "filenotfounderror",
            "enoent",
            "cannot find the path",
            "cannot access",
            "does not exist",
            "is not a directory",
            "can't open file",
        ]],
        what: "a file or folder it needs does not exist",
        remedy: "correct the path in `args` or `env` (relative to `cwd`, or the project's folder; ~ is \
                 not expanded, ${home} is)",
        ..BARE
    }),
    Cause::Line(LineCause {
        code: "permission-denied",
        patterns: &[&[
            "permission denied",
            "eacces",
            "permissionerror",
            "operation not permitted",
        ]],
        what: "it has no permission for a file or folder",
        remedy: "check the owner and mode of the path it names (chmod, chown)",
        ..BARE
    }),
];

const NODE_VERSION: LineCause = LineCause {
    code: "node-version",
    what: "it needs another version of Node.js",
    remedy: "check `node --version`; install the latest LTS (nvm install --lts), and use the full path of its npx as \
             `command` if several are installed",
    ..BARE
};

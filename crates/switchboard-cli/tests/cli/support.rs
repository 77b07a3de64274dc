//! A temporary machine per test: a home, configuration folders, a project, and a few programs.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct TestContext {
    root: TempDir,
}

/// The servers of a machine without any configured.
pub(crate) const EMBEDDED: [&str; 1] = ["workspace"];

/// The outcome of running the program.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestContext {
    pub(crate) fn new() -> Self {
        let context = Self {
            root: TempDir::with_prefix("switchboard-").unwrap(),
        };
        for folder in ["home", "config", "state", "project/.git", "bin"] {
            std::fs::create_dir_all(context.root().join(folder)).unwrap();
        }
        context.write("project/.gitignore", ".switchboard.local.toml\n");
        for program in ["npx", "node", "uvx"] {
            context.program(program);
        }
        context
    }

    /// The machine's root folder, with links resolved as the program resolves them.
    pub(crate) fn root(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: impl AsRef<[u8]>) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        std::fs::read_to_string(self.path(relative)).unwrap()
    }

    pub(crate) fn exists(&self, relative: &str) -> bool {
        self.path(relative).symlink_metadata().is_ok()
    }

    fn program(&self, name: &str) {
        self.write(&format!("bin/{name}"), "#!/bin/sh\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let path = self.path(&format!("bin/{name}"));
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
        }
    }

    /// The program in the project, isolated from the real machine.
    pub(crate) fn command(&self) -> Command {
        Command::from_std(self.process())
    }

    /// Like [`command`](Self::command), with streams to choose.
    ///
    /// Every run is the first of its day, so that it shows all warnings.
    pub(crate) fn process(&self) -> std::process::Command {
        let _ = std::fs::remove_file(self.path("state/warned.json"));
        self.later_today()
    }

    /// Like [`process`](Self::process), on the day of the run before.
    pub(crate) fn later_today(&self) -> std::process::Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("switchboard"));
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", self.path("bin"))
            .env("TZ", "UTC")
            .env("SWITCHBOARD_CONFIG_DIR", self.path("config"))
            .env("SWITCHBOARD_STATE_DIR", self.path("state"))
            .env("SWITCHBOARD_MANAGED_FILE", self.path("managed.toml"))
            // A model server of the developer's machine is not used.
            .env("SWITCHBOARD_LOCAL_MODELS", "off")
            // A closed port, so that no test can connect to another machine.
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("HTTP_PROXY", "http://127.0.0.1:9")
            .env("NO_PROXY", "127.0.0.1,localhost")
            .current_dir(self.path("project"));
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&self.command().args(arguments).output().unwrap())
    }

    /// Runs a line, split as a shell would.
    pub(crate) fn line(&self, line: &str) -> Run {
        let words = switchboard_config::words::split(line).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.run(&words)
    }

    /// Like [`line`](Self::line), with the program's own diagnostics.
    pub(crate) fn logged(&self, filter: &str, line: &str) -> Run {
        let words = switchboard_config::words::split(line).unwrap();
        let mut command = self.command();
        command.env("SWITCHBOARD_LOG", filter).args(words);
        Run::of(&command.output().unwrap())
    }

    /// Runs a line that must succeed, and parses its JSON.
    pub(crate) fn json(&self, line: &str) -> Value {
        let run = self.line(line);
        assert_eq!(run.code, 0, "{line}\n{}", run.stderr);
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// Runs a line for a snapshot, with machine-specific parts replaced.
    pub(crate) fn snapshot(&self, line: &str) -> String {
        let Run {
            code,
            stdout,
            stderr,
        } = self.line(line);
        let text =
            format!("exit: {code}\n----- stdout -----\n{stdout}----- stderr -----\n{stderr}");
        self.filtered(&text)
    }

    pub(crate) fn filtered(&self, text: &str) -> String {
        // Make escape sequences visible in snapshots.
        let text = text
            .replace(&self.root().display().to_string(), "[ROOT]")
            .replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
            .replace('\u{1b}', "␛");
        // The width of a column depends on the length of the temporary folder's name.
        let has_path = |line: &str| {
            ["[ROOT]", "SOURCE", "FILE", "PATH"]
                .iter()
                .any(|part| line.contains(part))
        };
        let narrowed = |line: &str| {
            let mut line = line.to_owned();
            while line.trim_start().contains("   ") {
                let indent = line.len() - line.trim_start().len();
                line = line[..indent].to_owned() + &line[indent..].replace("   ", "  ");
            }
            line
        };
        let lines = text.split('\n').map(|line| {
            if has_path(line) {
                narrowed(line)
            } else {
                line.to_owned()
            }
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Run {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// The names in the output of `mcp list --json`.
    pub(crate) fn server_names(&self) -> Vec<String> {
        let list: Value = serde_json::from_str(&self.stdout).unwrap();
        let names = list.as_array().unwrap().iter();
        names
            .map(|each| each["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Standard output and standard error.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// The member of a JSON array with this name.
pub(crate) fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    list.as_array()
        .unwrap()
        .iter()
        .find(|each| each["name"] == name)
        .unwrap_or(&Value::Null)
}

pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .and_then(Path::parent)
        .unwrap()
}

/// Polls until another process has done something.
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        let waited = start.elapsed();
        assert!(waited.as_secs() < 30, "timed out waiting for {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

//! Loads the configuration from flags and environment.
//!
//! Every command except `config check` reports diagnostics as warnings here, each once a day, and continues with the
//! valid servers.

use std::path::PathBuf;

use switchboard::internal::places::MANAGED_FILE;
use switchboard_config::diagnostic::Diagnostic;
use switchboard_config::document::Source;
use switchboard_config::files::{Disk, Files, Folders, project_root};
use switchboard_config::resolve::{Config, Inputs};
use switchboard_config::settings::Settings;
use switchboard_config::text::visible;
use switchboard_config::trust::{Decisions, TRUST_FILE};

use crate::cli::GlobalFlags;
use crate::cloud;
use crate::environment::{self, Environment};
use crate::error::Failure;
use crate::printer::{Printer, Verbosity};
use crate::{report, warned};

/// The flags, environment, folders and printer that every command uses.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) printer: Printer,
    pub(crate) environment: Environment,
    pub(crate) flags: GlobalFlags,
    /// The working folder, with links resolved.
    pub(crate) cwd: PathBuf,
    /// The root of the project that contains `cwd`.
    pub(crate) project: PathBuf,
    /// Whether warnings about the configuration are repeated, since the command is about it.
    repeats_warnings: bool,
    /// Whether the command uses servers of a running daemon.
    pub(crate) uses_daemon: bool,
}

impl Context {
    pub(crate) fn new(flags: GlobalFlags) -> Result<Self, Failure> {
        let printer = printer(&flags);
        let environment = Environment::read()?;
        let start = flags.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        let cwd = start.canonicalize().map_err(|error| {
            if flags.cwd.is_none() {
                return Failure::failed("the current folder does not exist")
                    .because(error)
                    .hint("change to an existing folder, or pass one with --cwd");
            }
            Failure::usage(format!(
                "no such folder: {}",
                visible(&start.display().to_string())
            ))
            .because(error)
            .hint("check the path passed to --cwd")
        })?;
        if !cwd.is_dir() {
            let shown = start.display().to_string();
            return Err(
                Failure::usage(format!("{} is not a folder", visible(&shown)))
                    .hint("pass a folder to --cwd"),
            );
        }
        let project = project_root(&cwd, &environment.home, &Disk);
        if let Some(reason) = &environment.managed.refused {
            printer.warning(
                format!("{MANAGED_FILE} is ignored: {}", visible(reason)),
                Some("unset it, or make the file owned by root and writable only by root"),
            );
        }
        Ok(Self {
            printer,
            environment,
            flags,
            cwd,
            project,
            repeats_warnings: false,
            uses_daemon: false,
        })
    }

    /// Lets the command use the servers of a running daemon.
    pub(crate) fn through_daemon(self) -> Self {
        Self {
            uses_daemon: true,
            ..self
        }
    }

    /// For a command about the configuration: prints its warnings each time.
    #[must_use]
    pub(crate) fn repeating_warnings(mut self) -> Self {
        self.repeats_warnings = true;
        self
    }

    /// Loads the effective configuration and prints its diagnostics as warnings.
    pub(crate) fn load(&self) -> Config {
        let config = self.load_quietly();
        self.warn(&config.diagnostics);
        config
    }

    /// Loads the scalar settings, ignoring diagnostics.
    pub(crate) fn settings(&self) -> Settings {
        Config::load(&self.inputs(Decisions::default()), &Disk).settings
    }

    /// The folders that are searched for configuration files.
    pub(crate) fn folders(&self) -> Folders {
        Folders {
            home: self.environment.home.clone(),
            config: self.environment.config.clone(),
            state: self.environment.state.clone(),
            project: self.project.clone(),
            managed_file: self.environment.managed.file.clone(),
        }
    }

    /// Loads the effective configuration and leaves its diagnostics to the caller.
    pub(crate) fn load_quietly(&self) -> Config {
        self.load_further(Vec::new())
    }

    /// Loads the effective configuration without fetching anything: servers of a provider come from the cache.
    pub(crate) fn load_offline(&self) -> Config {
        let mut inputs = self.inputs(self.decisions());
        let config = Config::load(&inputs, &Disk);
        let (None, Some((url, _))) = (config.enterprise, &config.cloud_url) else {
            return config;
        };
        let Some(source) = cloud::cached(url, &self.environment.state) else {
            return config;
        };
        inputs.further.push(source);
        Config::load(&inputs, &Disk)
    }

    /// Loads the effective configuration with one more source, for a command about that source.
    pub(crate) fn load_with(&self, source: Source) -> Config {
        self.load_further(vec![source])
    }

    fn load_further(&self, further: Vec<Source>) -> Config {
        let mut inputs = self.inputs(self.decisions());
        inputs.further = further;
        let config = Config::load(&inputs, &Disk);
        // No enterprise file, exclusive or merging, admits cloud entries.
        let (None, Some((url, _))) = (config.enterprise, &config.cloud_url) else {
            return config;
        };
        let Some(source) = cloud::source(url, &self.environment.state, &self.printer) else {
            return config;
        };
        inputs.further.push(source);
        Config::load(&inputs, &Disk)
    }

    /// Loads the files under the given decisions, always including the project's. Fetches and prints nothing.
    pub(crate) fn load_files(&self, decisions: Decisions) -> Config {
        let inputs = Inputs {
            skip_project: false,
            trust_project: false,
            ..self.inputs(decisions)
        };
        Config::load(&inputs, &Disk)
    }

    /// Prints diagnostics as warnings, for commands that do not need the configuration itself.
    pub(crate) fn warn_of_findings(&self, decisions: &Decisions) {
        let inputs = self.inputs(decisions.clone());
        self.warn(&Config::load(&inputs, &Disk).diagnostics);
    }

    /// Prints diagnostics that were not printed in the last day; all of them if verbose.
    fn warn(&self, diagnostics: &[Diagnostic]) {
        match self.printer.verbosity {
            Verbosity::Quiet => {}
            Verbosity::Normal if !self.repeats_warnings => {
                let unseen = warned::unseen(diagnostics, &self.environment.state);
                report::in_passing(&unseen, &self.printer);
            }
            Verbosity::Normal | Verbosity::Verbose => {
                report::in_passing(diagnostics, &self.printer);
            }
        }
    }

    /// The diagnostics of the configuration in these files.
    pub(crate) fn findings(&self, files: &impl Files) -> Vec<Diagnostic> {
        let decisions = self.try_decisions().unwrap_or_default();
        Config::load(&self.inputs(decisions), files).diagnostics
    }

    fn inputs(&self, decisions: Decisions) -> Inputs {
        Inputs {
            folders: self.folders(),
            environment: self.environment.variables.clone(),
            extra_files: self
                .flags
                .config
                .iter()
                .map(|file| self.cwd.join(file))
                .collect(),
            further: Vec::new(),
            skip_project: self.flags.no_project,
            trust_project: self.flags.trust_project,
            decisions,
        }
    }

    pub(crate) fn trust_file(&self) -> PathBuf {
        self.environment.state.join(TRUST_FILE)
    }

    /// Reads the trust decisions; empty, with a warning, if the file cannot be read.
    pub(crate) fn decisions(&self) -> Decisions {
        self.try_decisions().unwrap_or_else(|failure| {
            let causes = failure.causes.join("; ");
            self.printer.warning(
                format!("{}, so nothing is trusted: {causes}", failure.message),
                failure.hints.first().map(String::as_str),
            );
            Decisions::default()
        })
    }

    pub(crate) fn try_decisions(&self) -> Result<Decisions, Failure> {
        let path = self.trust_file();
        let unreadable = |cause: String| unreadable_decisions(&path, &cause);
        let bytes = Disk
            .read(&path)
            .map_err(|error| unreadable(error.to_string()))?
            .unwrap_or_default();
        let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        Decisions::parse(&text).map_err(|error| unreadable(error.to_string()))
    }
}

/// The failure for unreadable trust decisions. The file is never overwritten: a newer version may have written it.
pub(crate) fn unreadable_decisions(path: &std::path::Path, cause: &str) -> Failure {
    let shown = path.display().to_string();
    Failure::failed(format!("the file {} cannot be used", visible(&shown)))
        .because(visible(cause))
        .hint("move the file away, then approve again when prompted")
}

/// Creates the printer that the flags select.
pub(crate) fn printer(flags: &GlobalFlags) -> Printer {
    let verbosity = match (flags.quiet, flags.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Verbose,
        (false, false) => Verbosity::Normal,
    };
    Printer {
        colors: environment::colors(flags.color),
        verbosity,
        json: flags.json,
        can_draw: environment::can_draw(),
    }
}

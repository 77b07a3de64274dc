//! From flags and environment to a configuration.
//!
//! Every command but `config check` gets its findings as warnings here, and goes on with the healthy servers.

use std::path::PathBuf;

use switchboard::places::MANAGED_FILE;
use switchboard_config::files::{Disk, Files as _, Folders, project_root};
use switchboard_config::resolve::{Config, Inputs};
use switchboard_config::settings::Settings;
use switchboard_config::text::visible;
use switchboard_config::trust::{Decisions, TRUST_FILE};

use crate::cli::GlobalFlags;
use crate::cloud;
use crate::environment::{self, Environment};
use crate::error::Failure;
use crate::printer::{Printer, Verbosity};
use crate::report;

/// What every command works with.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) printer: Printer,
    pub(crate) environment: Environment,
    pub(crate) flags: GlobalFlags,
    /// The folder the program acts in, with links resolved.
    pub(crate) cwd: PathBuf,
    /// The project that folder belongs to.
    pub(crate) project: PathBuf,
}

impl Context {
    pub(crate) fn new(flags: GlobalFlags) -> Result<Self, Failure> {
        let printer = printer(&flags);
        let environment = Environment::read()?;
        let start = flags.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
        let cwd = start.canonicalize().map_err(|error| {
            if flags.cwd.is_none() {
                return Failure::failed("the current folder is gone")
                    .because(error)
                    .hint("change to a folder that exists, or name one with --cwd");
            }
            Failure::usage(format!(
                "there is no folder {}",
                visible(&start.display().to_string())
            ))
            .because(error)
            .hint("check the path given to --cwd")
        })?;
        if !cwd.is_dir() {
            let shown = start.display().to_string();
            return Err(
                Failure::usage(format!("{} is not a folder", visible(&shown)))
                    .hint("give a folder to --cwd"),
            );
        }
        let project = project_root(&cwd, &environment.home, &Disk);
        if let Some(reason) = &environment.managed.refused {
            printer.warning(
                format!("{MANAGED_FILE} is not honoured: {}", visible(reason)),
                Some("unset it, or let the file belong to root and be writable by nobody else"),
            );
        }
        Ok(Self {
            printer,
            environment,
            flags,
            cwd,
            project,
        })
    }

    /// The effective configuration. Findings are warned of.
    pub(crate) fn load(&self) -> Config {
        let config = self.load_quietly();
        report::in_passing(&config.diagnostics, &self.printer);
        config
    }

    /// The scalar settings in force, with findings left out.
    pub(crate) fn settings(&self) -> Settings {
        Config::load(&self.inputs(Decisions::default()), &Disk).settings
    }

    /// Where configuration is looked for.
    pub(crate) fn folders(&self) -> Folders {
        Folders {
            home: self.environment.home.clone(),
            config: self.environment.config.clone(),
            state: self.environment.state.clone(),
            project: self.project.clone(),
            managed_file: self.environment.managed.file.clone(),
        }
    }

    /// The effective configuration, with findings left to the caller.
    pub(crate) fn load_quietly(&self) -> Config {
        let mut inputs = self.inputs(self.decisions());
        let config = Config::load(&inputs, &Disk);
        // Neither an exclusive nor a merging enterprise file lets cloud entries in.
        let (None, Some((url, _))) = (config.enterprise, &config.cloud_url) else {
            return config;
        };
        let Some(source) = cloud::source(url, &self.environment.state, &self.printer) else {
            return config;
        };
        inputs.further.push(source);
        Config::load(&inputs, &Disk)
    }

    /// What the files say under the given decisions, the project's included whatever the flags say. Nothing is
    /// fetched and nothing is said.
    pub(crate) fn load_files(&self, decisions: Decisions) -> Config {
        let inputs = Inputs {
            skip_project: false,
            trust_project: false,
            ..self.inputs(decisions)
        };
        Config::load(&inputs, &Disk)
    }

    /// Warns of what is wrong with the files, for commands that do not need the configuration itself.
    pub(crate) fn warn_of_findings(&self, decisions: &Decisions) {
        let inputs = self.inputs(decisions.clone());
        report::in_passing(&Config::load(&inputs, &Disk).diagnostics, &self.printer);
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

    /// Where the trust decisions are kept.
    pub(crate) fn trust_file(&self) -> PathBuf {
        self.environment.state.join(TRUST_FILE)
    }

    /// The trust decisions. Without a file that can be read nothing is trusted.
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

    /// The trust decisions, or why they cannot be read.
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

/// Why the trust decisions cannot be used. The file is never overwritten: it may be one of a newer version.
pub(crate) fn unreadable_decisions(path: &std::path::Path, cause: &str) -> Failure {
    let shown = path.display().to_string();
    Failure::failed(format!("the file {} cannot be used", visible(&shown)))
        .because(visible(cause))
        .hint("move the file away; what you had approved is asked about again")
}

/// The printer that the flags ask for.
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

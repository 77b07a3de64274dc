//! What can be typed: commands and flags. What they mean is in `commands`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// The MCP layer between agents and the outside world.
#[derive(Debug, Parser)]
#[command(
    name = "switchboard",
    version,
    propagate_version = false,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global flags")]
pub(crate) struct GlobalFlags {
    /// Run as if started in this folder
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Read one more configuration file, of any format, in local scope
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Ignore the project's files
    #[arg(long, global = true)]
    pub(crate) no_project: bool,
    /// Trust this project for this run only
    #[arg(long, global = true)]
    pub(crate) trust_project: bool,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only errors
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Print more
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: When,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Add, show, change and remove servers
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Review and approve a project's files
    #[command(subcommand)]
    Trust(TrustCommand),
    /// Review and approve changed tools
    #[command(subcommand)]
    Pins(PinsCommand),
    /// Show and check the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List the tools of all servers
    Tools(ToolsArguments),
    /// Find tools by what they are for
    Search(SearchArguments),
    /// Call a tool
    Call(CallArguments),
    /// List the resources of all servers, and their templates
    Resources(FromServer),
    /// Print a resource
    Read(ReadArguments),
    /// List the prompts of all servers
    Prompts(FromServer),
    /// Print a prompt, filled in
    Prompt(PromptArguments),
    /// Show the status of every server
    Status,
    /// Print a server's standard error and log messages
    Logs(LogsArguments),
    /// Diagnose servers and suggest fixes
    Doctor {
        /// Diagnose only this server
        server: Option<String>,
        /// Remove npx's broken copy of a server, then try again
        #[arg(long)]
        repair: bool,
    },
    /// Show which calls are allowed, prompted for or denied
    #[command(subcommand)]
    Permissions(PermissionsCommand),
    /// Show the audit log: calls, decisions, changes
    Audit(AuditArguments),
    /// Chat with a model that uses your servers
    #[command(after_help = crate::commands::chat::HELP)]
    Chat(ChatArguments),
    /// Serve the agent to other MCP clients
    #[command(after_help = crate::commands::serve::HELP)]
    Serve(ServeArguments),
    /// Print a completion script
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the version
    Version,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the effective configuration and the origin of each value
    Show,
    /// Check all configuration files
    Check,
    /// Print the JSON Schema of a configuration file
    Schema,
    /// List every file that is read
    Path,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server; takes the lines of claude's, codex's, gemini's and opencode's `mcp add` as they are
    #[command(
        override_usage = "switchboard mcp add [OPTIONS] <NAME> <URL>\n       switchboard mcp add [OPTIONS] <NAME> [--] <COMMAND> [ARGS]...",
        after_help = crate::commands::mcp::add::HELP
    )]
    Add {
        /// Options, the server's name, and its URL or its command with arguments
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "WORDS",
            hide = true
        )]
        words: Vec<String>,
    },
    /// Add a server from a JSON entry, as other tools write it
    AddJson(AddJsonArguments),
    /// Remove a server
    Remove {
        /// The server
        name: String,
        /// Only from this scope
        #[arg(long, short, value_enum)]
        scope: Option<WritableScope>,
    },
    /// Enable a server
    Enable {
        /// The server
        name: String,
    },
    /// Disable a server
    Disable {
        /// The server
        name: String,
    },
    /// List all servers
    List {
        /// Do not connect to the servers
        #[arg(long)]
        no_connect: bool,
    },
    /// Show everything about one server
    Get {
        /// The server
        name: String,
    },
    /// Log in to a server, with a browser or without
    Login(LoginArguments),
    /// Delete a server's login, and revoke it if possible
    Logout {
        /// The server
        name: String,
    },
    /// Import servers from other tools
    Import(ImportArguments),
    /// Export the servers to another tool's file
    Export(ExportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct AddJsonArguments {
    /// The server's name
    pub(crate) name: String,
    /// The entry, as a JSON object with `command` or `url`, or - to read it from standard input
    #[arg(value_name = "JSON")]
    pub(crate) entry: String,
    /// Where to add it
    #[arg(long, short, value_enum, default_value_t = WritableScope::Local)]
    pub(crate) scope: WritableScope,
    /// Replace an entry of the same name
    #[arg(long)]
    pub(crate) force: bool,
    /// The client secret is in the variable `MCP_CLIENT_SECRET`
    #[arg(long)]
    pub(crate) client_secret: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LoginArguments {
    /// The server
    pub(crate) name: String,
    /// Print the URL instead of opening a browser, and read the redirect URL from standard input
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Request these scopes, separated by commas
    #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// Wait this many seconds for the browser
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "300")]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Only from this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) from: Option<String>,
    /// Show what would change, without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Add the servers in this scope instead of their own (user, or local for a project's)
    #[arg(long, short, value_enum)]
    pub(crate) scope: Option<WritableScope>,
    /// Rename servers whose name is taken, to NAME-2 and so on
    #[arg(long)]
    pub(crate) rename: bool,
    /// Replace keys and tokens by references to variables, and list the variables to set
    #[arg(long)]
    pub(crate) secrets_as_variables: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) to: String,
    /// The file to write, or - for standard output; an existing file keeps everything else in it
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Scopes that commands write to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WritableScope {
    /// You, in this project: `.switchboard.local.toml`
    #[default]
    Local,
    /// You, everywhere: `mcp.toml` in your configuration folder
    #[value(alias = "global")]
    User,
    /// Everyone in this project: `.mcp.json`
    Project,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List what the project's files contain, and whether you trust it
    List,
    /// Approve pending items, or one of them
    Approve {
        /// A server, or a part of a file such as `.mcp.toml#hooks`
        name: Option<String>,
        /// Answer yes
        #[arg(long, short)]
        yes: bool,
    },
    /// Revoke approvals
    Revoke {
        /// A server, or a part of a file; everything of this project when absent
        name: Option<String>,
    },
    /// Show what changed since it was approved
    Diff {
        /// A server, or a part of a file
        name: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// List the rules in force
    List,
    /// Show the decision for a call and the deciding rule
    Explain {
        /// The tool: the name that `tools` shows, `server/tool`, or a built-in such as Bash
        tool: String,
        /// The arguments of the call, as a JSON object
        #[arg(value_name = "JSON")]
        arguments: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Only since then: a duration (1h, 7d), a date (2026-11-01) or a timestamp
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only this server
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Only tools matching this glob
    #[arg(long, value_name = "GLOB")]
    pub(crate) tool: Option<String>,
    /// Only calls with this decision
    #[arg(long, value_enum)]
    pub(crate) decision: Option<Decided>,
    /// Show at most N entries, newest first
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
}

/// What can be decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decided {
    /// Allowed
    Allow,
    /// The user was prompted
    Ask,
    /// Denied
    Deny,
}

impl std::fmt::Display for Decided {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum PinsCommand {
    /// List pins and their status
    List {
        /// SERVER, SERVER/TOOL or SERVER#instructions; everything when absent
        #[arg(value_name = "WHAT")]
        target: Option<String>,
    },
    /// Show what changed since it was pinned, as a diff
    Diff {
        /// SERVER, SERVER/TOOL or SERVER#instructions; everything when absent
        #[arg(value_name = "WHAT")]
        target: Option<String>,
    },
    /// Approve changes and pin the current definitions
    Approve {
        /// SERVER, SERVER/TOOL or SERVER#instructions
        #[arg(value_name = "WHAT", conflicts_with = "all")]
        target: Option<String>,
        /// Approve everything pending
        #[arg(long)]
        all: bool,
        /// Answer yes
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArguments {
    /// Only this server
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Also list tools that are set aside, with the reason
    #[arg(long)]
    pub(crate) all: bool,
    /// Use the cached lists instead of connecting
    #[arg(long)]
    pub(crate) no_connect: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// Keywords, a question, a tool's name, or select:NAME,NAME
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// Show at most N tools
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Only this server
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Use the cached lists instead of connecting
    #[arg(long)]
    pub(crate) no_connect: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// The tool: the name that `tools` shows, `server/tool` or `server.tool`
    pub(crate) tool: String,
    /// Its arguments: a JSON object, key=value pairs, or - to read JSON from standard input
    #[arg(value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
    /// Cancel the call after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Write images, audio and other binary content to this file, or the text if there is none
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FromServer {
    /// Only this server
    #[arg(long)]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArguments {
    /// The server
    pub(crate) server: String,
    /// The resource, as `resources` lists it
    pub(crate) uri: String,
    /// Write it to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArguments {
    /// The server
    pub(crate) server: String,
    /// The prompt, as `prompts` lists it
    pub(crate) name: String,
    /// Its arguments, as key=value pairs
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ChatArguments {
    /// Answer this prompt and exit; - reads it from standard input. Piped input is appended
    #[arg(long, short, value_name = "PROMPT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// The model, such as anthropic/NAME or openai/NAME
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Resume this session
    #[arg(long, short, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Resume the latest session of this folder
    #[arg(long = "continue", short = 'c', conflicts_with = "resume")]
    pub(crate) latest: bool,
    /// Set the output format
    #[arg(long, short, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
    /// List saved sessions
    #[arg(long, conflicts_with_all = ["prompt", "resume", "latest", "delete"])]
    pub(crate) list: bool,
    /// Delete a session
    #[arg(long, value_name = "ID", conflicts_with_all = ["prompt", "resume", "latest"])]
    pub(crate) delete: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Serve over standard input and output (the default)
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Listen for HTTP on this port, address and port, or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// Accept connections from other machines
    #[arg(long, requires = "http")]
    pub(crate) allow_remote: bool,
    /// The file with the token that clients must send; created if missing
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// The model, such as anthropic/NAME or openai/NAME
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text
    Text,
    /// One JSON document, at the end
    Json,
    /// Events as they happen, one JSON document per line
    StreamJson,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// The server
    pub(crate) server: String,
    /// Follow until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

//! Command-line grammar: commands, flags and their help texts. `commands` implements them.

mod clients;
mod listen;
mod tokens;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::examples;

pub(crate) use clients::{ClientsCommand, ConnectArguments, DisconnectArguments};
pub(crate) use listen::ListenArguments;
pub(crate) use tokens::{CreateTokenArguments, TokensCommand};

/// The MCP layer between agents and the outside world.
#[derive(Debug, Parser)]
#[command(
    name = "switchboard",
    version,
    propagate_version = false,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = crate::commands::help::after_help()
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global flags")]
pub(crate) struct GlobalFlags {
    /// Run as if started in this folder
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Read this configuration file as well, of any format, in local scope
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Ignore the project's files
    #[arg(long, global = true)]
    pub(crate) no_project: bool,
    /// Trust this project for this run only
    #[arg(long, global = true)]
    pub(crate) trust_project: bool,
    /// Do not use the servers of a running daemon
    #[arg(long, global = true)]
    pub(crate) no_daemon: bool,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only data and errors
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Also print details
    #[arg(long, short, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) color: When,
}

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
    /// Show, check and change the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List the tools of all servers, or describe one
    Tools(ToolsArguments),
    /// Find tools by what they are for
    Search(SearchArguments),
    /// Check whether tools can be called now, for scripts
    #[command(after_help = crate::commands::preflight::HELP)]
    Preflight(PreflightArguments),
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
    /// Show the status of every server, without starting any
    Status(StatusArguments),
    /// Print what a server wrote: standard error and log messages
    Logs(LogsArguments),
    /// Diagnose servers and suggest fixes
    Doctor {
        /// Diagnose only this server
        server: Option<String>,
        /// Remove npx's broken copy of a server, then try again
        #[arg(long)]
        repair: bool,
    },
    /// Show and change which calls are allowed, prompted for or denied
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
    /// Offer all servers to other MCP clients as one server
    #[command(after_help = crate::commands::gateway::HELP)]
    Gateway(GatewayArguments),
    /// Run the daemon: all servers, started once and shared by all clients
    Up(UpArguments),
    /// End the daemon and its servers
    Down,
    /// Connect an MCP client to the daemon, over standard input and output
    #[command(after_help = crate::commands::connect_help())]
    Connect(BridgeArguments),
    /// Use Switchboard in Claude Code, Cursor and other MCP clients
    #[command(subcommand)]
    Clients(ClientsCommand),
    /// Create and revoke the tokens of clients that use the gateway over HTTP
    #[command(subcommand)]
    Tokens(TokensCommand),
    /// Print a completion script
    Completions {
        /// Shell to generate the script for
        shell: Shell,
    },
    /// Show the help of a command or a topic, or write man pages
    Help(HelpArguments),
    /// Print the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct HelpArguments {
    /// A command, or one of the topics scopes, trust, rules, transports, completion
    #[arg(value_name = "COMMAND|TOPIC")]
    pub(crate) words: Vec<String>,
    /// Write a man page for each command into this folder
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    pub(crate) man: Option<PathBuf>,
}

/// The grammar, with examples.
pub(crate) fn command() -> clap::Command {
    examples::added(Cli::command())
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
    /// Change a setting, or a key of a server
    Set {
        /// A setting such as `tool_timeout_sec`, or SERVER.KEY
        key: String,
        /// The value, as TOML or as plain text
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Scope of the file; a server's key is changed where the server is configured
        #[arg(long, short, value_enum, default_value_t = RuleScope::User)]
        scope: RuleScope,
    },
    /// Open a configuration file in your editor, and check it afterwards
    Edit {
        /// Scope of the file
        #[arg(long, short, value_enum, default_value_t = WritableScope::User)]
        scope: WritableScope,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server; accepts `mcp add` lines of claude, codex, gemini and opencode unchanged
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
    #[command(visible_alias = "rm")]
    Remove {
        /// Name of the server
        name: String,
        /// Remove it only from this scope
        #[arg(long, short, value_enum)]
        scope: Option<WritableScope>,
    },
    /// Enable a server
    Enable {
        /// Name of the server
        name: String,
    },
    /// Disable a server
    Disable {
        /// Name of the server
        name: String,
    },
    /// List all servers
    #[command(visible_alias = "ls")]
    List {
        /// Do not connect to the servers
        #[arg(long)]
        no_connect: bool,
    },
    /// Show everything about one server
    Get {
        /// Name of the server
        name: String,
    },
    /// Rename a server
    Rename {
        /// Name of the server
        name: String,
        /// The new name
        new: String,
    },
    /// Open the file of a server in your editor, and check it afterwards
    Edit {
        /// Name of the server
        name: String,
    },
    /// Diagnose a server, like `doctor`
    Test {
        /// Name of the server
        name: String,
    },
    /// Log in to a server, with a browser or without
    Login(LoginArguments),
    /// Delete a server's login, and revoke it if possible
    Logout {
        /// Name of the server
        name: String,
    },
    /// Import servers from other tools
    Import(ImportArguments),
    /// Export the servers to another tool's file
    Export(ExportArguments),
}

#[derive(Debug, Args)]
pub(crate) struct AddJsonArguments {
    /// Name of the server
    pub(crate) name: String,
    /// The entry, as a JSON object with `command` or `url`, or - to read it from standard input
    #[arg(value_name = "JSON")]
    pub(crate) entry: String,
    /// Scope to add it to
    #[arg(long, short, value_enum, default_value_t = WritableScope::Local)]
    pub(crate) scope: WritableScope,
    /// Replace an entry of the same name
    #[arg(long)]
    pub(crate) force: bool,
    /// Read the client secret from the variable `MCP_CLIENT_SECRET`
    #[arg(long)]
    pub(crate) client_secret: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LoginArguments {
    /// Name of the server
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
    /// Import only from this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) from: Option<String>,
    /// Show what would change, without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Add the servers in this scope instead of their own (user, or local for a project's)
    #[arg(long, short, value_enum)]
    pub(crate) scope: Option<WritableScope>,
    /// Rename servers whose name is taken to NAME-2 and so on
    #[arg(long)]
    pub(crate) rename: bool,
    /// Replace keys and tokens with references to variables, and list the variables to set
    #[arg(long)]
    pub(crate) secrets_as_variables: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Tool to export to
    #[arg(long, value_name = "TOOL")]
    pub(crate) to: String,
    /// File to write, or - for standard output; other content of an existing file is preserved
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

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
        /// Approve without asking
        #[arg(long, short)]
        yes: bool,
    },
    /// Revoke approvals
    Revoke {
        /// A server, or a part of a file; everything of this project if omitted
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
        /// Tool: the name that `tools` shows, `server/tool`, or a built-in such as Bash
        tool: String,
        /// Arguments of the call: key=value, --key value, or a JSON object
        #[arg(value_name = "ARGUMENTS")]
        arguments: Vec<String>,
    },
    /// Add a rule that allows calls
    Allow(RuleArguments),
    /// Add a rule that asks before calls
    Ask(RuleArguments),
    /// Add a rule that denies calls
    Deny(RuleArguments),
    /// Remove the rules of a pattern
    #[command(visible_alias = "rm")]
    Remove(RuleArguments),
}

#[derive(Debug, Args)]
pub(crate) struct RuleArguments {
    /// Tools: `server/tool`, `mcp__server__*`, or Claude Code's notation such as `Bash(git status:*)`
    pub(crate) rule: String,
    /// Scope of the rule [default: user]
    #[arg(long, short, value_enum)]
    pub(crate) scope: Option<RuleScope>,
}

/// Where a rule or a setting of yours can be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleScope {
    /// You, in this project: `.switchboard.local.toml`
    Local,
    /// You, everywhere: `mcp.toml` in your configuration folder
    #[default]
    #[value(alias = "global")]
    User,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// Only entries since then: a duration (1h, 7d), a date (2026-11-01) or a timestamp
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only entries of this server
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Only tools matching this glob
    #[arg(long, value_name = "GLOB")]
    pub(crate) tool: Option<String>,
    /// Only calls made for this client, such as token:ci
    #[arg(long, value_name = "CLIENT")]
    pub(crate) client: Option<String>,
    /// Only calls with this decision
    #[arg(long, value_enum)]
    pub(crate) decision: Option<Decided>,
    /// Show at most N entries, newest first
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
}

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
        /// SERVER, SERVER/TOOL or SERVER#instructions; everything if omitted
        #[arg(value_name = "WHAT")]
        target: Option<String>,
    },
    /// Show what changed since it was pinned, as a diff
    Diff {
        /// SERVER, SERVER/TOOL or SERVER#instructions; everything if omitted
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
        /// Approve without asking
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArguments {
    /// A server to list, a tool to describe, or the URL of a server that is not configured
    #[arg(value_name = "SERVER|TOOL|URL", conflicts_with = "server")]
    pub(crate) what: Option<String>,
    /// List only tools of this server
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
    /// Search only tools of this server
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Use the cached lists instead of connecting
    #[arg(long)]
    pub(crate) no_connect: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// Tool: the name that `tools` shows, `server/tool`, or its own name; or a URL, and then the tool
    pub(crate) tool: String,
    /// Arguments: key=value, --key value, a JSON object, or - to read JSON from standard input
    #[arg(value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
    /// Show the call and whether it is permitted, without making it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Start this command as the server, for this call only
    #[arg(long, value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Cancel the call after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Write images, audio and other binary content to this file; text if there is none
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FromServer {
    /// List only those of this server
    #[arg(long)]
    pub(crate) server: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArguments {
    /// Name of the server
    pub(crate) server: String,
    /// URI of the resource, as `resources` lists it
    pub(crate) uri: String,
    /// Write the resource to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PromptArguments {
    /// Server and prompt: `server/prompt`, or the server's name and then the prompt's
    #[arg(value_name = "SERVER/PROMPT")]
    pub(crate) prompt: String,
    /// Arguments, as key=value or --key value
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) arguments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ChatArguments {
    /// Answer this prompt and exit; - reads it from standard input. Piped input is appended
    #[arg(long, short, value_name = "PROMPT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// Model to use, such as anthropic/NAME or openai/NAME
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
pub(crate) struct UpArguments {
    /// Run in the background
    #[arg(long, short)]
    pub(crate) detach: bool,
    /// Port or address for clients over HTTP, on this machine; 7348 by default
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// Start servers when a client needs them
    #[arg(long, hide = true)]
    pub(crate) on_demand: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PreflightArguments {
    /// Tools, as in `switchboard call`
    #[arg(required = true, value_name = "TOOL")]
    pub(crate) tools: Vec<String>,
    /// Seconds to wait for servers that are not running; those that take longer are starting
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct BridgeArguments {
    /// Offer only what a profile of the configuration includes
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GatewayArguments {
    #[command(flatten)]
    pub(crate) listen: ListenArguments,
    /// Offer only what a profile of the configuration includes
    #[arg(long, value_name = "NAME", conflicts_with = "transparent")]
    pub(crate) profile: Option<String>,
    /// Offer one server as it is, with its own names
    #[arg(long, value_name = "SERVER")]
    pub(crate) transparent: Option<String>,
    /// Whether clients get search tools instead of all definitions
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) search: SearchWhen,
    /// Tokens of definitions from which `--search auto` means search; by the client if omitted
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) search_budget: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SearchWhen {
    /// If the definitions take a tenth of the client's context window, or are more than it can take
    #[default]
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    #[command(flatten)]
    pub(crate) listen: ListenArguments,
    /// Model to use, such as anthropic/NAME or openai/NAME
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Plain text
    Text,
    /// One JSON document, at the end
    Json,
    /// Events as they happen, one JSON document per line
    StreamJson,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Connect to the servers and measure them
    #[arg(long)]
    pub(crate) connect: bool,
    /// Refresh until Ctrl-C
    #[arg(long, short)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// Name of the server
    pub(crate) server: String,
    /// Start the server and keep printing new lines until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print at most N lines of earlier runs
    #[arg(long, short = 'n', value_name = "N", default_value_t = 200)]
    pub(crate) lines: usize,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok();
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

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
    /// Act as if started in this folder
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Read one more configuration file, of any format, in local scope
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Vec<PathBuf>,
    /// Leave the project's files out
    #[arg(long, global = true)]
    pub(crate) no_project: bool,
    /// Trust this project for this run only
    #[arg(long, global = true)]
    pub(crate) trust_project: bool,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say nothing but errors
    #[arg(long, global = true)]
    pub(crate) quiet: bool,
    /// Say more
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
    /// Approve what a project's files want to do
    #[command(subcommand)]
    Trust(TrustCommand),
    /// Look at tools that changed since they were first used, and approve them
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
    /// Show how every server stands
    Status,
    /// Print what a server writes to its standard error, and its log messages
    Logs(LogsArguments),
    /// Try every server step by step: what is wrong with it, and how to mend it
    Doctor {
        /// The server; all of them when absent
        server: Option<String>,
        /// Repair what can be repaired: remove npx's broken copy of a server, then try it again
        #[arg(long)]
        repair: bool,
    },
    /// Show which calls are allowed, asked about or denied
    #[command(subcommand)]
    Permissions(PermissionsCommand),
    /// Show what was called, decided and changed
    Audit(AuditArguments),
    /// Talk with a model that uses your servers
    #[command(after_help = crate::commands::chat::HELP)]
    Chat(ChatArguments),
    /// Let other programs talk with the agent: serve it over MCP
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
    /// Show the whole effective configuration and where each value comes from
    Show,
    /// Look for mistakes in all configuration files
    Check,
    /// Print the JSON Schema of a configuration file
    Schema,
    /// Show every place that is looked at
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
    /// Add a server written as JSON, as other tools have it
    AddJson(AddJsonArguments),
    /// Remove a server
    Remove {
        /// The server
        name: String,
        /// Only from this scope
        #[arg(long, short, value_enum)]
        scope: Option<WritableScope>,
    },
    /// Let a server connect
    Enable {
        /// The server
        name: String,
    },
    /// Keep a server from connecting
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
    /// Forget the login to a server, and revoke it where that is possible
    Logout {
        /// The server
        name: String,
    },
    /// Take over servers from other tools
    Import(ImportArguments),
    /// Write the servers as another tool's file
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
    /// Open no browser: print the address, and read the one it leads to from standard input
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Ask for these scopes, with commas between them
    #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// How many seconds to wait for the browser
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "300")]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// Only from this tool
    #[arg(long, value_name = "TOOL")]
    pub(crate) from: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Add the servers in this scope; by default each keeps its own: yours, or yours in this project
    #[arg(long, short, value_enum)]
    pub(crate) scope: Option<WritableScope>,
    /// Add a server whose name is taken under another name, such as NAME-2
    #[arg(long)]
    pub(crate) rename: bool,
    /// Write references to variables in place of keys and tokens, and list the variables to set
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
    /// Everybody in this project: `.mcp.json`
    Project,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// List what the project's files want to do, and whether you trust it
    List,
    /// Approve what waits, or one thing
    Approve {
        /// A server, or a part of a file such as `.mcp.toml#hooks`
        name: Option<String>,
        /// Answer yes
        #[arg(long, short)]
        yes: bool,
    },
    /// Take approvals back
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
    /// Say what becomes of a call, and which rule decides
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
    /// Only since then: how long ago (1h, 7d), a day (2026-11-01) or a moment
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only of this server
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Only of tools that fit this glob
    #[arg(long, value_name = "GLOB")]
    pub(crate) tool: Option<String>,
    /// Only calls that were decided so
    #[arg(long, value_enum)]
    pub(crate) decision: Option<Decided>,
    /// At most so many, the newest
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
}

/// What can be decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decided {
    /// It was allowed
    Allow,
    /// Somebody was asked
    Ask,
    /// It was denied
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
    /// List what is pinned, and how it stands
    List {
        /// SERVER, SERVER/TOOL or SERVER#instructions; everything when absent
        #[arg(value_name = "WHAT")]
        target: Option<String>,
    },
    /// Show what changed since it was pinned, line by line
    Diff {
        /// SERVER, SERVER/TOOL or SERVER#instructions; everything when absent
        #[arg(value_name = "WHAT")]
        target: Option<String>,
    },
    /// Approve what changed, as it is now
    Approve {
        /// SERVER, SERVER/TOOL or SERVER#instructions
        #[arg(value_name = "WHAT", conflicts_with = "all")]
        target: Option<String>,
        /// Everything that waits
        #[arg(long)]
        all: bool,
        /// Answer yes
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArguments {
    /// Only of this server
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Also those that are set aside, and why
    #[arg(long)]
    pub(crate) all: bool,
    /// Do not connect: answer from what the servers offered last time
    #[arg(long)]
    pub(crate) no_connect: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArguments {
    /// What is wanted: keywords, a whole question, a tool's name, or select:NAME,NAME
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// The most tools to show
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Only of this server
    #[arg(long)]
    pub(crate) server: Option<String>,
    /// Do not connect: answer from what the servers offered last time
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
    /// How many seconds the call may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Write images, sound and other bytes to this file, or the text where there are none
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FromServer {
    /// Only of this server
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
    /// Answer this and end; - reads it from standard input, and what is piped in goes with it
    #[arg(long, short, value_name = "PROMPT", allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// The model, such as anthropic/NAME or openai/NAME
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Go on with this conversation
    #[arg(long, short, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Go on with the latest conversation of this folder
    #[arg(long = "continue", short = 'c', conflicts_with = "resume")]
    pub(crate) latest: bool,
    /// What the answer to a prompt is put out as
    #[arg(long, short, value_name = "FORMAT", value_enum)]
    pub(crate) output: Option<OutputFormat>,
    /// List the conversations that are kept
    #[arg(long, conflicts_with_all = ["prompt", "resume", "latest", "delete"])]
    pub(crate) list: bool,
    /// Delete a conversation
    #[arg(long, value_name = "ID", conflicts_with_all = ["prompt", "resume", "latest"])]
    pub(crate) delete: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Speak over standard input and output; this is what happens without --http
    #[arg(long, conflicts_with = "http")]
    pub(crate) stdio: bool,
    /// Listen for HTTP on this port, address and port, or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// Listen where other machines can connect, too
    #[arg(long, requires = "http")]
    pub(crate) allow_remote: bool,
    /// The file with the token that clients have to show; made if it is not there
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// The model, such as anthropic/NAME or openai/NAME
    #[arg(long, short, value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

/// What an answer is put out as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Its text
    Text,
    /// One JSON document, at the end
    Json,
    /// What happens, as it happens, one JSON document on each line
    StreamJson,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// The server
    pub(crate) server: String,
    /// Go on until you interrupt it
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

//! Grammar of `switchboard clients`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ClientsCommand {
    /// List the MCP clients that Switchboard knows, and which of them use it
    #[command(visible_alias = "ls")]
    List(ClientNames),
    /// Add Switchboard to clients: one entry in each one's own file
    Connect(ConnectArguments),
    /// Undo `clients connect`: restore the files as they were
    Disconnect(DisconnectArguments),
    /// Show connected clients whose entry is out of date
    Status(ClientNames),
}

#[derive(Debug, Args)]
pub(crate) struct ClientNames {
    /// Only these clients, such as claude-code or cursor
    #[arg(value_name = "CLIENT")]
    pub(crate) clients: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ConnectArguments {
    /// Clients to connect; all that are found if omitted
    #[arg(value_name = "CLIENT")]
    pub(crate) clients: Vec<String>,
    /// Offer only what a profile of the configuration includes
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Also move the clients' own servers to Switchboard, in user scope
    #[arg(long = "move")]
    pub(crate) moves: bool,
    /// Replace an entry named `switchboard` that starts something else
    #[arg(long)]
    pub(crate) force: bool,
    /// Show what would change, without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Connect without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DisconnectArguments {
    /// Clients to disconnect; all connected ones if omitted
    #[arg(value_name = "CLIENT")]
    pub(crate) clients: Vec<String>,
    /// Show what would change, without changing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

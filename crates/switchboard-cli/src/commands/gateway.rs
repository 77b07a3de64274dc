//! `switchboard gateway`: offers all servers as one MCP server, over standard input and output or HTTP.

use std::sync::Arc;

use switchboard::internal::sharing::SharedConnections;
use switchboard::permissions::Policy;
use switchboard_config::own_program;
use switchboard_server::gateway::{Gateway, GatewayOptions, GatewayQuestions, SearchMode};

use crate::cli::{GatewayArguments, SearchWhen};
use crate::commands::serve::report_failures;
use crate::context::Context;
use crate::current::Current;
use crate::error::Outcome;
use crate::front_end::{self, TokenPlace};
use crate::servers::Servers;
use crate::session::{self, ClientPrompts, SessionMode};

/// Text after the flags in `--help`.
pub(crate) const HELP: &str = "\
Clients see the tools of all servers as mcp__server__tool, and their resources and prompts.
Permission rules, pins and limits apply to every call. A call that a rule wants to ask about is
forwarded to the client if it supports that, and denied otherwise.

Examples:
  switchboard gateway
  claude mcp add all -- switchboard gateway
  switchboard gateway --http 127.0.0.1:8765
  switchboard gateway --profile review
  switchboard gateway --transparent github";

/// Printed if a user starts the server by hand.
const ON_A_TERMINAL: &str = "\
this is an MCP server for other programs: it waits for their messages on standard input
  to use it, add it to a client, for example: claude mcp add all -- switchboard gateway
  to serve several clients, run `switchboard gateway --http 8765`; Ctrl-C ends";

/// The front end recorded in the audit log.
const FRONT_END: &str = "gateway";
/// The tokens of the gateway.
pub(crate) const TOKENS: TokenPlace = TokenPlace {
    file: "gateway-token",
    has_named: true,
};

pub(crate) fn run(arguments: &GatewayArguments, context: &Context) -> Outcome {
    own_program::check_depth(&context.environment.all)?;
    let listen = front_end::http_options(&arguments.listen, &TOKENS, context)?;
    let servers = Servers::load(context, arguments.transparent.as_deref())?;
    if let Some(name) = &arguments.profile {
        servers.need_profile(name)?;
    }
    let questions = GatewayQuestions::about(&context.project);
    let options = GatewayOptions {
        transparent: arguments.transparent.as_deref().map(Into::into),
        profile: arguments.profile.as_deref().map(Into::into),
        search: match arguments.search {
            SearchWhen::Auto => SearchMode::Auto,
            SearchWhen::On => SearchMode::On,
            SearchWhen::Off => SearchMode::Off,
        },
        search_budget: arguments.search_budget,
        single_client: listen.is_none(),
        direct: false,
    };
    let mut clients = ClientPrompts::of(&questions);
    if listen.is_some() {
        clients = clients.sharing(&SharedConnections::default());
    }
    let mode = SessionMode {
        policy: Policy::gateway(),
        front_end: FRONT_END,
        attended: false,
        lists_only: false,
        logins: true,
        clients: Some(clients),
    };
    session::run_in(mode, context, &servers, async |session, interrupts| {
        session.report_withheld();
        let gateway = Gateway::new(session.host.clone(), questions, options);
        let current = Current::of_gateway(&gateway, session);
        let serving = async {
            let handler = Arc::new(gateway);
            match listen {
                Some(options) => {
                    session.host.start_all().await;
                    front_end::over_http(options, handler, "the gateway", context, interrupts).await
                }
                None => front_end::over_stdio(handler, context, interrupts, ON_A_TERMINAL).await,
            }
        };
        tokio::select! {
            outcome = serving => outcome,
            never = report_failures(session) => match never {},
            never = current.follow_files(session, |line| context.printer.note(line)) => match never {},
        }
    })
}

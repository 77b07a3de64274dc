//! `switchboard chat`: the agent, interactively and for scripts.
//!
//! `one_shot` answers a single prompt (`-p`), `interactive` runs the chat, `setup` opens one without a model. `ui` reads
//! keys and draws the live area: `input` with its `menu`, and `status`. `plain` reads lines where the cursor cannot be
//! moved. `slash` parses commands: `mcp_command` handles those about servers, `text_commands` those that only print;
//! `look` runs those that only show something, also during a turn.
//! `prompts`, `attach` and `complete` bring in prompts and resources of servers. `turn` and `call_line` draw a turn,
//! `sessions` manages stored sessions, `failure` maps errors to exit codes.

mod attach;
mod call_line;
mod changes_command;
mod complete;
mod cost;
mod earlier;
mod export;
mod failure;
mod interactive;
mod look;
pub(crate) mod mcp_command;
mod mcp_view;
mod menu;
mod one_shot;
mod permissions_command;
mod plain;
mod prompts;
mod results;
mod sessions;
mod setup;
mod slash;
mod status;
mod status_command;
mod text_commands;
mod turn;
mod ui;
mod welcome;

use switchboard::permissions::Policy;

use crate::agent;
use crate::cli::{ChatArguments, OutputFormat};
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::printer::{self, Printer};
use crate::servers::Servers;
use crate::session::{self, SessionMode};
use crate::terminal;

/// Text after the flags in `--help`.
pub(crate) const HELP: &str = "\
The model is selected by --model and these environment variables:
  ANTHROPIC_API_KEY   a model of Anthropic
  OPENAI_API_KEY      a model of OpenAI
  OPENAI_BASE_URL     your own server, such as http://localhost:11434/v1
Without any of them, a model of Ollama, LM Studio or llama.cpp on this machine is used.

Examples:
  switchboard chat
  switchboard chat -p 'what changed in the last commit?'
  git diff | switchboard chat -p 'review this'
  switchboard chat -p 'summarise @docs:file:///guide.md' --output json";

/// The front end recorded in the audit log.
const FRONT_END: &str = "chat";

fn mode(attended: bool) -> SessionMode {
    SessionMode {
        // A call typed after `/call` is the user's own; those of the model are always decided by `Policy::agent`.
        policy: Policy::typed(),
        front_end: FRONT_END,
        attended,
        lists_only: false,
        logins: true,
        clients: None,
    }
}

pub(crate) fn run(arguments: &ChatArguments, context: &Context) -> Outcome {
    match arguments.output {
        Some(OutputFormat::Json) => printer::want_json(),
        Some(OutputFormat::StreamJson) => printer::want_json_lines(),
        Some(OutputFormat::Text) | None => {}
    }
    if arguments.list || arguments.delete.is_some() {
        return sessions::run(arguments, context);
    }
    let is_scripted = arguments.prompt.is_some();
    if !is_scripted {
        interactive_is_possible(arguments, context)?;
    }
    let prompt = one_shot::read(arguments.prompt.as_deref(), context)?;
    let servers = Servers::load(context, None)?;
    let mode = mode(!is_scripted);
    session::run_in(mode, context, &servers, async |session, interrupts| {
        let model = arguments.model.as_deref();
        let provider = match &prompt {
            Some(_) => agent::provider(model, session.servers, context).await?,
            None => setup::first(model, session).await?,
        };
        let agent = agent::of_session(session, &provider);
        let conversation = sessions::find(&agent, arguments, context).await?;
        if let Some(prompt) = prompt {
            let format = format(arguments, context);
            return one_shot::run(&prompt, format, &conversation, session, interrupts).await;
        }
        let chat = interactive::run(agent, conversation, provider, session, interrupts);
        // Large, and awaited once.
        Box::pin(chat).await
    })
}

fn format(arguments: &ChatArguments, context: &Context) -> OutputFormat {
    match arguments.output {
        Some(format) => format,
        None if context.printer.json => OutputFormat::Json,
        None => OutputFormat::Text,
    }
}

/// Checks that an interactive chat is possible: it needs a terminal and has no JSON output.
fn interactive_is_possible(arguments: &ChatArguments, context: &Context) -> Result<(), Failure> {
    let wants_data = context.printer.json || arguments.output.is_some();
    if wants_data {
        return Err(Failure::usage("--json and --output need -p").hint("pass the prompt with -p"));
    }
    if !terminal::is_there() || !Printer::is_on_terminal() {
        return Err(Failure::usage("an interactive chat needs a terminal")
            .hint("pass a prompt with -p, or -p - to read it from standard input"));
    }
    Ok(())
}

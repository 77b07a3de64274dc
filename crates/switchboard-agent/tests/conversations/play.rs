//! Plays a scripted conversation with a real agent.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::value::to_raw_value;
use switchboard::internal::desired::Desired;
use switchboard::internal::hooks::{HookAnswer, HookInput, Registration};
use switchboard::internal::transport::http::{HttpClient, HttpSettings};
use switchboard::permissions::{Engine, PermissionGate, Policy};
use switchboard::{Host, HostOptions, SharedJson};
use switchboard_agent::message::{Image, Part};
use switchboard_agent::provider::{
    Chunk, Model, Provider, ProviderError, ProviderSettings, Request, RetryPolicy,
};
use switchboard_agent::{
    Agent, AgentOptions, Prompt, SearchMode, Session, SessionError, SessionEvent,
};
use switchboard_config::entry::Permission;
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::policy::HookEvent;
use switchboard_config::resolve::{Config, Inputs};
use switchboard_config::secret::Secret;
use switchboard_test::hosted;
use switchboard_test::model::{Recorded, ScriptedModel, Wire};
use switchboard_test::scripted::{self, Command, Over, Running, Script};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::script::{Conversation, Meanwhile, Options, Server, Then, When, WholePrompt};
use crate::servers;

/// Timeout of every step; reached only by failing conversations.
const PATIENCE: Duration = Duration::from_secs(60);

/// Shared, because loading the system's certificates is slow.
static CLIENT: LazyLock<HttpClient> =
    LazyLock::new(|| HttpClient::new(HttpSettings::default()).unwrap());

/// Result of a conversation.
pub(crate) struct Played {
    /// Requests to the model.
    pub(crate) requests: Vec<Recorded>,
    /// Output for the user.
    pub(crate) output: Vec<String>,
    /// Texts that differ from run to run, with their placeholders.
    pub(crate) places: Vec<(String, String)>,
}

pub(crate) async fn play(name: &str, conversation: &Conversation, wire: Wire) -> Played {
    let playing = Playing::start(conversation, wire).await;
    let output = timeout(PATIENCE, playing.run(conversation)).await;
    let output = output.unwrap_or_else(|_| {
        panic!(
            "{name} ({wire:?}) does not end; asked: {:#?}",
            playing.model.requests()
        )
    });
    let left = playing.model.left();
    assert!(
        left.is_empty(),
        "{name} ({wire:?}): the model was not asked for {left:#?}"
    );
    let place = |path: &Path| path.to_string_lossy().into_owned();
    let mut places = vec![
        (place(&playing.workspace), "/workspace".to_owned()),
        (place(&playing.spill), "/spill".to_owned()),
    ];
    for (name, (server, _)) in &playing.servers {
        let url = server.url().unwrap_or_default();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        places.push((address.to_owned(), format!("{name}.test")));
    }
    Played {
        requests: playing.model.requests(),
        output,
        places,
    }
}

struct Playing {
    model: ScriptedModel,
    providers: [Arc<dyn Provider>; 2],
    agent: Agent,
    host: Host,
    servers: HashMap<String, (Running, Script)>,
    workspace: PathBuf,
    spill: PathBuf,
    interrupt: Notify,
    _folder: tempfile::TempDir,
}

impl Playing {
    async fn start(conversation: &Conversation, wire: Wire) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (workspace, spill) = (root.join("workspace"), root.join("spill"));
        for folder in [&workspace, &spill] {
            std::fs::create_dir(folder).unwrap();
        }
        for (name, text) in &conversation.files {
            std::fs::write(workspace.join(name), text).unwrap();
        }
        let mut running = HashMap::new();
        let mut specs = Vec::new();
        for server in &conversation.servers {
            let script = match server {
                Server::Known(name) => servers::known(name),
                Server::Scripted(script) => Script::clone(script),
            };
            let server = scripted::start(script.clone(), Over::Http).await.unwrap();
            specs.push(spec(&script.name, &server));
            running.insert(script.name.clone(), (server, script));
        }
        for name in conversation.meanwhile.iter().flat_map(|event| &event.then) {
            if let Then::AddServer(name) = name {
                let script = servers::known(name);
                let server = scripted::start(script.clone(), Over::Http).await.unwrap();
                running.insert(name.clone(), (server, script));
            }
        }
        let model = ScriptedModel::start(conversation.turn.clone())
            .await
            .unwrap();
        let other = if wire == Wire::Anthropic {
            Wire::OpenAi
        } else {
            Wire::Anthropic
        };
        let providers = [
            provider(&model, wire, &conversation.options).await,
            provider(&model, other, &conversation.options).await,
        ];
        let gate = Arc::new(PermissionGate::new(engine(conversation)));
        let host = Host::with_options(HostOptions {
            gate,
            spill_folder: Some(spill.clone()),
            desired: Desired::from(specs),
            ..HostOptions::default()
        });
        let mut options = AgentOptions::new(host.clone(), Arc::clone(&providers[0]));
        options.spill_folder = Some(spill.clone());
        conversation.options.apply(&mut options);
        Self {
            model,
            providers,
            agent: Agent::new(options),
            host,
            servers: running,
            workspace,
            spill,
            interrupt: Notify::new(),
            _folder: folder,
        }
    }

    async fn run(&self, conversation: &Conversation) -> Vec<String> {
        let talk = async {
            let mut session = self.agent.session(&self.workspace);
            let mut output = Vec::new();
            for prompt in &conversation.prompts {
                let prompt = prompt.whole();
                if prompt.resume {
                    let id = session.id().clone();
                    drop(session);
                    session = self.agent.resume(&id).await.unwrap();
                }
                if prompt.switch {
                    session.set_provider(Arc::clone(&self.providers[1]));
                }
                if prompt.compact {
                    session.compact().await.unwrap();
                }
                output.extend(self.turn(&session, prompt).await);
            }
            output
        };
        let meanwhile = async {
            for event in &conversation.meanwhile {
                self.happen(event).await;
            }
        };
        let (output, ()) = tokio::join!(talk, meanwhile);
        output
    }

    async fn turn(&self, session: &Session, prompt: WholePrompt) -> Vec<String> {
        let mut said = Prompt::from(prompt.text);
        if prompt.picture {
            said.parts.push(Part::Image(Image {
                mime_type: "image/png".to_owned(),
                data: "iVBORw0KGgo=".to_owned(),
            }));
        }
        let mut output = vec!["> a turn".to_owned()];
        let mut events = session.stream(said);
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = self.interrupt.notified() => {
                    output.push("interrupted".to_owned());
                    return output;
                }
            };
            match event {
                None => return output,
                Some(event) => output.extend(render_event(event)),
            }
        }
    }

    async fn happen(&self, event: &Meanwhile) {
        match &event.when {
            When::Asked(number) => {
                self.model.request(*number).await;
            }
            When::Waiting(server) => self
                .server(server)
                .control
                .wait_for_gate("wait", 1)
                .await
                .unwrap(),
        }
        for then in &event.then {
            self.act(then).await;
        }
    }

    async fn act(&self, then: &Then) {
        match then {
            Then::AddTool { server, tool } => {
                let script = &self.servers[server].1;
                let script = script
                    .clone()
                    .tool(servers::text_tool(tool, "Came later.").replies("here I am"));
                self.change(server, &script, tool, true).await;
            }
            Then::RemoveTool { server, tool } => {
                let mut script = self.servers[server].1.clone();
                script.tools.retain(|has| has.name() != tool);
                self.change(server, &script, tool, false).await;
            }
            Then::End(server) => {
                self.server(server).control.tell(Command::Exit { code: 1 });
            }
            Then::AddServer(server) => {
                let spec = spec(server, self.server(server));
                self.host.add_server(spec).await.unwrap();
            }
            Then::Release(server) => self.server(server).control.release("wait"),
            Then::GoOn(gate) => self.model.release(gate),
            Then::Interrupt => self.interrupt.notify_one(),
        }
    }

    /// Changes the tools of a server and waits until the host has noticed.
    async fn change(&self, server: &str, script: &Script, tool: &str, is_there: bool) {
        self.server(server).control.change_tools(script);
        let name = format!("mcp__{server}__{tool}");
        hosted::wait_until(|| self.host.catalog().exposed(&name).is_some() == is_there).await;
    }

    fn server(&self, name: &str) -> &Running {
        &self.servers[name].0
    }
}

fn spec(name: &str, server: &Running) -> switchboard::internal::spec::ServerSpec {
    let mut spec = hosted::spec(name, server, Over::Http, 1 << 24);
    spec.rules = spec.rules.trusting_annotations();
    spec
}

impl Options {
    fn apply(&self, options: &mut AgentOptions) {
        options.search = match self.search.as_deref() {
            Some("on") => SearchMode::On,
            Some("off") => SearchMode::Off,
            _ => SearchMode::Auto,
        };
        options.max_requests = self.max_requests.unwrap_or(options.max_requests);
        options.max_tokens = self.max_tokens;
        options.max_output_tokens = self.max_output_tokens.unwrap_or(options.max_output_tokens);
        options.instructions.clone_from(&self.instructions);
    }
}

/// Renders an event as a line, without what differs from run to run.
fn render_event(event: Result<SessionEvent, SessionError>) -> Option<String> {
    Some(match event {
        Err(error) => {
            let error = error.to_string();
            let (_, message) = error.split_once(": ").unwrap_or(("", &error));
            format!("failed: {message}")
        }
        Ok(SessionEvent::Started {
            tools,
            failed_servers,
            ..
        }) => {
            let failed: Vec<&str> = failed_servers
                .iter()
                .map(|server| server.name.as_str())
                .collect();
            format!("started: {tools} tools, failed {failed:?}")
        }
        Ok(SessionEvent::Text { text }) => format!("text: {text}"),
        Ok(SessionEvent::Retrying { attempt, .. }) => format!("retrying: {attempt}"),
        Ok(SessionEvent::CallBegins {
            id, name, parent, ..
        }) => {
            let parent = parent
                .map(|parent| format!(" for {parent}"))
                .unwrap_or_default();
            format!("call {id}: {name}{parent}")
        }
        Ok(SessionEvent::CallEnds { id, is_error, .. }) => {
            format!("call {id} {}", if is_error { "failed" } else { "ended" })
        }
        Ok(SessionEvent::ToolsChanged { added, removed }) => {
            format!("tools: +{added:?} -{removed:?}")
        }
        Ok(SessionEvent::Compacted { .. }) => "compacted".to_owned(),
        Ok(SessionEvent::Notice { text, .. }) => format!("notice: {text}"),
        Ok(SessionEvent::Ended(reply)) => format!(
            "ended: {:?}, {:?}, {} calls, {} in, {} out",
            reply.reason,
            reply.response,
            reply.tool_calls.len(),
            reply.usage.input,
            reply.usage.output
        ),
        // Reasoning and progress arrive in any order.
        Ok(_) => return None,
    })
}

fn engine(conversation: &Conversation) -> Engine {
    let home = PathBuf::from("/nowhere/home");
    let folders = Folders {
        config: home.join(".config/switchboard"),
        state: home.join(".local/state/switchboard"),
        home,
        project: PathBuf::from("/nowhere/project"),
        managed_file: None,
    };
    let file = folders.config.join("mcp.toml");
    let on_disk = InMemory::default().file(file, conversation.rules.as_str());
    let inputs = Inputs {
        folders: folders.clone(),
        ..Inputs::default()
    };
    let action = if conversation.options.denies {
        Permission::Deny
    } else {
        Permission::Allow
    };
    let policy = Policy {
        default: action,
        annotations: true,
        unattended: action,
        typed: false,
    };
    let engine = Engine::new(&Config::load(&inputs, &on_disk), &folders, policy);
    assert_eq!(engine.problems().count(), 0, "the rules are wrong");
    let hooks = conversation.hooks.iter().map(|hook| {
        let event = if hook.result.is_some() {
            HookEvent::PostToolUse
        } else {
            HookEvent::PreToolUse
        };
        let answer = HookAnswer {
            arguments: hook
                .arguments
                .as_ref()
                .map(|value| to_raw_value(value).unwrap()),
            result: hook.result.as_ref().map(|text| {
                let result = serde_json::json!({"content": [{"type": "text", "text": text}]});
                SharedJson::from(to_raw_value(&result).unwrap())
            }),
            ..hook
                .block
                .as_ref()
                .map(HookAnswer::block)
                .unwrap_or_default()
        };
        Registration {
            event,
            tool: hook.tool.clone(),
            fail_open: false,
            hook: Arc::new(move |_: &HookInput<'_>| answer.clone()),
        }
    });
    engine.with_hooks(hooks.collect::<Vec<_>>())
}

async fn provider(model: &ScriptedModel, wire: Wire, options: &Options) -> Arc<dyn Provider> {
    let key = Some(Secret::new("sk-of-nobody"));
    let mut settings = ProviderSettings {
        client: Some(CLIENT.clone()),
        retry: RetryPolicy {
            first_wait: Duration::from_millis(2),
            ..RetryPolicy::default()
        },
        ..ProviderSettings::default()
    };
    match wire {
        Wire::Anthropic => {
            settings.anthropic_key = key;
            settings.anthropic_url = Some(model.anthropic_url());
            settings.model = Some("anthropic/claude-sonnet-4-5".to_owned());
        }
        Wire::OpenAi | Wire::Responses => {
            settings.responses = Some(wire == Wire::Responses);
            settings.openai_key = key;
            settings.openai_url = Some(model.openai_url());
            settings.model = Some("openai/test".to_owned());
        }
    }
    let provider = settings.provider().await.unwrap();
    let known = provider.model();
    let model = Model {
        window: options.window.unwrap_or(200_000),
        max_output: options.window.map_or(64_000, |window| window / 4),
        vision: !options.is_blind,
        tools: !options.has_no_tools,
        ..known.clone()
    };
    Arc::new(Described { provider, model })
}

/// A provider with overridden model properties, the same in every format.
#[derive(Debug)]
struct Described {
    provider: Arc<dyn Provider>,
    model: Model,
}

impl Provider for Described {
    fn model(&self) -> &Model {
        &self.model
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        self.provider.ask(request)
    }
}

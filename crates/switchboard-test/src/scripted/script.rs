//! What a scripted server is and offers.
//!
//! Owns the description, which is plain data: built in a test, or read from JSON by the program `scripted-server`.
//! What goes wrong is in [`fault`](super::fault).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_protocol::{Era, Revision};

use super::fault::Rule;

/// A whole server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its instructions for the model.
    pub instructions: Option<String>,
    /// The revisions it serves: of one era, or of both.
    pub revisions: Vec<String>,
    /// What it says it can do, in place of what follows from the rest.
    pub capabilities: Option<Value>,
    /// Its tools.
    pub tools: Vec<Tool>,
    /// More tools, made up.
    pub generated_tools: Option<Generated>,
    /// Its resources.
    pub resources: Vec<Resource>,
    /// Its resource templates, as they are listed.
    pub resource_templates: Vec<Value>,
    /// Its prompts.
    pub prompts: Vec<Prompt>,
    /// What arguments can be completed to, by their names.
    pub completions: BTreeMap<String, Vec<String>>,
    /// How many items a list has on one page; all of them without it.
    pub page_size: Option<usize>,
    /// `ttlMs` of what can be cached (stateless era).
    pub ttl_ms: u64,
    /// `cacheScope` of what can be cached (stateless era).
    pub cache_scope: String,
    /// Whether questions come with a `requestState` (stateless era).
    pub request_state: bool,
    /// How HTTP behaves.
    pub http: Http,
    /// How the process behaves (stdio).
    pub process: Process,
    /// What goes wrong.
    pub rules: Vec<Rule>,
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The tool as it is listed.
    pub definition: Value,
    /// What a call does, in order. Without a [`Do::Reply`], [`Do::Fail`] or [`Do::Asked`] at its end it
    /// [echoes](Do::Echo).
    #[serde(default)]
    pub does: Vec<Do>,
    /// Where this is set, a call begins a task that is at work for so many questions.
    #[serde(default)]
    pub task_polls: Option<u32>,
}

/// One thing a call does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Do {
    /// Tells how far it is, if the caller wants to know.
    Progress {
        /// How far.
        progress: f64,
        /// Of how much.
        #[serde(default)]
        total: Option<f64>,
        /// In words.
        #[serde(default)]
        message: Option<String>,
    },
    /// Writes to the log of the client.
    Log {
        /// The level.
        level: String,
        /// What is said.
        data: Value,
    },
    /// Sends a notification on the stream of the call.
    Notify {
        /// Its method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// Waits until the control releases this gate.
    Wait {
        /// The gate.
        gate: String,
    },
    /// Waits for so long.
    Pause {
        /// Milliseconds.
        ms: u64,
    },
    /// Asks the client: a request of its own in the stateful era, `input_required` in the stateless one. Questions
    /// that follow one another are asked together there.
    Ask {
        /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
        method: String,
        /// Its params.
        params: Value,
    },
    /// Answers with this result.
    Reply {
        /// The result.
        result: Value,
    },
    /// Answers with its arguments, as text.
    Echo,
    /// Answers with what was answered to its questions, as the text of a JSON array.
    Asked,
    /// Answers with this error.
    Fail {
        /// The `error` member, whatever it may be.
        error: Value,
    },
}

/// Tools that are made up: `tool_0`, `tool_1`, and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generated {
    /// How many.
    pub count: usize,
    /// The length of each description.
    pub description_bytes: usize,
}

/// A resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// The resource as it is listed.
    pub definition: Value,
    /// What reading it gives.
    pub contents: Vec<Value>,
}

/// A prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// The prompt as it is listed.
    pub definition: Value,
    /// Its messages. `{name}` in a text stands for the argument of that name.
    pub messages: Vec<Value>,
}

/// How Streamable HTTP behaves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Whether answers are event streams even where one JSON body would do.
    pub event_streams: bool,
    /// Whether the stateful era has sessions.
    pub sessions: bool,
    /// Whether the stateful era has a GET stream.
    pub get_stream: bool,
    /// Whether event streams begin with an id and can be resumed, and the `retry` they name.
    pub resumable_retry_ms: Option<u64>,
    /// A bearer token that every request must carry.
    pub bearer_token: Option<String>,
}

/// How the process behaves, where the server is one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
    /// Lines for standard error, at the start.
    pub stderr: Vec<String>,
    /// Lines for standard output, before anything else.
    pub stdout: Vec<String>,
    /// A gate to wait at before the first message is read.
    pub start_gate: Option<String>,
    /// Exits at once with this code, after the lines above.
    pub exit_at_start: Option<i32>,
    /// Whether SIGTERM does nothing.
    pub ignore_sigterm: bool,
    /// Whether the process stays when its standard input ends.
    pub ignore_stdin_end: bool,
    /// How many children it starts that would live on by themselves.
    pub children: usize,
    /// Whether each child leaves the session and the process group.
    pub children_leave: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            name: "scripted".to_owned(),
            version: "1.0.0".to_owned(),
            instructions: None,
            revisions: Revision::ALL.map(|revision| revision.to_string()).to_vec(),
            capabilities: None,
            tools: Vec::new(),
            generated_tools: None,
            resources: Vec::new(),
            resource_templates: Vec::new(),
            prompts: Vec::new(),
            completions: BTreeMap::new(),
            page_size: None,
            ttl_ms: 0,
            cache_scope: "private".to_owned(),
            request_state: true,
            http: Http::default(),
            process: Process::default(),
            rules: Vec::new(),
        }
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            event_streams: false,
            sessions: true,
            get_stream: true,
            resumable_retry_ms: None,
            bearer_token: None,
        }
    }
}

impl Script {
    /// A server of both eras with this name and nothing to offer.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Serves only the revisions of this era.
    #[must_use]
    pub fn era(mut self, era: Era) -> Self {
        let of_era = Revision::ALL
            .iter()
            .filter(|revision| revision.era() == era);
        self.revisions = of_era.map(ToString::to_string).collect();
        self
    }

    /// Serves only this revision.
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revisions = vec![revision.to_string()];
        self
    }

    /// Has this tool too.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Has this many made-up tools, each with a description of that length.
    #[must_use]
    pub fn generated_tools(mut self, count: usize, description_bytes: usize) -> Self {
        self.generated_tools = Some(Generated {
            count,
            description_bytes,
        });
        self
    }

    /// Has this text resource too.
    #[must_use]
    pub fn resource(mut self, uri: &str, text: &str) -> Self {
        self.resources.push(Resource {
            definition: json!({"uri": uri, "name": uri, "mimeType": "text/plain"}),
            contents: vec![json!({"uri": uri, "mimeType": "text/plain", "text": text})],
        });
        self
    }

    /// Has this prompt of one message too; `{name}` in the text stands for the argument of that name.
    #[must_use]
    pub fn prompt(mut self, name: &str, arguments: &[&str], text: &str) -> Self {
        let arguments: Vec<Value> = arguments
            .iter()
            .map(|name| json!({"name": name, "required": true}))
            .collect();
        self.prompts.push(Prompt {
            definition: json!({"name": name, "arguments": arguments}),
            messages: vec![json!({"role": "user", "content": {"type": "text", "text": text}})],
        });
        self
    }

    /// Has these instructions.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Goes wrong like this too.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The revisions it serves that there are.
    pub(crate) fn supported(&self) -> Vec<Revision> {
        let known = self.revisions.iter();
        known.filter_map(|revision| revision.parse().ok()).collect()
    }
}

impl Tool {
    /// A tool that takes any object and echoes it.
    pub fn new(name: &str) -> Self {
        Self {
            definition: json!({
                "name": name,
                "description": format!("The tool {name}"),
                "inputSchema": {"type": "object"},
            }),
            does: Vec::new(),
            task_polls: None,
        }
    }

    /// A tool that is listed like this, well-formed or not.
    pub fn listed(definition: Value) -> Self {
        Self {
            definition,
            does: Vec::new(),
            task_polls: None,
        }
    }

    /// Does this next.
    #[must_use]
    pub fn does(mut self, step: Do) -> Self {
        self.does.push(step);
        self
    }

    /// Answers with this text.
    #[must_use]
    pub fn replies(self, text: &str) -> Self {
        self.does(Do::Reply {
            result: json!({"content": [{"type": "text", "text": text}]}),
        })
    }

    /// Waits at this gate next.
    #[must_use]
    pub fn waits(self, gate: &str) -> Self {
        self.does(Do::Wait {
            gate: gate.to_owned(),
        })
    }

    /// Asks the client next.
    #[must_use]
    pub fn asks(self, method: &str, params: Value) -> Self {
        self.does(Do::Ask {
            method: method.to_owned(),
            params,
        })
    }

    /// Has this annotation (`readOnlyHint`, say).
    #[must_use]
    pub fn annotated(mut self, annotation: &str, value: bool) -> Self {
        self.definition["annotations"][annotation] = json!(value);
        self
    }

    /// Begins a task that is at work for so many questions.
    #[must_use]
    pub fn task(mut self, polls: u32) -> Self {
        self.task_polls = Some(polls);
        self
    }

    /// The name it is called by.
    pub fn name(&self) -> &str {
        self.definition["name"].as_str().unwrap_or_default()
    }
}

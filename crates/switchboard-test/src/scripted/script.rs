//! The script of a scripted server: identity, tools, resources, prompts, behaviour.
//!
//! Plain data: built in a test, or read from JSON by the program `scripted-server`. Faults are in
//! [`fault`](super::fault).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_protocol::{Era, Revision};

use super::fault::Rule;

/// A scripted server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Sent as `serverInfo`.
    pub name: String,
    /// Sent as `serverInfo`.
    pub version: String,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// The supported revisions, of one or both eras.
    pub revisions: Vec<String>,
    /// Declared capabilities, instead of those derived from the rest.
    pub capabilities: Option<Value>,
    /// Listed before the generated ones.
    pub tools: Vec<Tool>,
    /// Additional generated tools.
    pub generated_tools: Option<Generated>,
    /// Listed, and returned by `resources/read`.
    pub resources: Vec<Resource>,
    /// Listed verbatim.
    pub resource_templates: Vec<Value>,
    /// Listed, and returned by `prompts/get`.
    pub prompts: Vec<Prompt>,
    /// Completion values, by argument name.
    pub completions: BTreeMap<String, Vec<String>>,
    /// Page size of lists; `None`: one page.
    pub page_size: Option<usize>,
    /// `ttlMs` of cacheable results (stateless era).
    pub ttl_ms: u64,
    /// `cacheScope` of cacheable results (stateless era).
    pub cache_scope: String,
    /// Whether questions carry a `requestState` (stateless era).
    pub request_state: bool,
    /// Behaviour over Streamable HTTP.
    pub http: Http,
    /// Process behaviour (stdio).
    pub process: Process,
    /// Faults to inject, as if [armed](super::control::Command::Arm) at the start.
    pub rules: Vec<Rule>,
}

/// A scripted tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// As listed, valid or not.
    pub definition: Value,
    /// The steps of a call. Without a final [`Do::Reply`], [`Do::Fail`] or [`Do::Asked`], it [echoes](Do::Echo).
    #[serde(default)]
    pub does: Vec<Do>,
    /// If set, a call starts a task that is working for this many polls.
    #[serde(default)]
    pub task_polls: Option<u32>,
}

/// A step of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Do {
    /// Reports progress, if the caller requested it.
    Progress {
        /// Progress so far.
        progress: f64,
        /// Total, if known.
        #[serde(default)]
        total: Option<f64>,
        /// Message for users.
        #[serde(default)]
        message: Option<String>,
    },
    /// Sends a log message.
    Log {
        /// Log level.
        level: String,
        /// Any JSON.
        data: Value,
    },
    /// Sends a notification on the stream of the call.
    Notify {
        /// Method of the notification.
        method: String,
        /// Parameters of the notification.
        params: Value,
    },
    /// Waits until the test releases this gate.
    Wait {
        /// Name of the gate.
        gate: String,
    },
    /// Waits for a fixed time.
    Pause {
        /// In milliseconds.
        ms: u64,
    },
    /// Asks the client: by a request in the stateful era, by `input_required` in the stateless one, where consecutive
    /// questions are asked together.
    Ask {
        /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
        method: String,
        /// Parameters of the request.
        params: Value,
    },
    /// Returns this result.
    Reply {
        /// Sent verbatim.
        result: Value,
    },
    /// Returns its arguments as text.
    Echo,
    /// Returns the client's answers, as the text of a JSON array.
    Asked,
    /// Fails with this error.
    Fail {
        /// The `error` member, valid or not.
        error: Value,
    },
}

/// Generated tools: `tool_0`, `tool_1`, and so on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generated {
    /// Number of tools.
    pub count: usize,
    /// Length of each description.
    pub description_bytes: usize,
}

/// A scripted resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// As listed, valid or not.
    pub definition: Value,
    /// The `contents` of its read result.
    pub contents: Vec<Value>,
}

/// A scripted prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// As listed, valid or not.
    pub definition: Value,
    /// Its messages. `{name}` in a text is replaced by the argument of that name.
    pub messages: Vec<Value>,
}

/// Behaviour of Streamable HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Whether answers are event streams even if one JSON body would do.
    pub event_streams: bool,
    /// Whether the stateful era has sessions.
    pub sessions: bool,
    /// Whether the stateful era has a GET stream.
    pub get_stream: bool,
    /// If set, event streams start with an event id and this `retry`, and can be resumed.
    pub resumable_retry_ms: Option<u64>,
    /// Bearer token required of every request.
    pub bearer_token: Option<String>,
}

/// Behaviour of the process (stdio).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
    /// Lines written to standard error at the start.
    pub stderr: Vec<String>,
    /// Lines written to standard output before anything else.
    pub stdout: Vec<String>,
    /// Gate to wait at before the first message is read.
    pub start_gate: Option<String>,
    /// Exit code, if the process exits right after writing the lines above.
    pub exit_at_start: Option<i32>,
    /// Whether SIGTERM is ignored.
    pub ignore_sigterm: bool,
    /// Whether the process keeps running when its standard input ends.
    pub ignore_stdin_end: bool,
    /// Number of children to start, which outlive the process.
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
    /// A server of both eras with this name and without any features.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Restricts it to the revisions of this era.
    #[must_use]
    pub fn era(mut self, era: Era) -> Self {
        let of_era = Revision::ALL
            .iter()
            .filter(|revision| revision.era() == era);
        self.revisions = of_era.map(ToString::to_string).collect();
        self
    }

    /// Restricts it to this revision.
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revisions = vec![revision.to_string()];
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds generated tools with descriptions of this length.
    #[must_use]
    pub fn generated_tools(mut self, count: usize, description_bytes: usize) -> Self {
        self.generated_tools = Some(Generated {
            count,
            description_bytes,
        });
        self
    }

    /// Adds a text resource.
    #[must_use]
    pub fn resource(mut self, uri: &str, text: &str) -> Self {
        self.resources.push(Resource {
            definition: json!({"uri": uri, "name": uri, "mimeType": "text/plain"}),
            contents: vec![json!({"uri": uri, "mimeType": "text/plain", "text": text})],
        });
        self
    }

    /// Adds a prompt of one message; `{name}` in the text is replaced by the argument of that name.
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

    /// Sets the instructions.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Adds a fault rule.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The valid revisions of `revisions`.
    pub(crate) fn supported(&self) -> Vec<Revision> {
        let known = self.revisions.iter();
        known.filter_map(|revision| revision.parse().ok()).collect()
    }
}

impl Tool {
    /// A tool that accepts any object and echoes it.
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

    /// A tool with this definition, valid or not.
    pub fn listed(definition: Value) -> Self {
        Self {
            definition,
            does: Vec::new(),
            task_polls: None,
        }
    }

    /// Appends a step.
    #[must_use]
    pub fn does(mut self, step: Do) -> Self {
        self.does.push(step);
        self
    }

    /// Appends a reply with this text.
    #[must_use]
    pub fn replies(self, text: &str) -> Self {
        self.does(Do::Reply {
            result: json!({"content": [{"type": "text", "text": text}]}),
        })
    }

    /// Appends waiting at this gate.
    #[must_use]
    pub fn waits(self, gate: &str) -> Self {
        self.does(Do::Wait {
            gate: gate.to_owned(),
        })
    }

    /// Appends a question to the client.
    #[must_use]
    pub fn asks(self, method: &str, params: Value) -> Self {
        self.does(Do::Ask {
            method: method.to_owned(),
            params,
        })
    }

    /// Sets an annotation, such as `readOnlyHint`.
    #[must_use]
    pub fn annotated(mut self, annotation: &str, value: bool) -> Self {
        self.definition["annotations"][annotation] = json!(value);
        self
    }

    /// Makes calls start a task that is working for this many polls.
    #[must_use]
    pub fn task(mut self, polls: u32) -> Self {
        self.task_polls = Some(polls);
        self
    }

    /// The name in its definition.
    pub fn name(&self) -> &str {
        self.definition["name"].as_str().unwrap_or_default()
    }
}

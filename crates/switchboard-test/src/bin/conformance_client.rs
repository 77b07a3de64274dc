//! The client for the official conformance suite; run by `cargo xtask conformance`.
//!
//! # How the suite drives a client
//!
//! For each scenario the suite starts its own server, then runs `conformance-client URL` through a shell, with the URL
//! as the last argument and these variables:
//!
//! | variable | meaning |
//! |---|---|
//! | `MCP_CONFORMANCE_SCENARIO` | the scenario, as below |
//! | `MCP_CONFORMANCE_PROTOCOL_VERSION` | the revision it is run for; always set |
//! | `MCP_CONFORMANCE_CONTEXT` | JSON with the scenario's parameters, `{"name": SCENARIO, …}`; for some scenarios only
//! |
//!
//! The client has 30 seconds and must exit by itself, with 0 unless noted below. A warning fails a scenario like a
//! failure. Besides the checks below, `wire-schema-valid` fails if any message of the client violates the schema of its
//! revision: that of the `MCP-Protocol-Version` header, or 2025-03-26 without the header. The check includes the
//! `server/discover` probe.
//!
//! # Requirements of each scenario
//!
//! Revisions: A is 2025-06-18, B is 2025-11-25, C is 2026-07-28.
//!
//! **`initialize`** (A, B). Connect and close. The handshake must carry a version the suite knows (2025-06-18 or
//! 2025-11-25) and a client name and version. The server answers every unknown method, so also `server/discover`, with
//! status 200 and an empty result: a result without `supportedVersions` must not count as a discovery, or no handshake
//! comes and nothing is checked. GET and DELETE get 400 with a JSON-RPC error.
//!
//! **`tools_call`** (A, B, C). List tools and call `add_numbers` with numbers `a` and `b`. In A and B the server is
//! stateless per request (no session, answers as event streams) and refuses a version header it does not know with 400
//! and −32000, which must lead to `initialize`. In C a missing header, or `_meta` without version and capabilities, is
//! refused with 400; a header that differs from `_meta` with −32020.
//!
//! **`elicitation-sep1034-client-defaults`** (B). Connect with the capability `elicitation`, list tools, call
//! `test_client_elicitation_defaults` with no arguments. The server asks `elicitation/create` with a schema of five
//! properties that all have a default (`name` "John Doe", `age` 30, `score` 95.5, `status` "active", `verified` true)
//! and requires none. Answer `accept` with every default filled in. The question comes on the GET stream, not on that
//! of the call, and is lost if that stream is not open yet: call only when it is.
//!
//! **`sse-retry`** (B). Connect, list tools, call `test_reconnection`. The call's stream begins with an event that has
//! only an id and `retry: 500`, and ends 50 ms later without an answer. Wait at least 450 ms after that (not less than
//! the `retry`), then GET with `Last-Event-ID`; the answer comes there. A GET without the header is a warning, and so a
//! failure, if it is the only one; the last GET of all is the one that is timed. `server/discover` gets status 200 and
//! an empty result, DELETE 405.
//!
//! **`request-metadata`** (C). Connect and make at least one more request. The very first POST, whatever it is, is
//! refused with 400 and −32022 whose `data.supported` is `["2026-07-28"]`: the client must try again with that version
//! although it is the one that was refused. Every POST, notifications included, must have the header
//! `MCP-Protocol-Version` equal to `_meta…/protocolVersion`, and in `_meta` also `clientCapabilities` and `clientInfo`
//! (without the latter it is a warning, which fails). `roots`, `sampling` and `elicitation` must be objects where they
//! are declared. The server has no capabilities, and GET gets 405.
//!
//! **`sep-2322-client-request-state`** (C). Connect with the capability `elicitation`, list tools, then call all four:
//! `test_mrtr_echo_state` and `test_mrtr_no_state` answer `input_required` with one question `confirm`
//! (`elicitation/create`, a boolean `confirmed`), to be accepted with `{"confirmed": true}`; the first has a
//! `requestState`, which must come back byte for byte with a new id, the second has none, and none must be sent.
//! `test_mrtr_unrelated` must be called without `inputResponses` and `requestState`; calling it while another call waits
//! for its answer is the point. `test_mrtr_no_result_type` answers without `resultType` and must not be repeated.
//!
//! **`http-standard-headers`** (C). Connect, then `tools/list`, `tools/call` (`test_headers` and
//! `my-hyphenated-tool`), `resources/list`, `resources/read` (both URIs: one with `%20`, one with a query),
//! `prompts/list`, `prompts/get` (`test_prompt`). Every POST must have `Mcp-Method`, and the three named ones
//! `Mcp-Name` equal to the name or URI as it stands in the body. Only the first of each method is checked, and those
//! never sent are skipped. Answers carry a session id, which means nothing in this revision.
//!
//! **`http-custom-headers`** (C). The context has `toolCalls: [{name, arguments}, …]`: call each as it is. Arguments
//! whose property has `x-mcp-header` are mirrored as `Mcp-Param-<name>`: integers and booleans as text, an empty string
//! as an empty header, strings that are not printable ASCII or have space or tab at an end as `=?base64?…?=`, and `null`
//! not at all. The second call has `"verbose": null` where the schema says boolean: it must be sent nevertheless, with
//! the `null` or without the member. Properties without the annotation are not mirrored.
//!
//! **`http-invalid-tool-headers`** (C; may exit with an error). List tools and call every one that is left, which must be
//! `valid_tool` (`{"region": "us-west1"}`) alone: eleven others have an invalid `x-mcp-header` and must have been set
//! aside, each by itself.
//!
//! **`json-schema-ref-no-deref`** (C). List tools. The input schema of `lookup_user` has a `$ref` to an address of the
//! server, which must never be fetched. The list comes as an event stream.
//!
//! **`json-schema-2020-12-preservation`** (B, C). List tools, take the input schema of `json_schema_2020_12_tool` as it
//! came, and call `json_schema_echo` with `{"schema": THAT}`. `$schema`, `$defs` with `$anchor`, `additionalProperties`,
//! `allOf`/`anyOf` and `if`/`then`/`else` must all be there.
//!
//! **`sep-2640-client-no-prefetch`**, **`sep-2640-client-verify-digest`**, **`-verify-size`**, **`-verify-frontmatter`**
//! (the skills extension; the last three may exit with an error). They are of no revision and run with B in the
//! variable. Everything is skipped, and so passes, unless the client calls `skills/list`. One that does must read no file
//! of a skill unasked, and when it reads `skill://pdf-processing/SKILL.md` and finds another digest, size or front matter
//! than was listed, must not go on to `skill://pdf-processing/references/FORMS.md`.
//!
//! **`auth/…`** have servers that refuse without a token. See `conformance_client/auth.rs`.

#[path = "conformance_client/auth.rs"]
mod auth;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::http::{
    HttpClient, HttpSettings, RemoteServer, StreamableConnector,
};
use switchboard::{
    CallError, CallOutcome, CallRequest, ClientHandler, Host, HostOptions, ListKind, ServerName,
};
use switchboard_protocol::ErrorObject;
use switchboard_protocol::types::capabilities::{ClientCapabilities, ElicitationCapability};
use switchboard_protocol::types::elicitation::{ElicitAction, ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::prompt::GetPromptRequestParams;
use switchboard_protocol::types::wire;

fn main() -> ExitCode {
    let outcome = Job::from_environment().and_then(|job| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?
            .block_on(run(&job))
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(std::io::stderr(), "conformance-client: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// The scenario to run, from the environment and the command line.
#[derive(Debug)]
struct Job {
    scenario: String,
    context: Value,
    url: String,
}

impl Job {
    fn from_environment() -> Result<Self, String> {
        let variable = |name: &str| std::env::var(name).ok();
        let context = match variable("MCP_CONFORMANCE_CONTEXT") {
            Some(text) => serde_json::from_str(&text)
                .map_err(|error| format!("MCP_CONFORMANCE_CONTEXT is not JSON: {error}"))?,
            None => Value::Null,
        };
        Ok(Self {
            scenario: variable("MCP_CONFORMANCE_SCENARIO")
                .ok_or("MCP_CONFORMANCE_SCENARIO is not set: this program is for `cargo xtask conformance`")?,
            context,
            url: std::env::args()
                .next_back()
                .filter(|argument| argument.starts_with("http"))
                .ok_or("the last argument must be the server's URL")?,
        })
    }
}

async fn run(job: &Job) -> Result<(), String> {
    let host = Host::with_options(HostOptions {
        handler: Arc::new(Consenting),
        ..HostOptions::default()
    });
    let session = ConnectedHost {
        server: ServerName::from("suite"),
        host,
    };
    let client = HttpClient::new(HttpSettings::default()).map_err(text)?;
    let person = auth::Person::new(job, &client)?;
    let mut server = RemoteServer::new(&job.url);
    server.authorizer = Some(person.authorizer());
    let connector = StreamableConnector::new(&client, server).map_err(text)?;
    let key = ConnectionKey::of(&[job.url.as_bytes()]);
    let spec = ServerSpec::new("suite", Arc::new(connector), key);
    let added = session.host.add_server(spec).await;
    let outcome = if job.scenario.starts_with("auth/") {
        person.use_server(&session).await
    } else {
        match added {
            Ok(_) => session.play(job).await,
            Err(error) => Err(text(error)),
        }
    };
    session.host.shutdown().await;
    outcome
}

/// A host connected to the server of a scenario.
struct ConnectedHost {
    host: Host,
    server: ServerName,
}

impl ConnectedHost {
    async fn play(&self, job: &Job) -> Result<(), String> {
        match job.scenario.as_str() {
            "initialize"
            | "request-metadata"
            | "json-schema-ref-no-deref"
            | "sep-2640-client-no-prefetch"
            | "sep-2640-client-verify-digest"
            | "sep-2640-client-verify-size"
            | "sep-2640-client-verify-frontmatter" => Ok(()),
            "tools_call" => self
                .call("add_numbers", json!({"a": 5, "b": 3}))
                .await
                .map(drop),
            "elicitation-sep1034-client-defaults" => self
                .call("test_client_elicitation_defaults", json!({}))
                .await
                .map(drop),
            "sse-retry" => self.call("test_reconnection", json!({})).await.map(drop),
            "sep-2322-client-request-state" => Box::pin(self.calls_with_input()).await,
            "http-standard-headers" => self.every_kind_of_request().await,
            "http-custom-headers" => self.calls_of_the_context(&job.context).await,
            "http-invalid-tool-headers" => self.every_tool_that_is_left().await,
            "json-schema-2020-12-preservation" => self.echo_schema().await,
            other => Err(format!("unknown scenario: {other}")),
        }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<CallOutcome, String> {
        let arguments = to_raw_value(&arguments).map_err(text)?;
        self.call_raw(tool, arguments).await
    }

    /// Calls a tool without arguments and returns the typed error.
    async fn try_call(&self, tool: &str) -> Result<CallOutcome, CallError> {
        let request = CallRequest {
            tool: format!("{}/{tool}", self.server),
            ..CallRequest::default()
        };
        self.host.request(request).await
    }

    async fn call_raw(&self, tool: &str, arguments: Box<RawValue>) -> Result<CallOutcome, String> {
        let request = CallRequest {
            tool: format!("{}/{tool}", self.server),
            arguments: Some(arguments),
            ..CallRequest::default()
        };
        self.host.request(request).await.map_err(text)
    }

    async fn calls_with_input(&self) -> Result<(), String> {
        let (echo, unrelated, no_state) = tokio::join!(
            self.call("test_mrtr_echo_state", json!({})),
            self.call("test_mrtr_unrelated", json!({})),
            self.call("test_mrtr_no_state", json!({})),
        );
        echo.and(unrelated).and(no_state)?;
        self.call("test_mrtr_no_result_type", json!({}))
            .await
            .map(drop)
    }

    async fn every_kind_of_request(&self) -> Result<(), String> {
        self.call("test_headers", json!({})).await?;
        self.call("my-hyphenated-tool", json!({})).await?;
        for uri in self
            .field_of_list(ListKind::Resources, "resources", "uri")
            .await?
        {
            self.host
                .read_resource(&self.server, &uri)
                .await
                .map_err(text)?;
        }
        for name in self
            .field_of_list(ListKind::Prompts, "prompts", "name")
            .await?
        {
            let params = GetPromptRequestParams::new(name.into());
            self.host
                .get_prompt(&self.server, &params)
                .await
                .map_err(text)?;
        }
        Ok(())
    }

    /// One field of every item of a list.
    async fn field_of_list(
        &self,
        kind: ListKind,
        list: &str,
        field: &str,
    ) -> Result<Vec<String>, String> {
        let pages = self.host.list(&self.server, kind).await.map_err(text)?;
        let mut found = Vec::new();
        for page in &pages.pages {
            let page: Value = serde_json::from_str(page.as_str()).map_err(text)?;
            let items = page[list].as_array().into_iter().flatten();
            found.extend(items.filter_map(|item| item[field].as_str().map(str::to_owned)));
        }
        Ok(found)
    }

    async fn calls_of_the_context(&self, context: &Value) -> Result<(), String> {
        let calls = context["toolCalls"]
            .as_array()
            .ok_or("the context has no toolCalls")?;
        for call in calls {
            let name = call["name"].as_str().ok_or("a call without a name")?;
            self.call(name, call["arguments"].clone()).await?;
        }
        Ok(())
    }

    async fn every_tool_that_is_left(&self) -> Result<(), String> {
        let catalog = self.host.catalog();
        for tool in catalog.iter() {
            let name = tool.reference().tool.as_str();
            self.call(name, json!({"region": "us-west1"})).await?;
        }
        Ok(())
    }

    async fn echo_schema(&self) -> Result<(), String> {
        let catalog = self.host.catalog();
        let name = format!("{}/json_schema_2020_12_tool", self.server);
        let tool = catalog.find(&name).map_err(text)?;
        let arguments = format!(r#"{{"schema":{}}}"#, tool.input_schema().get());
        let arguments = RawValue::from_string(arguments).map_err(text)?;
        self.call_raw("json_schema_echo", arguments).await.map(drop)
    }
}

/// Accepts every form, with its defaults and `true` for everything else.
struct Consenting;

impl ClientHandler for Consenting {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        ClientCapabilities {
            elicitation: Some(ElicitationCapability::default()),
            ..ClientCapabilities::default()
        }
    }

    fn elicit<'a>(
        &'a self,
        _server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        let mut result = ElicitResult::new(ElicitAction::Accept);
        if let ElicitRequestParams::Form(form) = &params {
            let schema = wire::encode(&form.requested_schema);
            let schema: Value = serde_json::from_str(&schema).unwrap_or_default();
            let answers = to_raw_value(&answers(&schema)).ok();
            result.content = answers
                .as_deref()
                .and_then(|answers| wire::decode::<wire::RawObject<'_>>(answers).ok())
                .map(wire::IntoOwned::into_owned);
        }
        ready(Ok(result)).boxed()
    }
}

/// An answer for each property: its default, or `true`.
fn answers(schema: &Value) -> Value {
    let properties = schema["properties"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let answers: Map<String, Value> = properties
        .into_iter()
        .filter_map(|(name, property)| {
            let answer = match property.get("default") {
                Some(default) => default.clone(),
                None if property["type"] == "boolean" => json!(true),
                None => return None,
            };
            Some((name, answer))
        })
        .collect();
    Value::Object(answers)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

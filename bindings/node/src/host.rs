//! The host and its events.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::{Either, Null};
use napi_derive::napi;
use switchboard::ListKind;
use switchboard_bindings::{
    CallHook, CallOptions, Callbacks, Events, Failure, Host, HostConfig, Operation,
};

use crate::bridge::{Bridge, Port, Value};
use crate::values::Failed;

/// What a host is built from.
#[napi(object)]
pub struct HostOptions {
    /// Use the configuration of this folder.
    pub folder: Option<String>,
    /// Further configuration files.
    pub files: Option<Vec<String>>,
    /// Servers as JSON.
    pub servers: Option<String>,
    /// The program `switchboard`.
    pub supervisor: Option<String>,
    /// The environment of servers.
    pub environment: Option<HashMap<String, String>>,
    /// The functions of this host in JavaScript.
    pub table: u32,
    /// The callbacks that the program has.
    pub callbacks: Vec<String>,
    /// The hooks that the program has.
    pub hooks: Vec<HookOptions>,
    /// The time that each hook has for a call, in milliseconds.
    pub hook_timeout: Option<f64>,
}

/// A function that inspects calls.
#[napi(object)]
pub struct HookOptions {
    /// When it is called: `before_call` or `after_call`.
    pub event: String,
    /// The tools it covers.
    pub tool: String,
}

impl HostOptions {
    pub(crate) fn split(self, port: &Port) -> (HostConfig, Callbacks) {
        let table = self.table;
        let callback = |name: &str| {
            let has = self.callbacks.iter().any(|callback| callback == name);
            has.then(|| port.callback(table, false))
        };
        let hooks = self.hooks.into_iter().filter_map(|hook| {
            Some(CallHook {
                event: CallHook::event(&hook.event)?,
                tool: hook.tool,
                callback: port.callback(table, false),
            })
        });
        let callbacks = Callbacks {
            elicitation: callback("elicitation"),
            sampling: callback("sampling"),
            roots: callback("roots"),
            approval: callback("approval"),
            hooks: hooks.collect(),
            hook_timeout: self.hook_timeout.and_then(milliseconds),
        };
        let files = self.files.unwrap_or_default();
        let environment = self.environment.map(|environment| {
            let variables = environment.into_iter();
            variables
                .map(|(name, value)| (name.into(), value.into()))
                .collect()
        });
        let config = HostConfig {
            folder: self.folder.map(PathBuf::from),
            files: files.into_iter().map(PathBuf::from).collect(),
            servers: self.servers,
            supervisor: self.supervisor.map(PathBuf::from),
            environment,
        };
        (config, callbacks)
    }
}

#[napi]
impl Bridge {
    /// Creates a host.
    #[napi]
    pub fn open_host(&self, id: u32, options: HostOptions) {
        let table = options.table;
        let (config, callbacks) = options.split(&self.0);
        let port = self.0.clone();
        let opened = Host::open(config, &callbacks);
        self.0.report(id, opened, move |host| {
            Value::E(HostHandle::new(&Arc::new(Owner(host)), &port, table))
        });
    }
}

/// Closes the host when JavaScript has no more use for it, be it collected or its thread ended.
pub(crate) struct Owner(pub(crate) Host);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// A host.
#[napi]
pub struct HostHandle {
    owner: Arc<Owner>,
    port: Port,
    table: u32,
}

impl HostHandle {
    pub(crate) fn new(owner: &Arc<Owner>, port: &Port, table: u32) -> Self {
        Self {
            owner: Arc::clone(owner),
            port: port.clone(),
            table,
        }
    }

    fn host(&self) -> &Host {
        &self.owner.0
    }

    fn report_text(&self, id: u32, operation: Operation<String>) {
        self.port.report(id, operation, Value::B);
    }

    fn report_count(&self, id: u32, operation: Operation<usize>) {
        self.port.report(id, operation, |count| {
            Value::M(u32::try_from(count).unwrap_or(u32::MAX))
        });
    }
}

#[napi]
impl HostHandle {
    /// Lists tools.
    #[napi]
    pub fn tools(&self, id: u32, server: Option<String>) {
        let tools = self.host().tools(server);
        self.port.report(id, tools, |tools| Value::I(tools.into()));
    }

    /// Calls a tool. Timeouts are in milliseconds. Returns the message of its end if a fast server has answered already with
    /// a small result.
    #[napi]
    pub fn call(
        &self,
        id: u32,
        tool: String,
        arguments: Option<String>,
        timeout: Option<f64>,
        total_timeout: Option<f64>,
        has_progress: bool,
    ) -> Option<Vec<Value>> {
        let options = CallOptions {
            timeout: timeout.and_then(milliseconds),
            total_timeout: total_timeout.and_then(milliseconds),
            progress: has_progress.then(|| self.port.progress(id)),
        };
        let called = self.host().call(tool, arguments, options);
        if !has_progress && called.has_ended() {
            return self.port.report_ended(id, &called);
        }
        self.port.report_result(id, called);
        None
    }

    /// Searches tools.
    #[napi]
    pub fn search(&self, id: u32, query: String, limit: u32) {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let found = self.host().search(query, limit);
        self.port.report(id, found, |hits| Value::I(hits.into()));
    }

    /// Lists resources.
    #[napi]
    pub fn resources(&self, id: u32, server: Option<String>) {
        self.report_text(id, self.host().list(ListKind::Resources, server));
    }

    /// Lists resource templates.
    #[napi]
    pub fn resource_templates(&self, id: u32, server: Option<String>) {
        self.report_text(id, self.host().list(ListKind::Templates, server));
    }

    /// Lists prompts.
    #[napi]
    pub fn prompts(&self, id: u32, server: Option<String>) {
        self.report_text(id, self.host().list(ListKind::Prompts, server));
    }

    /// Reads a resource.
    #[napi]
    pub fn read(&self, id: u32, server: String, uri: String) {
        self.report_text(id, self.host().read(server, uri));
    }

    /// Gets a prompt.
    #[napi]
    pub fn prompt(&self, id: u32, server: String, name: String, arguments: Option<String>) {
        self.report_text(id, self.host().prompt(server, name, arguments));
    }

    /// The statuses as JSON.
    #[napi]
    pub fn status(&self) -> Either<String, Failed> {
        either(self.host().status())
    }

    /// The events from now on.
    #[napi]
    pub fn events(&self) -> Either<EventsHandle, Failed> {
        let port = self.port.clone();
        either(
            self.host()
                .events()
                .map(|events| EventsHandle { events, port }),
        )
    }

    /// Adds a server.
    #[napi]
    pub fn add_server(&self, id: u32, name: String, entry: String) {
        self.report_count(id, self.host().add_server(name, entry));
    }

    /// Removes a server.
    #[napi]
    pub fn remove_server(&self, id: u32, name: String) {
        let removed = self.host().remove_server(name);
        self.port.report(id, removed, Value::D);
    }

    /// Enables or disables a server.
    #[napi]
    pub fn set_enabled(&self, id: u32, name: String, enabled: bool) {
        let set = self.host().set_enabled(name, enabled);
        self.port.report(id, set, nothing);
    }

    /// Restarts a server.
    #[napi]
    pub fn restart(&self, id: u32, name: String) {
        self.report_count(id, self.host().restart(name));
    }

    /// Logs in to a server.
    #[napi]
    pub fn login(&self, id: u32, name: String) {
        let login = self.host().login(name, self.port.open(id));
        self.port.report(id, login, nothing);
    }

    /// Adds a tool of the program.
    #[napi]
    pub fn add_tool(&self, definition: String) -> Either<Null, Failed> {
        let callback = self.port.callback(self.table, true);
        either(self.host().add_tool(&definition, callback).map(|()| Null))
    }

    /// Closes the host.
    #[napi]
    pub fn close(&self, id: u32) {
        self.port.report(id, self.host().close(), nothing);
    }
}

/// The events of a host.
#[napi]
pub struct EventsHandle {
    events: Events,
    port: Port,
}

#[napi]
impl EventsHandle {
    /// Waits for the next event.
    #[napi]
    pub fn next(&self, id: u32) {
        self.port.report(id, self.events.next(), optional);
    }
}

pub(crate) fn either<T>(outcome: Result<T, Failure>) -> Either<T, Failed> {
    match outcome {
        Ok(value) => Either::A(value),
        Err(failure) => Either::B(Failed::from(&failure)),
    }
}

pub(crate) fn nothing((): ()) -> Value {
    Value::A(Null)
}

pub(crate) fn optional(text: Option<String>) -> Value {
    text.map_or(Value::A(Null), Value::B)
}

/// `None` for what is not a duration, such as `Infinity`: JavaScript has checked it.
fn milliseconds(milliseconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(milliseconds / 1_000.0).ok()
}

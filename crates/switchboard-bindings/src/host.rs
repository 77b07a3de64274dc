//! The host, for programs in other languages.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::internal::configured::ConfiguredHost;
use switchboard::{
    CallOutcome, CallRequest, Event, ListKind, Progress, Server, ServerError, ServerName,
};
use switchboard_protocol::types::decode;
use switchboard_protocol::types::prompt::GetPromptRequestParams;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex, broadcast, watch};

use crate::callback::Callback;
use crate::events;
use crate::failure::Failure;
use crate::local::LocalTools;
use crate::questions::Callbacks;
use crate::runtime::{Operation, Runtime};
use crate::tool::Tool;

/// The server of the program's own tools.
pub const LOCAL: &str = "local";

/// What a host is built from. All parts are optional.
#[derive(Debug, Clone, Default)]
pub struct HostConfig {
    /// Uses the configuration of this folder, as the program `switchboard` does.
    pub folder: Option<PathBuf>,
    /// Further configuration files.
    pub files: Vec<PathBuf>,
    /// Servers in the form of `.mcp.json`, as JSON text.
    pub servers: Option<String>,
    /// The program `switchboard`, which supervises servers.
    pub supervisor: Option<PathBuf>,
    /// The environment of servers, and of the folders; `None`: that of this process.
    pub environment: Option<Vec<(OsString, OsString)>>,
}

/// A host. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    host: switchboard::Host,
    local: LocalTools,
    /// How often tools were added, and how often that had happened when the host listed them last.
    local_added: AtomicU64,
    local_listed: Mutex<u64>,
    is_closed: AtomicBool,
    /// Set when closing has ended, and the last event was sent.
    ended: watch::Sender<bool>,
}

/// The options of a call.
#[derive(Default)]
pub struct CallOptions {
    /// The time without an answer or progress; `None`: as configured.
    pub timeout: Option<Duration>,
    /// The time in all; `None`: as configured.
    pub total_timeout: Option<Duration>,
    /// Receives progress. It must not block.
    pub progress: Option<Box<dyn Fn(Progress) + Send + Sync>>,
}

impl Host {
    /// Creates a host and starts its servers, without waiting for them.
    pub fn open(config: HostConfig, callbacks: &Callbacks) -> Operation<Self> {
        let callbacks = callbacks.clone();
        start(move |runtime| async move {
            let configured = configure(config, &callbacks).await?;
            let host = Self::new(runtime, &configured);
            host.0.host.start_all().await;
            Ok(host)
        })
    }

    pub(crate) fn new(runtime: Runtime, configured: &ConfiguredHost) -> Self {
        Self(Arc::new(Inner {
            runtime,
            host: configured.host.clone(),
            local: LocalTools::default(),
            local_added: AtomicU64::new(0),
            local_listed: Mutex::new(0),
            is_closed: AtomicBool::new(false),
            ended: watch::Sender::new(false),
        }))
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// Adds a tool that the program implements, from a definition in the form of the protocol. It is a tool of the
    /// server [`LOCAL`].
    ///
    /// # Errors
    ///
    /// If the definition is invalid.
    pub fn add_tool(&self, definition: &str, callback: Arc<dyn Callback>) -> Result<(), Failure> {
        self.check()?;
        self.0.local.add(definition, callback)?;
        self.0.local_added.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Waits until every server has connected or failed, and returns the tools: of all servers, or of one, which must
    /// then be connected.
    pub fn tools(&self, server: Option<String>) -> Operation<Vec<Tool>> {
        self.start(async move |host| {
            match &server {
                Some(name) => {
                    host.0.host.connect(&name.as_str().into()).await?;
                }
                None => host.connected().await,
            }
            let catalog = host.0.host.catalog();
            let is_meant = |name: &str| server.as_deref().is_none_or(|server| server == name);
            let tools = catalog
                .iter()
                .filter(|tool| is_meant(tool.reference().server.as_str()))
                .map(|tool| Tool::new(&catalog, tool.exposed().clone()));
            Ok(tools.collect())
        })
    }

    /// Calls a tool with arguments as JSON text. Cancelling the operation cancels the call at the server.
    pub fn call(
        &self,
        tool: String,
        arguments: Option<String>,
        options: CallOptions,
    ) -> Operation<CallOutcome> {
        self.begin(async move |host| {
            let arguments = arguments.map(RawValue::from_string).transpose();
            let arguments = arguments.map_err(|error| {
                Failure::invalid_arguments(format!("the arguments are not JSON: {error}"))
            })?;
            let request = CallRequest {
                tool,
                arguments: arguments.filter(|arguments| arguments.get() != "null"),
                timeout: options.timeout,
                total_timeout: options.total_timeout,
                progress: options.progress.map(Arc::from),
                ..CallRequest::default()
            };
            Ok(host.0.host.request(request).await?)
        })
    }

    /// Searches the tools, best match first, each with its score.
    pub fn search(&self, query: String, limit: usize) -> Operation<Vec<(Tool, f32)>> {
        self.start(async move |host| {
            host.connected().await;
            let catalog = host.0.host.catalog();
            let hits = host.0.host.search(&query, limit).into_iter();
            Ok(hits
                .map(|hit| (Tool::new(&catalog, hit.name), hit.score))
                .collect())
        })
    }

    /// Lists resources, templates or prompts, of all servers or of one, as a JSON array. Each item has its `server`. A
    /// server that cannot list is skipped unless it is the one that was named.
    pub fn list(&self, kind: ListKind, server: Option<String>) -> Operation<String> {
        self.start(async move |host| {
            host.connected().await;
            let only = server.map(|name| ServerName::from(name.as_str()));
            let names: Vec<ServerName> = if let Some(name) = &only {
                vec![name.clone()]
            } else {
                let statuses = host.0.host.statuses().into_iter();
                let connected = statuses.filter(|status| status.state.is_connected());
                connected.map(|status| status.name).collect()
            };
            let mut items = Vec::new();
            for name in names {
                match host.0.host.list(&name, kind).await {
                    Ok(pages) => {
                        for page in &pages.pages {
                            items.extend(items_of(page.as_str(), &name, kind));
                        }
                    }
                    Err(error) if only.is_some() => return Err(error.into()),
                    Err(_) => {}
                }
            }
            Ok(Value::Array(items).to_string())
        })
    }

    /// Reads a resource. Returns the result as the server sent it.
    pub fn read(&self, server: String, uri: String) -> Operation<String> {
        self.start(async move |host| {
            let result = host
                .0
                .host
                .read_resource(&server.as_str().into(), &uri)
                .await?;
            Ok(result.as_str().to_owned())
        })
    }

    /// Gets a prompt, with arguments as a JSON object of texts. Returns the result as the server sent it.
    pub fn prompt(
        &self,
        server: String,
        name: String,
        arguments: Option<String>,
    ) -> Operation<String> {
        self.start(async move |host| {
            let arguments = arguments.as_deref().unwrap_or("{}");
            let invalid = |error: &dyn fmt::Display| {
                Failure::invalid_arguments(format!("the prompt's arguments are invalid: {error}"))
            };
            let arguments: Value =
                serde_json::from_str(arguments).map_err(|error| invalid(&error))?;
            let params = json!({"name": name, "arguments": arguments});
            let params =
                serde_json::value::to_raw_value(&params).map_err(|error| invalid(&error))?;
            let params =
                decode::<GetPromptRequestParams<'_>>(&params).map_err(|error| invalid(&error))?;
            let result = host
                .0
                .host
                .get_prompt(&server.as_str().into(), &params)
                .await?;
            Ok(result.as_str().to_owned())
        })
    }

    /// The statuses of all servers, as a JSON array.
    ///
    /// # Errors
    ///
    /// In a forked child, and after the host was closed.
    pub fn status(&self) -> Result<String, Failure> {
        self.check()?;
        let statuses = self.0.host.statuses();
        Ok(Value::Array(statuses.iter().map(events::status).collect()).to_string())
    }

    /// The events from now on.
    ///
    /// # Errors
    ///
    /// In a forked child, and after the host was closed.
    pub fn events(&self) -> Result<Events, Failure> {
        self.check()?;
        Ok(Events {
            runtime: self.0.runtime.clone(),
            receiver: Arc::new(Mutex::new(self.0.host.events())),
            ended: self.0.ended.subscribe(),
        })
    }

    /// Adds a server from an entry as JSON text, waits until it is connected, and returns the number of its tools.
    pub fn add_server(&self, name: String, entry: String) -> Operation<usize> {
        self.start(async move |host| {
            let server = Server::from_json(name, &entry)?;
            Ok(host.0.host.add(server).await?)
        })
    }

    /// Removes a server. `false` if no server has that name.
    pub fn remove_server(&self, name: String) -> Operation<bool> {
        self.start(async move |host| Ok(host.0.host.remove_server(&name.as_str().into()).await))
    }

    /// Enables or disables a server for the lifetime of this host.
    pub fn set_enabled(&self, name: String, enabled: bool) -> Operation<()> {
        self.start(async move |host| {
            let name = ServerName::from(name.as_str());
            let is_known = host.0.host.set_enabled(&name, enabled).await;
            known(is_known, name)
        })
    }

    /// Reconnects a server and waits until it is connected. Returns the number of its tools.
    pub fn restart(&self, name: String) -> Operation<usize> {
        self.start(async move |host| {
            let name = ServerName::from(name.as_str());
            known(host.0.host.restart(&name).await, name.clone())?;
            Ok(host.0.host.connect(&name).await?)
        })
    }

    /// Logs in to a server: passes the address to open to a function, and waits for the user.
    pub fn login(&self, name: String, open: impl FnOnce(&str) + Send + 'static) -> Operation<()> {
        self.start(async move |host| {
            let pending = host.0.host.login(&name.as_str().into()).await?;
            open(&pending.url);
            Ok(pending.wait().await?)
        })
    }

    /// Closes every connection and ends every server. Operations under way fail. Can be called more than once.
    pub fn close(&self) -> Operation<()> {
        let host = self.clone();
        self.0.runtime.start_operation(async move {
            host.0.is_closed.store(true, Ordering::Release);
            host.shut_down().await;
            Ok(())
        })
    }

    /// Closes the host without waiting, for a program that forgot to.
    pub fn abandon(&self) {
        let host = self.clone();
        self.0.is_closed.store(true, Ordering::Release);
        self.0.runtime.spawn(async move { host.shut_down().await });
    }

    async fn shut_down(&self) {
        self.0.host.shutdown().await;
        self.0.ended.send_replace(true);
    }

    /// Fails in a forked child, and after the host was closed.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.0.runtime.check()?;
        if self.0.is_closed.load(Ordering::Acquire) {
            Err(Failure::closed())
        } else {
            Ok(())
        }
    }

    /// Starts an operation on the open host, whose own tools are listed.
    pub(crate) fn start<T, F>(&self, work: impl FnOnce(Self) -> F + Send + 'static) -> Operation<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        self.0.runtime.start_operation(self.prepared(work))
    }

    /// Like [`Self::start`], but begins on the thread of the caller.
    fn begin<T, F>(&self, work: impl FnOnce(Self) -> F + Send + 'static) -> Operation<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        self.0.runtime.begin_operation(self.prepared(work))
    }

    fn prepared<T, F, W>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, Failure>> + Send + use<T, F, W>
    where
        W: FnOnce(Self) -> F + Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Send + 'static,
    {
        let host = self.clone();
        async move {
            host.check()?;
            host.list_local().await?;
            work(host).await
        }
    }

    /// Waits until every server has connected, failed, or used up its deadline.
    async fn connected(&self) {
        self.0.host.connect_all().await;
        self.0.host.started().await;
    }

    /// Lists the program's own tools anew if some were added.
    async fn list_local(&self) -> Result<(), Failure> {
        let inner = &*self.0;
        if inner.local_added.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let mut listed = inner.local_listed.lock().await;
        let added = inner.local_added.load(Ordering::Acquire);
        if *listed == added {
            return Ok(());
        }
        if *listed == 0 {
            let server = Server::in_process(LOCAL, inner.local.clone());
            inner.host.add(server).await?;
        } else {
            // A server that the program has disabled or removed lists them when it is connected again.
            let local = ServerName::from(LOCAL);
            if inner.host.connect(&local).await.is_ok() {
                inner.host.list_tools_again(&local).await;
            }
        }
        *listed = added;
        Ok(())
    }
}

/// The events of a host. Cheap to clone; clones share one queue.
#[derive(Clone)]
pub struct Events {
    runtime: Runtime,
    receiver: Arc<Mutex<broadcast::Receiver<Event>>>,
    ended: watch::Receiver<bool>,
}

impl Events {
    /// Waits for the next event, as a JSON object; `None` after the end of the host.
    pub fn next(&self) -> Operation<Option<String>> {
        let receiver = Arc::clone(&self.receiver);
        let mut ended = self.ended.clone();
        self.runtime.start_operation(async move {
            let mut receiver = receiver.lock().await;
            loop {
                let event = tokio::select! {
                    biased;
                    event = receiver.recv() => event,
                    _ = ended.wait_for(|ended| *ended) => return Ok(None),
                };
                match event {
                    Ok(event) => {
                        if let Some(event) = events::event(&event) {
                            return Ok(Some(event.to_string()));
                        }
                    }
                    Err(RecvError::Lagged(lost)) => {
                        return Ok(Some(events::lagged(lost).to_string()));
                    }
                    Err(RecvError::Closed) => return Ok(None),
                }
            }
        })
    }
}

/// Starts an operation that needs no host.
pub(crate) fn start<T, F>(work: impl FnOnce(Runtime) -> F) -> Operation<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    match Runtime::current() {
        Ok(runtime) => {
            let future = work(runtime.clone());
            runtime.start_operation(future)
        }
        Err(failure) => Operation::failed(failure),
    }
}

/// Builds the host that a program describes.
pub(crate) async fn configure(
    config: HostConfig,
    callbacks: &Callbacks,
) -> Result<ConfiguredHost, Failure> {
    let HostConfig {
        folder,
        files,
        servers,
        supervisor,
        environment,
    } = config;
    let mut builder = switchboard::Host::builder().handler(Arc::new(callbacks.clone()));
    if let Some(folder) = folder {
        builder = builder.folder(folder);
    }
    if let Some(servers) = servers {
        builder = builder.servers(servers);
    }
    if let Some(supervisor) = supervisor {
        builder = builder.supervisor(supervisor);
    }
    if let Some(environment) = environment {
        builder = builder.environment(environment.into());
    }
    if let Some(approver) = callbacks.approver() {
        builder = builder.approver(approver);
    }
    for hook in callbacks.registrations() {
        builder = builder.hook(hook);
    }
    for file in files {
        builder = builder.file(file);
    }
    Ok(builder.configured().await?)
}

fn known(is_known: bool, name: ServerName) -> Result<(), Failure> {
    if is_known {
        Ok(())
    } else {
        Err(ServerError::Unknown(name).into())
    }
}

/// The items of one page, each with its server.
fn items_of(page: &str, server: &ServerName, kind: ListKind) -> Vec<Value> {
    let key = match kind {
        ListKind::Tools => "tools",
        ListKind::Prompts => "prompts",
        ListKind::Resources => "resources",
        ListKind::Templates => "resourceTemplates",
    };
    let page: Value = serde_json::from_str(page).unwrap_or_default();
    let items = page.get(key).and_then(Value::as_array);
    let with_server = |item: &Value| {
        let mut item = item.as_object()?.clone();
        item.insert("server".to_owned(), server.as_str().into());
        Some(Value::Object(item))
    };
    items.map_or_else(Vec::new, |items| {
        items.iter().filter_map(with_server).collect()
    })
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Host").field(&self.0.host).finish()
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Events").finish_non_exhaustive()
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("total_timeout", &self.total_timeout)
            .finish_non_exhaustive()
    }
}

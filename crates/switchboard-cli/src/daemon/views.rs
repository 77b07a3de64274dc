//! The views of a daemon: one host with a gateway for each project that clients work in.
//!
//! A view has the configuration of its project. It is made for its first client and closed when it has had none for a
//! while; its servers end with it. All views run on the thread of the daemon, since supervisors are tied to it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use switchboard::Host;
use switchboard::internal::service::Sink;
use switchboard::permissions::Policy;
use switchboard_server::gateway::{Gateway, GatewayOptions, GatewayQuestions};
use switchboard_server::local::{LocalClient, LocalHandler};
use switchboard_server::{Client, Exchange, Handler, Readiness};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::cli::GlobalFlags;
use crate::commands::serve::report_failures;
use crate::context::Context;
use crate::current::Current;
use crate::servers::Servers;
use crate::session::{self, ClientPrompts, SessionMode};

/// The front end recorded in the audit log.
const FRONT_END: &str = "daemon";
/// A view without clients is closed after this time.
const IDLE: Duration = Duration::from_secs(600);
/// Interval of looking for views without clients.
const LOOK: Duration = Duration::from_secs(30);
/// Requests that may wait for the thread of the daemon.
const MAX_WAITING: usize = 1024;

/// The gateway of one project.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) gateway: Gateway,
    pub(crate) host: Host,
    /// Each client holds one.
    used: Arc<()>,
}

enum Request {
    Open(PathBuf, oneshot::Sender<Result<View, String>>),
    Status(oneshot::Sender<Value>),
    Stop,
}

/// Asks the thread of the daemon for views. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Views {
    requests: mpsc::Sender<Request>,
    /// The address for clients over HTTP.
    http: Arc<OnceLock<String>>,
}

/// The open views, on the thread of the daemon.
struct OpenViews {
    flags: GlobalFlags,
    /// By the folder of the project.
    views: HashMap<PathBuf, OpenView>,
}

struct OpenView {
    view: View,
    since: Instant,
    task: AbortHandle,
}

impl Drop for OpenView {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Views {
    /// Runs the views until a client stops the daemon; `work` uses them meanwhile. Must run within a `LocalSet`.
    pub(crate) async fn run<T>(flags: GlobalFlags, work: impl AsyncFnOnce(Self) -> T) -> Option<T> {
        let (sender, requests) = mpsc::channel(MAX_WAITING);
        let open = OpenViews {
            flags,
            views: HashMap::new(),
        };
        tokio::select! {
            output = work(Self { requests: sender, http: Arc::default() }) => Some(output),
            () = open.answer(requests) => None,
        }
    }

    /// Sets the address that the status names.
    pub(crate) fn set_http(&self, url: &str) {
        let _ = self.http.set(url.to_owned());
    }

    /// The view of a folder.
    pub(crate) async fn open(&self, folder: PathBuf) -> Result<View, String> {
        let gone = || "the daemon is shutting down".to_owned();
        let (answer, answered) = oneshot::channel();
        let sent = self.requests.send(Request::Open(folder, answer)).await;
        sent.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

impl LocalHandler for Views {
    fn gateway(&self, client: LocalClient) -> BoxFuture<'_, Result<Arc<dyn Handler>, String>> {
        async move {
            let view = self.open(client.folder).await?;
            Ok(Arc::new(view) as Arc<dyn Handler>)
        }
        .boxed()
    }

    fn status(&self) -> BoxFuture<'_, Value> {
        async move {
            let (answer, answered) = oneshot::channel();
            let _ = self.requests.send(Request::Status(answer)).await;
            let mut status = answered.await.unwrap_or_else(|_| json!({}));
            status["http"] = self
                .http
                .get()
                .map_or(Value::Null, |url| url.as_str().into());
            status
        }
        .boxed()
    }

    fn stop(&self) {
        let _ = self.requests.try_send(Request::Stop);
    }
}

/// A client holds its view open.
impl Handler for View {
    fn open(&self, client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
        self.gateway.open(client, sink)
    }

    fn readiness(&self) -> Readiness {
        self.gateway.readiness()
    }

    fn metrics(&self) -> Option<String> {
        self.gateway.metrics()
    }

    fn has_profile(&self, profile: &str) -> bool {
        self.gateway.has_profile(profile)
    }
}

impl OpenViews {
    async fn answer(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(Request::Open(folder, answer)) => {
                        let view = self.view(folder).await;
                        let _ = answer.send(view);
                    }
                    Some(Request::Status(answer)) => {
                        let _ = answer.send(self.status());
                    }
                    Some(Request::Stop) | None => return,
                },
                _ = look.tick() => self.close_unused(),
            }
        }
    }

    async fn view(&mut self, folder: PathBuf) -> Result<View, String> {
        let flags = GlobalFlags {
            cwd: Some(folder),
            ..self.flags.clone()
        };
        let context = Context::new(flags).map_err(|failure| failure.to_string())?;
        let project = context.project.clone();
        if let Some(open) = self.views.get_mut(&project) {
            open.since = Instant::now();
            return Ok(open.view.clone());
        }
        let (ready, made) = oneshot::channel();
        let task = spawn_local(run_view(context, ready));
        let view = made
            .await
            .map_err(|_| "the servers cannot be started".to_owned())?;
        self.views.insert(
            project,
            OpenView {
                view: view.clone(),
                since: Instant::now(),
                task: task.abort_handle(),
            },
        );
        Ok(view)
    }

    fn close_unused(&mut self) {
        self.views.retain(|_, open| {
            // The table holds one itself.
            if Arc::strong_count(&open.view.used) > 1 {
                open.since = Instant::now();
            }
            open.since.elapsed() < IDLE
        });
    }

    fn status(&self) -> Value {
        let views = self.views.iter().map(|(project, open)| {
            let servers = open.view.host.statuses();
            let servers: Vec<Value> = servers
                .iter()
                .map(|status| json!({"name": status.name.as_str(), "state": status.word()}))
                .collect();
            json!({
                "project": project.display().to_string(),
                "clients": Arc::strong_count(&open.view.used) - 1,
                "servers": servers,
            })
        });
        json!({ "projects": views.collect::<Vec<_>>() })
    }
}

/// The life of one view.
async fn run_view(context: Context, ready: oneshot::Sender<View>) {
    let servers = Servers::load_quietly(&context);
    let questions = GatewayQuestions::about(&context.project);
    let mode = SessionMode {
        policy: Policy::gateway(),
        front_end: FRONT_END,
        attended: false,
        lists_only: false,
        logins: true,
        clients: Some(ClientPrompts::of(&questions)),
    };
    session::open_for(mode, &context, &servers, async |session| {
        session.report_withheld();
        let gateway = Gateway::new(session.host.clone(), questions, GatewayOptions::default());
        let current = Current::of_gateway(&gateway, session);
        let view = View {
            gateway,
            host: session.host.clone(),
            used: Arc::default(),
        };
        if ready.send(view).is_err() {
            return;
        }
        tokio::select! {
            never = report_failures(session) => match never {},
            never = current.follow_files(session, |line| context.printer.note(line)) => match never {},
        }
    })
    .await;
}

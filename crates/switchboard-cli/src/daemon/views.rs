//! The views of a daemon: one host with a gateway for each project that clients work in.
//!
//! A view has the configuration of its project. It is made for its first client and closed when it has had none for a
//! while; its servers end with it. All views run on the thread of the daemon, since supervisors are tied to it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use serde_json::{Value, json};
use switchboard::internal::service::Sink;
use switchboard::internal::sharing::SharedConnections;
use switchboard::permissions::Policy;
use switchboard::status::ServerStatus;
use switchboard::{Host, ServerName};
use switchboard_config::sort;
use switchboard_server::gateway::{Gateway, GatewayOptions, GatewayQuestions};
use switchboard_server::local::{LocalClient, LocalHandler};
use switchboard_server::{Client, Exchange, Handler, Readiness};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::activity::{Activity, ConnectedClient};
use crate::cli::GlobalFlags;
use crate::commands::serve::report_failures;
use crate::commands::status::Row;
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
/// How long the servers and the audit log of a view may take to end.
const CLOSING: Duration = Duration::from_secs(5);
/// Requests that may wait for the thread of the daemon.
const MAX_WAITING: usize = 1024;

/// The gateway of one project.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) gateway: Gateway,
    pub(crate) host: Host,
    /// Each client holds one.
    used: Arc<()>,
    activity: Activity,
    questions: GatewayQuestions,
    /// The working directory of the client; `None` over HTTP.
    folder: Option<PathBuf>,
}

/// The daemon at one moment.
pub(crate) struct DaemonSnapshot {
    pub(crate) projects: Vec<ProjectSnapshot>,
    pub(crate) clients: Vec<ConnectedClient>,
    /// Tool calls since the start.
    pub(crate) calls: u64,
}

/// The servers of one project.
pub(crate) struct ProjectSnapshot {
    pub(crate) folder: PathBuf,
    pub(crate) host: Host,
    pub(crate) statuses: Vec<ServerStatus>,
    /// Clients that work in the project.
    pub(crate) clients: usize,
}

enum Request {
    Open(PathBuf, oneshot::Sender<Result<View, String>>),
    Snapshot(oneshot::Sender<DaemonSnapshot>),
    Stop,
}

/// Asks the thread of the daemon for views. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Views {
    requests: mpsc::Sender<Request>,
    activity: Activity,
    /// The address for clients over HTTP.
    http: Arc<OnceLock<String>>,
}

/// The open views, on the thread of the daemon.
struct OpenViews {
    flags: GlobalFlags,
    activity: Activity,
    /// What servers of several projects have in common.
    connections: SharedConnections,
    /// By the folder of the project.
    views: HashMap<PathBuf, OpenView>,
}

struct OpenView {
    view: View,
    since: Instant,
    /// Dropped to end the view.
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl OpenView {
    /// Ends the view in order: its servers are told, and its audit log is written.
    async fn close(self) {
        drop(self.end);
        let abort = self.task.abort_handle();
        if timeout(CLOSING, self.task).await.is_err() {
            // The supervisor ends its servers.
            abort.abort();
        }
    }
}

impl Views {
    /// Runs the views until a client stops the daemon; `work` uses them meanwhile. Then ends them in order. Must run
    /// within a `LocalSet`.
    pub(crate) async fn run<T>(flags: GlobalFlags, work: impl AsyncFnOnce(Self) -> T) -> Option<T> {
        let (sender, requests) = mpsc::channel(MAX_WAITING);
        let activity = Activity::default();
        let mut open = OpenViews {
            flags,
            activity: activity.clone(),
            connections: SharedConnections::default(),
            views: HashMap::new(),
        };
        let output = tokio::select! {
            output = work(Self { requests: sender, activity, http: Arc::default() }) => Some(output),
            () = open.answer(requests) => None,
        };
        join_all(open.views.into_values().map(OpenView::close)).await;
        output
    }

    /// Sets the address that the status names.
    pub(crate) fn set_http(&self, url: &str) {
        let _ = self.http.set(url.to_owned());
    }

    /// The daemon at this moment; `None` if it is shutting down.
    pub(crate) async fn snapshot(&self) -> Option<DaemonSnapshot> {
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request::Snapshot(answer)).await.ok()?;
        answered.await.ok()
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
            let folder = Some(client.folder.clone());
            let view = self.open(client.folder).await?;
            Ok(Arc::new(View { folder, ..view }) as Arc<dyn Handler>)
        }
        .boxed()
    }

    fn server(
        &self,
        client: LocalClient,
        server: &str,
        key: &str,
    ) -> BoxFuture<'_, Result<Arc<dyn Handler>, String>> {
        let (server, key) = (ServerName::from(server), key.to_owned());
        async move {
            let folder = Some(client.folder.clone());
            let view = self.open(client.folder).await?;
            let known = view.host.connection_key(&server);
            if known.is_none_or(|known| known.to_hex() != key) {
                return Err("the daemon has another configuration of the server".to_owned());
            }
            let options = GatewayOptions {
                transparent: Some(server),
                direct: true,
                ..GatewayOptions::default()
            };
            let gateway = Gateway::new(view.host.clone(), view.questions.clone(), options);
            let view = View {
                gateway,
                folder,
                ..view
            };
            Ok(Arc::new(view) as Arc<dyn Handler>)
        }
        .boxed()
    }

    fn is_used_otherwise(&self) -> bool {
        self.activity.has_sessions()
    }

    fn status(&self) -> BoxFuture<'_, Value> {
        async move {
            let snapshot = self.snapshot().await;
            let mut status = snapshot.map_or_else(|| json!({}), |it| it.to_json());
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
        let exchange = self.gateway.open(client, sink);
        self.activity.follow(client, self.folder.clone(), exchange)
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
    async fn answer(&mut self, mut requests: mpsc::Receiver<Request>) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(Request::Open(folder, answer)) => {
                        let view = self.view(folder).await;
                        let _ = answer.send(view);
                    }
                    Some(Request::Snapshot(answer)) => {
                        let _ = answer.send(self.snapshot());
                    }
                    Some(Request::Stop) | None => return,
                },
                _ = look.tick() => self.close_unused().await,
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
        let (end, ended) = oneshot::channel();
        let task = spawn_local(run_view(
            context,
            self.connections.clone(),
            self.activity.clone(),
            ready,
            ended,
        ));
        let view = made
            .await
            .map_err(|_| "the servers cannot be started".to_owned())?;
        self.views.insert(
            project,
            OpenView {
                view: view.clone(),
                since: Instant::now(),
                end,
                task,
            },
        );
        Ok(view)
    }

    async fn close_unused(&mut self) {
        let unused = self.views.extract_if(|_, open| {
            // The table holds one itself.
            if Arc::strong_count(&open.view.used) > 1 {
                open.since = Instant::now();
            }
            open.since.elapsed() >= IDLE
        });
        let unused: Vec<OpenView> = unused.map(|(_, open)| open).collect();
        join_all(unused.into_iter().map(OpenView::close)).await;
    }

    fn snapshot(&self) -> DaemonSnapshot {
        let projects = self.views.iter().map(|(project, open)| ProjectSnapshot {
            folder: project.clone(),
            host: open.view.host.clone(),
            statuses: open.view.host.statuses(),
            clients: Arc::strong_count(&open.view.used) - 1,
        });
        let mut projects: Vec<ProjectSnapshot> = projects.collect();
        sort::by_key(&mut projects, |project| project.folder.clone());
        DaemonSnapshot {
            projects,
            clients: self.activity.clients(),
            calls: self.activity.calls(),
        }
    }
}

impl DaemonSnapshot {
    fn to_json(&self) -> Value {
        let projects = self.projects.iter().map(|project| {
            let servers = project.statuses.iter();
            let servers: Vec<Value> = servers.map(|status| Row::of(status).to_json()).collect();
            json!({
                "project": project.folder.display().to_string(),
                "clients": project.clients,
                "servers": servers,
            })
        });
        let clients = self.clients.iter().map(ConnectedClient::to_json);
        json!({
            "projects": projects.collect::<Vec<_>>(),
            "clients": clients.collect::<Vec<_>>(),
            "calls": self.calls,
        })
    }
}

/// The life of one view, until the sender of `end` is dropped.
async fn run_view(
    context: Context,
    connections: SharedConnections,
    activity: Activity,
    ready: oneshot::Sender<View>,
    end: oneshot::Receiver<()>,
) {
    let servers = Servers::load_quietly(&context);
    let questions = GatewayQuestions::about(&context.project);
    let mode = SessionMode {
        policy: Policy::gateway(),
        front_end: FRONT_END,
        attended: false,
        lists_only: false,
        logins: true,
        clients: Some(ClientPrompts::of(&questions).sharing(&connections)),
    };
    session::open_for(mode, &context, &servers, async |session| {
        session.report_withheld();
        let gateway = Gateway::new(session.host.clone(), questions.clone(), GatewayOptions::default());
        let current = Current::of_gateway(&gateway, session);
        let view = View {
            gateway,
            questions,
            host: session.host.clone(),
            used: Arc::default(),
            activity,
            folder: None,
        };
        if ready.send(view).is_err() {
            return;
        }
        tokio::select! {
            _ = end => {}
            never = report_failures(session) => match never {},
            never = current.follow_files(session, |line| context.printer.note(line)) => match never {},
        }
    })
    .await;
}

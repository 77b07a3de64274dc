//! The complete host, used as by an embedder, for `cargo xtask bench`.
//!
//! Servers run under the supervisor, which is this program again. Every call is resolved, its arguments are validated,
//! the permission gate decides and logs it, its deadlines run, and a listener receives its events.

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard::internal::audit::{Audit, AuditSettings};
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::stdio::{StdioConnector, SupervisorCommand};
use switchboard::permissions::{Engine, PermissionGate, Policy};
use switchboard::{CallRequest, Host, HostOptions, HostSettings, ServerName};
use switchboard_test::bench::{self, ARGUMENTS, Contestant, Failure, Server, TOOL};
use tokio::sync::broadcast::error::RecvError;

/// The argument that runs this program as the supervisor.
const SUPERVISOR: &str = "supervisor";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(SUPERVISOR) {
        return switchboard::internal::supervisor::run();
    }
    bench::run::<Switchboard>()
}

#[derive(Clone)]
struct Switchboard {
    host: Host,
    tool: String,
    arguments: Box<RawValue>,
}

impl Contestant for Switchboard {
    const NAME: &'static str = "switchboard";

    async fn open(server: Server, count: usize) -> Result<Self, Failure> {
        let mut options = HostOptions {
            settings: HostSettings {
                local_connections: count,
                ..HostSettings::default()
            },
            ..HostOptions::default()
        };
        let audit = Audit::start(
            Arc::clone(&options.store),
            AuditSettings::default(),
            "bench",
        );
        let engine = Engine::without_rules(Policy::typed());
        options.gate = Arc::new(PermissionGate::new(engine).recording(audit));
        let host = Host::with_options(options);
        let mut events = host.events();
        // Ends with the host, at the latest with the runtime.
        tokio::spawn(
            async move { while !matches!(events.recv().await, Err(RecvError::Closed)) {} },
        );
        let supervisor = SupervisorCommand {
            program: std::env::current_exe()?,
            args: vec![SUPERVISOR.into()],
        };
        let base_env: Arc<[_]> = std::env::vars_os().collect();
        let specs = (0..count).map(|index| {
            let mut connector = StdioConnector::new(&server.program);
            connector.args.clone_from(&server.arguments);
            connector.base_env = Arc::clone(&base_env);
            connector.inherit_env = true;
            connector.supervisor = Some(supervisor.clone());
            let name = format!("echo-{index}");
            let key = ConnectionKey::of(&[name.as_bytes()]);
            ServerSpec::new(name, Arc::new(connector), key)
        });
        host.apply(specs.collect()).await;
        host.settled().await;
        if let Some(status) = host
            .statuses()
            .into_iter()
            .find(|status| status.word() != "connected")
        {
            return Err(format!(
                "{} is {}: {:?}",
                status.name,
                status.state.word(),
                status.state.failure()
            )
            .into());
        }
        let catalog = host.catalog();
        let first = catalog
            .server(ServerName::from("echo-0").as_str())
            .and_then(|server| server.get(TOOL))
            .ok_or("the tool is not offered")?;
        let tool = first.exposed().as_str().to_owned();
        let arguments = serde_json::from_str(ARGUMENTS)?;
        Ok(Self {
            host,
            tool,
            arguments,
        })
    }

    async fn call(&mut self) -> Result<(), Failure> {
        let request = CallRequest {
            tool: self.tool.clone(),
            arguments: Some(self.arguments.clone()),
            ..CallRequest::default()
        };
        let outcome = self.host.request(request).await?;
        if outcome.is_error {
            return Err("the tool failed".into());
        }
        Ok(())
    }

    fn tools(&self) -> usize {
        self.host.catalog().len()
    }

    fn share(&self) -> Option<Self> {
        Some(self.clone())
    }

    async fn close(self) {
        self.host.shutdown().await;
    }
}

//! The rmcp client, for `cargo xtask bench`.

use std::process::{ExitCode, Stdio};
use std::sync::Arc;

use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService, ServiceExt as _};
use switchboard_test::bench::{self, ARGUMENTS, Contestant, Failure, Server, TOOL};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

fn main() -> ExitCode {
    bench::run::<Rmcp>()
}

#[derive(Clone)]
struct Rmcp {
    connections: Arc<[Connection]>,
    tools: usize,
}

struct Connection {
    _child: Child,
    service: RunningService<RoleClient, ()>,
    tools: Vec<rmcp::model::Tool>,
}

impl Connection {
    async fn open(server: Server) -> Result<Self, Failure> {
        let mut child = Command::new(&server.program)
            .args(&server.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdin = child.stdin.take().ok_or("no stdin")?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let service = ().serve((stdout, stdin)).await?;
        let tools = service.list_all_tools().await?;
        Ok(Self {
            _child: child,
            service,
            tools,
        })
    }
}

impl Contestant for Rmcp {
    const NAME: &'static str = "rmcp";

    async fn open(server: Server, count: usize) -> Result<Self, Failure> {
        let mut opening = JoinSet::new();
        for _ in 0..count {
            opening.spawn(Connection::open(server.clone()));
        }
        let mut connections = Vec::with_capacity(count);
        while let Some(connection) = opening.join_next().await {
            connections.push(connection??);
        }
        Ok(Self {
            tools: connections
                .iter()
                .map(|connection| connection.tools.len())
                .sum(),
            connections: connections.into(),
        })
    }

    async fn call(&mut self) -> Result<(), Failure> {
        let connection = self.connections.first().ok_or("no server")?;
        let arguments = serde_json::from_str(ARGUMENTS)?;
        let params = CallToolRequestParams::new(TOOL).with_arguments(arguments);
        let result = connection.service.call_tool(params).await?;
        if result.is_error == Some(true) {
            return Err("the tool failed".into());
        }
        Ok(())
    }

    fn tools(&self) -> usize {
        self.tools
    }

    fn share(&self) -> Option<Self> {
        Some(self.clone())
    }

    async fn close(self) {}
}

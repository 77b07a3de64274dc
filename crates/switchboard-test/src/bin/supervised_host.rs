//! A host that tests kill, which is also the supervisor of its servers.
//!
//! `supervised_host supervisor MARK` runs the supervisor. `supervised_host host MARK MANNER SCRIPT…` starts each script
//! with `sh -c` under such a supervisor, all at once, with `MARK` in its environment as `SWITCHBOARD_TEST_MARK`. When
//! every server has written a line, it prints `ready`, waits for a line on standard input, and ends by `MANNER`:
//! `exit`, `return` or `panic`. `supervised_host unsupervised …` is the same without a supervisor.

fn main() -> std::process::ExitCode {
    #[cfg(unix)]
    return unix::main();
    #[cfg(not(unix))]
    std::process::ExitCode::FAILURE
}

#[cfg(unix)]
#[expect(
    clippy::print_stdout,
    clippy::panic,
    reason = "printing and panicking are its purpose"
)]
mod unix {
    use std::io::{BufRead, Write};
    use std::process::ExitCode;
    use std::sync::Arc;

    use bytes::Bytes;
    use switchboard::internal::transport::stdio::{StdioConnector, SupervisorCommand};
    use switchboard::transport::{Closed, Connector, Inbound, RequestFailure};
    use tokio::sync::mpsc;

    pub(super) fn main() -> ExitCode {
        let mut args = std::env::args().skip(1);
        let (Some(role), Some(mark)) = (args.next(), args.next()) else {
            return ExitCode::from(2);
        };
        match role.as_str() {
            "supervisor" => switchboard::internal::supervisor::run(),
            "host" | "unsupervised" => {
                let Ok(program) = std::env::current_exe() else {
                    return ExitCode::FAILURE;
                };
                let supervisor = (role == "host").then(|| SupervisorCommand {
                    program,
                    args: vec!["supervisor".into(), mark.clone().into()],
                });
                let manner = args.next().unwrap_or_default();
                let scripts: Vec<String> = args.collect();
                host(&mark, &manner, supervisor.as_ref(), &scripts)
            }
            _ => ExitCode::from(2),
        }
    }

    #[tokio::main]
    async fn host(
        mark: &str,
        manner: &str,
        supervisor: Option<&SupervisorCommand>,
        scripts: &[String],
    ) -> ExitCode {
        let base_env: Arc<[_]> = std::env::vars_os().collect();
        let (up, mut ups) = mpsc::channel(scripts.len().max(1));
        let connectors = scripts.iter().map(|script| {
            let mut connector = StdioConnector::new("sh");
            connector.args = vec!["-c".into(), script.into()];
            connector.base_env = Arc::clone(&base_env);
            connector.env = vec![("SWITCHBOARD_TEST_MARK".into(), mark.into())];
            connector.supervisor = supervisor.cloned();
            connector
        });
        let connecting: Vec<_> = connectors
            .map(|connector| {
                let inbound = Arc::new(Up(up.clone()));
                tokio::spawn(async move { connector.connect(inbound).await })
            })
            .collect();
        let mut links = Vec::new();
        for link in connecting {
            match link.await {
                Ok(Ok(link)) => links.push(link),
                failed => {
                    println!("failed: {:?}", failed.map(Result::err));
                    return ExitCode::FAILURE;
                }
            }
        }
        for _ in scripts {
            ups.recv().await;
        }
        println!("ready");
        let _ = std::io::stdout().flush();
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        match manner {
            "exit" => std::process::exit(0),
            "panic" => panic!("as requested"),
            _ => ExitCode::SUCCESS,
        }
    }

    /// Signals that its server has written a line.
    struct Up(mpsc::Sender<()>);

    impl Inbound for Up {
        fn frame(&self, _frame: Bytes) {
            // The channel holds one line per server; further lines are dropped.
            let _ = self.0.try_send(());
        }

        fn oversized(&self, _start: &[u8], _limit: usize) {}

        fn failed(&self, _request: u64, _failure: RequestFailure) {}

        fn diagnostic(&self, _line: &str) {}

        fn closed(&self, _closed: Closed) {}
    }
}

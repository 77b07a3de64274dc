//! The roots that a server is given, in both eras.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use switchboard::internal::roots::Roots;
use switchboard::{ClientHandler, Host, HostOptions, ServerName};
use switchboard_config::entry::ServerEntry;
use switchboard_protocol::types::capabilities::ClientCapabilities;
use switchboard_protocol::types::roots::ListRootsResult;
use switchboard_protocol::types::wire::{self, IntoOwned as _};
use switchboard_protocol::{Era, ErrorObject};
use switchboard_test::hosted::{call, spec};
use switchboard_test::scripted::{Do, Over, Script, Tool, start};

use super::LONG;

/// A client with a root.
struct AtWork;

impl ClientHandler for AtWork {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        let raw = to_raw_value(&json!({"roots": {}})).unwrap();
        let capabilities: ClientCapabilities<'_> = wire::decode(&raw).unwrap();
        capabilities.into_owned()
    }

    fn list_roots<'a>(
        &'a self,
        _: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        let raw = to_raw_value(&json!({"roots": [{"uri": "file:///work"}]})).unwrap();
        let roots: ListRootsResult<'_> = wire::decode(&raw).unwrap();
        ready(Ok(roots.into_owned())).boxed()
    }
}

/// The client capabilities declared in a message, in either era.
fn declared(message: &Value) -> Option<&Value> {
    let params = &message["params"];
    let meta = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    [&params["capabilities"], meta]
        .into_iter()
        .find(|value| value.is_object())
}

#[tokio::test]
async fn a_server_whose_arguments_name_a_folder_gets_no_other_root() {
    for era in [Era::Stateful, Era::Stateless] {
        for (args, is_told) in [(vec!["/tmp".to_owned()], false), (Vec::new(), true)] {
            let asking = Tool::new("ask")
                .asks("roots/list", json!({}))
                .does(Do::Asked);
            let script = Script::new("files").era(era).tool(asking);
            let server = start(script, Over::Http).await.unwrap();
            let host = Host::with_options(HostOptions {
                handler: Arc::new(AtWork),
                ..HostOptions::default()
            });
            let entry = ServerEntry {
                args: args.clone(),
                ..ServerEntry::default()
            };
            let mut spec = spec("files", &server, Over::Http, 1024 * 1024);
            spec.roots = Roots::of(&entry, Path::new("/work"), Path::new("/work"));
            host.add_server(spec).await.unwrap();
            let outcome = call(&host, "files/ask", json!({}), LONG).await;
            let answer = match &outcome {
                Ok(outcome) => outcome.result.as_str().to_owned(),
                Err(error) => error.to_string(),
            };
            let case = format!("{era:?} {args:?}: {answer}");
            assert_eq!(answer.contains("file:///work"), is_told, "{case}");
            let received = server.control.received();
            let mut capabilities = received.iter().filter_map(declared).peekable();
            assert!(capabilities.peek().is_some(), "{case}");
            assert!(
                capabilities.all(|declared| declared.get("roots").is_some() == is_told),
                "{case}: {received:?}"
            );
            host.shutdown().await;
        }
    }
}

//! A server of the agent whose tool asks the user a question.

use std::sync::Arc;

use serde_json::json;
use serde_json::value::to_raw_value;
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::service::{Features, Reply, RequestContext, Service, text_result};
use switchboard_protocol::types::elicitation::ElicitRequestParams;
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use switchboard_protocol::types::{IntoOwned as _, RawObject, decode};

struct Inquirer;

pub(crate) fn spec() -> ServerSpec {
    let connector = Arc::new(InProcessConnector::new(Arc::new(Inquirer)));
    ServerSpec::new("inquirer", connector, ConnectionKey::of(&[b"inquirer"]))
}

impl Service for Inquirer {
    fn identity(&self) -> Implementation<'static> {
        Implementation::new("inquirer".into())
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            ..Features::NONE
        }
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        vec![Tool::new("inquire".into())]
    }

    fn call_tool<'a>(
        &'a self,
        _call: CallToolRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            let form = json!({
                "mode": "form",
                "message": "How many?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"count": {"type": "integer"}},
                },
            });
            let raw = to_raw_value(&form).unwrap();
            let params = decode::<ElicitRequestParams<'_>>(&raw)
                .unwrap()
                .into_owned();
            let answer = context.elicit("count", params).await?;
            let filled = answer.content.as_ref().map_or("nothing", RawObject::get);
            Ok(text_result(format!("{:?} {filled}", answer.action)))
        })
    }
}

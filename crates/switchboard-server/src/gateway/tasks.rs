//! Tasks of servers: the ids under which clients know them.
//!
//! A client names a task by its id alone, over a connection that all clients share. The id that it gets therefore
//! contains the server, and is authenticated together with the client's principal: another principal cannot use it. It
//! is the same each time, so that a client can compare ids.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::value::RawValue;
use switchboard::{ServerName, SharedJson};
use switchboard_protocol::types::Outcome;
use switchboard_protocol::types::method::{CallTool, Request as _};

use super::seal::GatewayKey;

/// Exposes the ids of tasks, and finds the tasks again.
pub(super) struct TaskIds(hmac::Key);

impl TaskIds {
    pub(super) fn new(key: &GatewayKey) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key.derived("task ids")))
    }

    pub(super) fn exposed(&self, principal: &str, server: &ServerName, id: &str) -> String {
        let named = serde_json::json!([server.as_str(), id]).to_string();
        let tag = hmac::sign(&self.0, &signed(principal, &named));
        format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(named),
            URL_SAFE_NO_PAD.encode(tag)
        )
    }

    /// The server and the id there; `None` if it was not exposed to this principal.
    pub(super) fn find(&self, principal: &str, exposed: &str) -> Option<(ServerName, String)> {
        let (named, tag) = exposed.split_once('.')?;
        let named = String::from_utf8(URL_SAFE_NO_PAD.decode(named).ok()?).ok()?;
        let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
        hmac::verify(&self.0, &signed(principal, &named), &tag).ok()?;
        let (server, id): (String, String) = serde_json::from_str(&named).ok()?;
        Some((server.into(), id))
    }

    /// A result that creates a task, with the exposed id; any other result as it is.
    pub(super) fn created(
        &self,
        principal: &str,
        server: &ServerName,
        result: SharedJson,
    ) -> SharedJson {
        let Ok(Outcome::Task(created)) = CallTool::decode_result(result.raw()) else {
            return result;
        };
        let id = created.task().task_id.to_string();
        let exposed = self.exposed(principal, server, &id);
        SharedJson::trusted(with_task_id(result.as_str(), &id, &exposed))
    }
}

fn signed(principal: &str, named: &str) -> Vec<u8> {
    // No principal contains a line end.
    [principal.as_bytes(), b"\n", named.as_bytes()].concat()
}

/// JSON in which each member `taskId` with this value has the other one. Everything else stays as it is.
pub(super) fn with_task_id(json: &str, from: &str, to: &str) -> String {
    const NAME: &str = "\"taskId\"";
    let mut text = String::with_capacity(json.len() + to.len());
    let mut rest = json;
    while let Some(start) = rest.find(NAME) {
        let (before, after) = rest.split_at(start + NAME.len());
        text.push_str(before);
        rest = after;
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        let Some(value) = value.filter(|value| value.starts_with('"')) else {
            continue;
        };
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<&RawValue>();
        let Some(Ok(found)) = values.next() else {
            continue;
        };
        if serde_json::from_str::<String>(found.get()).is_ok_and(|found| found == from) {
            text.push(':');
            text.push_str(&serde_json::Value::from(to).to_string());
            rest = value.get(found.get().len()..).unwrap_or_default();
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_found_by_its_principal_only() {
        let ids = TaskIds::new(&GatewayKey::random().unwrap());
        let server = ServerName::from("files");
        let exposed = ids.exposed("token:a", &server, "task \"1\"");
        assert_eq!(exposed, ids.exposed("token:a", &server, "task \"1\""));
        let found = Some((server, "task \"1\"".to_owned()));
        assert_eq!(ids.find("token:a", &exposed), found);
        assert_eq!(ids.find("token:b", &exposed), None);
        for forged in ["", ".", "task", &exposed[..exposed.len() - 1], "W10.W10"] {
            assert_eq!(ids.find("token:a", forged), None, "{forged}");
        }
        let other = TaskIds::new(&GatewayKey::random().unwrap());
        assert_eq!(other.find("token:a", &exposed), None);
    }

    #[test]
    fn only_the_id_of_the_task_is_replaced() {
        let json = r#"{"task":{"taskId" : "1","x":"1"},"_meta":{"taskId":"2"},"t":"\"taskId\":\"1\"","taskId":"\u0031"}"#;
        let expected = r#"{"task":{"taskId":"new","x":"1"},"_meta":{"taskId":"2"},"t":"\"taskId\":\"1\"","taskId":"new"}"#;
        assert_eq!(with_task_id(json, "1", "new"), expected);
    }
}

//! `switchboard mcp logout`: deletes a stored login, and revokes it at the authorization server.

use serde_json::json;
use switchboard::internal::auth::logout;
use switchboard_config::text::visible;

use super::login::{failed, target};
use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::journal;
use crate::printer::{paint, style};
use crate::servers::Servers;
use crate::session;

pub(super) fn run(name: &str, context: &Context) -> Outcome {
    let servers = Servers::load(context, Some(name))?;
    let (_, target) = target(&servers, name, context)?;
    session::run(context, &servers, async |_| {
        let vault = servers.vault(context);
        let forgotten = logout(&target.server, &target.fetcher, &*vault).await;
        journal::login("logout", &name.into(), forgotten.is_ok(), context);
        let forgotten = forgotten.map_err(|error| {
            let mut failure = failed(&name.into(), &error);
            failure.message = format!("cannot log out of `{}`", visible(name));
            failure
        })?;
        let printer = &context.printer;
        let shown = paint(style::NAME, visible(name));
        if forgotten {
            let out = paint(style::GOOD, "logged out");
            printer.note(format!("{shown} is {out}"));
        } else {
            printer.note(format!("{shown} was not logged in"));
        }
        if printer.json {
            printer.json(&json!({"name": name, "loggedIn": false, "changed": forgotten}))?;
        }
        Ok(Exit::Done)
    })
}

//! Changes and logins that commands make, written to the audit log.

use switchboard::audit::{self, AuditSettings, What};
use switchboard::names::ServerName;
use switchboard_config::text::visible;
use switchboard_store::SqliteStore;

use crate::context::Context;
use crate::session;

/// Writes down that something of the configuration was changed.
pub(crate) fn changed(event: &'static str, about: String, context: &Context) {
    record(What::Change { event, about }, context);
}

/// Writes down a login or its end, and whether it succeeded.
pub(crate) fn login(event: &'static str, server: &ServerName, succeeded: bool, context: &Context) {
    let server = server.clone();
    let what = What::Login {
        server,
        event,
        succeeded,
    };
    record(what, context);
}

/// A log that cannot be written is told of: whoever relies on it must know.
fn record(what: What, context: &Context) {
    let store = SqliteStore::new(session::store_file(context));
    let settings = AuditSettings::from(&context.settings());
    if let Err(error) = audit::record_blocking(&store, settings, "cli", what) {
        let message = format!(
            "this is not in the audit log: {}",
            visible(&error.to_string())
        );
        context.printer.warning(message, error.hint());
    }
}

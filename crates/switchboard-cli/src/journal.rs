//! Records configuration changes and logins made by commands in the audit log.

use switchboard::ServerName;
use switchboard::internal::audit;
use switchboard::internal::audit::{AuditSettings, What};
use switchboard_config::text::visible;
use switchboard_store::SqliteStore;

use crate::context::Context;
use crate::session;

/// Records a configuration change.
pub(crate) fn changed(event: &'static str, about: String, context: &Context) {
    record(What::Change { event, about }, context);
}

/// Records a login or logout and whether it succeeded.
pub(crate) fn login(event: &'static str, server: &ServerName, succeeded: bool, context: &Context) {
    let server = server.clone();
    let what = What::Login {
        server,
        event,
        succeeded,
    };
    record(what, context);
}

/// Warns if the entry cannot be written: users rely on the log being complete.
fn record(what: What, context: &Context) {
    let store = SqliteStore::new(session::store_file(context));
    let settings = AuditSettings::from(&context.settings());
    if let Err(error) = audit::record_blocking(&store, settings, "cli", what) {
        let message = format!(
            "not recorded in the audit log: {}",
            visible(&error.to_string())
        );
        context.printer.warning(message, error.hint());
    }
}

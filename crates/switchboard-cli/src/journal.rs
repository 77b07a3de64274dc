//! Changes that commands make, written to the audit log.

use switchboard::audit::{self, AuditSettings, What};
use switchboard_config::text::visible;
use switchboard_store::SqliteStore;

use crate::context::Context;
use crate::session;

/// Writes down that something of the configuration was changed. A log that cannot be written is told of: whoever
/// relies on it must know.
pub(crate) fn changed(event: &'static str, about: String, context: &Context) {
    let store = SqliteStore::new(session::store_file(context));
    let settings = AuditSettings::from(&context.settings());
    let what = What::Change { event, about };
    if let Err(error) = audit::record_blocking(&store, settings, "cli", what) {
        let message = format!(
            "the change is not in the audit log: {}",
            visible(&error.to_string())
        );
        context.printer.warning(message, error.hint());
    }
}

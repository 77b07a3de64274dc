//! Recognizes an entry that would start this program as one of its own servers.

use std::path::Path;

use switchboard_config::entry::ServerEntry;
use switchboard_config::own_program::{OwnCommand, own_command};

use crate::places::CONFIG_DIR;

/// The command of Switchboard that an entry starts, if that passes on the servers of the same configuration. An entry with
/// a configuration folder of its own is another Switchboard.
pub(crate) fn own_gateway(entry: &ServerEntry) -> Option<OwnCommand> {
    let command = entry.command.as_deref()?;
    let path = Path::new(command);
    let is_gateway = |program| {
        let own = own_command(command, &entry.args, program);
        own.filter(|own| own.passes_servers_on())
    };
    // Most entries have other arguments, so that no path is looked up for them.
    is_gateway(Some(path))?;
    let mut set = entry.env.iter();
    if set.any(|(name, _)| name == CONFIG_DIR) {
        return None;
    }
    let real = path.is_absolute().then(|| path.canonicalize().ok());
    let program = std::env::current_exe().and_then(|program| program.canonicalize());
    let is_this = real
        .flatten()
        .is_some_and(|real| program.ok() == Some(real));
    is_gateway(is_this.then_some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gateway_to_the_same_configuration_is_refused() {
        let program = std::env::current_exe().unwrap().canonicalize().unwrap();
        let program = program.to_str().unwrap();
        for (command, args, variable, expected) in [
            ("switchboard", "connect", "OTHER", Some(OwnCommand::Connect)),
            ("switchboard", "gateway", "OTHER", Some(OwnCommand::Gateway)),
            (program, "connect", "OTHER", Some(OwnCommand::Connect)),
            ("switchboard", "connect", CONFIG_DIR, None),
            ("switchboard", "serve", "OTHER", None),
            ("/bin/sh", "connect", "OTHER", None),
        ] {
            let entry = ServerEntry {
                command: Some(command.to_owned()),
                args: vec![args.to_owned()],
                env: vec![(variable.to_owned(), "x".into())],
                ..ServerEntry::default()
            };
            assert_eq!(own_gateway(&entry), expected, "{command} {args}");
        }
    }
}

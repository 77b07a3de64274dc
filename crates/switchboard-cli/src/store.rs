//! Writes configuration files, trust decisions and state files, always locked and atomic.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use switchboard_config::edit::{self, Edit, EditError, EditErrorKind, NewRule};
use switchboard_config::scope::Scope;
use switchboard_config::text::visible;
use switchboard_config::trust::Decisions;
use switchboard_config::write::{Access, Update, WriteError, WriteErrorKind};

use crate::context::{Context, unreadable_decisions};
use crate::error::Failure;
use crate::exit::Exit;
use crate::journal;
use crate::local_file::Target;

/// Edits the text of a configuration file. The text of a missing file is empty.
pub(crate) fn edit(
    target: &Target,
    context: &Context,
    change: impl FnOnce(&str) -> Result<String, Failure>,
) -> Result<(), Failure> {
    let in_project = matches!(target.scope, Scope::Local | Scope::Project)
        && target.path.starts_with(&context.project);
    if in_project {
        stays_inside(target, &context.project)?;
    }
    let access = if target.scope == Scope::Project {
        Access::Shared
    } else {
        Access::Private
    };
    let locks = locks(&context.environment.state);
    Update::new(&target.path, &locks, access)
        .run(|text| change(text.unwrap_or_default()).map(Some))
        .map_err(failure)?;
    journal::changed("edit", target.path.display().to_string(), context);
    Ok(())
}

/// Adds a permission rule to a user file or the project's local file.
pub(crate) fn add_rule(target: &Target, context: &Context, rule: &NewRule) -> Result<(), Failure> {
    if target.scope == Scope::Local && target.path.starts_with(&context.project) {
        stays_inside(target, &context.project)?;
    }
    let locks = locks(&context.environment.state);
    Update::new(&target.path, &locks, Access::Private)
        .run(|text| with_rule(text.unwrap_or_default(), target, rule).map(Some))
        .map(drop)
        .map_err(failure)
}

/// Adds a permission rule to the text of a configuration file.
pub(crate) fn with_rule(text: &str, target: &Target, rule: &NewRule) -> Result<String, Failure> {
    edit::add_rule(text, target.format, rule).map_err(|error| refused(target, &error))
}

pub(crate) fn apply(text: &str, target: &Target, change: &Edit<'_>) -> Result<String, Failure> {
    edit::apply(text, target.format, change).map_err(|error| refused(target, &error))
}

/// Renames a key in the text of a configuration file.
pub(crate) fn rename(
    text: &str,
    target: &Target,
    path: &[&str],
    name: &str,
) -> Result<String, Failure> {
    edit::rename(text, target.format, path, name).map_err(|error| refused(target, &error))
}

/// Removes the rules of a pattern from the text of a configuration file; `None` if it has none.
pub(crate) fn remove_rule(
    text: &str,
    target: &Target,
    tool: &str,
) -> Result<Option<String>, Failure> {
    match edit::remove_rule(text, target.format, tool) {
        Ok(changed) => Ok(Some(changed)),
        Err(error) if error.kind == EditErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused(target, &error)),
    }
}

fn refused(target: &Target, error: &EditError) -> Failure {
    Failure::new(
        Exit::Configuration,
        format!("{} was not changed", target.shown()),
    )
    .because(visible(&error.to_string()))
    .hint(error.hint())
}

/// Changes the trust decisions. The second argument of `change` is the Unix time in seconds.
pub(crate) fn change_decisions<T>(
    context: &Context,
    change: impl FnOnce(&mut Decisions, u64) -> T,
) -> Result<T, Failure> {
    let path = context.trust_file();
    if context.project.to_str().is_none() {
        let shown = context.project.display().to_string();
        return Err(
            Failure::failed(format!("cannot store approvals for {}", visible(&shown)))
                .because("the folder's path is not UTF-8")
                .hint("rename the folder, or trust it for one run with --trust-project"),
        );
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let (mut outcome, mut is_changed) = (None, false);
    let locks = locks(&context.environment.state);
    Update::new(&path, &locks, Access::Private)
        .run(|text| {
            let unusable =
                |error: &dyn std::error::Error| unreadable_decisions(&path, &error.to_string());
            let before =
                Decisions::parse(text.unwrap_or_default()).map_err(|error| unusable(&error))?;
            let mut decisions = before.clone();
            outcome = Some(change(&mut decisions, now));
            if decisions == before {
                return Ok(None);
            }
            is_changed = true;
            decisions
                .to_text()
                .map(Some)
                .map_err(|error| unusable(&error))
        })
        .map_err(failure)?;
    if is_changed {
        journal::changed("trust", context.project.display().to_string(), context);
    }
    outcome.ok_or_else(|| Failure::failed("the trust decisions were not changed"))
}

/// Replaces a file in the state folder.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let locks = locks(path.parent().unwrap_or(Path::new(".")));
    Update::new(path, &locks, Access::Private)
        .run(|_| Ok::<_, Failure>(Some(text.to_owned())))
        .map(drop)
        .map_err(failure)
}

fn locks(state: &Path) -> PathBuf {
    state.join("locks")
}

/// Refuses to write through a link that leads out of the project: a repository could redirect the write.
fn stays_inside(target: &Target, project: &Path) -> Result<(), Failure> {
    let leads = target.path.canonicalize();
    let inside = match &leads {
        Ok(real) => real.starts_with(project),
        Err(_) => target.path.symlink_metadata().is_err(),
    };
    if inside {
        return Ok(());
    }
    let message = format!("{} was not changed", target.shown());
    Err(Failure::new(Exit::Denied, message)
        .because("it is a link that is broken or leads out of the project")
        .hint("replace the link with a file"))
}

fn failure(error: WriteError<Failure>) -> Failure {
    let hint = error.hint();
    let shown = visible(&error.path.display().to_string()).into_owned();
    match error.kind {
        WriteErrorKind::Change(failure) => failure,
        kind => {
            let failure = Failure::failed(format!("could not write {shown}"))
                .because(visible(&kind.to_string()));
            match hint {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        }
    }
}

//! The roots (workspace folders) announced to each server.
//!
//! Decides per server, and wraps the handler so that both protocol eras see the same roots. A server may use announced
//! roots in place of the folders in its own arguments, as `server-filesystem` does. So unless its entry configures
//! roots, a server whose arguments or variables name folders gets none.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::value::RawValue;
use switchboard_config::entry::{RootsEntry, ServerEntry};
use switchboard_protocol::types::capabilities::{ClientCapabilities, RootsCapability};
use switchboard_protocol::types::elicitation::{ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::roots::{ListRootsResult, Root};
use switchboard_protocol::types::sampling::{CreateMessageRequestParams, CreateMessageResult};
use switchboard_protocol::{ErrorCode, ErrorObject};
use url::Url;

use crate::handler::{ClientHandler, QuestionLimits};
use crate::names::ServerName;

/// The roots of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Roots {
    /// The roots that the host's [`ClientHandler`] returns to every server.
    #[default]
    OfHandler,
    /// No roots: the capability is not declared, and `roots/list` returns an error.
    None,
    /// These folders, regardless of the handler. Absolute paths.
    Folders(Vec<PathBuf>),
}

impl Roots {
    /// The roots for an entry. `workspace` is the project folder, `cwd` the folder that the server starts in. Reads
    /// file metadata.
    pub fn of(entry: &ServerEntry, workspace: &Path, cwd: &Path) -> Self {
        match &entry.roots {
            Some(RootsEntry::Workspace) => Self::Folders(vec![workspace.to_owned()]),
            Some(RootsEntry::None) => Self::None,
            Some(RootsEntry::Folders(folders)) => {
                let folders = folders.iter().map(|folder| workspace.join(folder));
                Self::Folders(folders.collect())
            }
            None if names_folders(entry, cwd) => Self::None,
            None => Self::OfHandler,
        }
    }

    /// Wraps the handler to return these roots.
    pub(crate) fn handler(&self, handler: &Arc<dyn ClientHandler>) -> Arc<dyn ClientHandler> {
        match self {
            Self::OfHandler => Arc::clone(handler),
            Self::None | Self::Folders(_) => Arc::new(WithRoots {
                handler: Arc::clone(handler),
                roots: self.clone(),
            }),
        }
    }
}

/// Whether the arguments or variables of an entry appear to name folders. Errs on the side of yes: a missing root costs
/// a server less than losing its configured folders.
fn names_folders(entry: &ServerEntry, cwd: &Path) -> bool {
    let in_args = entry.args.iter().any(|arg| argument_names(arg, cwd));
    let in_env = entry.env.iter().any(|(name, value)| {
        // The search path for programs grants no folder.
        name != "PATH" && value_names(value.expose(), cwd)
    });
    in_args || in_env
}

fn argument_names(argument: &str, cwd: &Path) -> bool {
    let value = match argument.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        _ => argument,
    };
    // A complete shell command line may be a single argument.
    value_names(value, cwd) || value.split_whitespace().any(|word| value_names(word, cwd))
}

/// Whether a text is a folder or a list of folders.
fn value_names(text: &str, cwd: &Path) -> bool {
    if text.starts_with("file://") {
        return true;
    }
    let is_address = text.contains("://");
    !is_address
        && (is_folder(text, cwd)
            || text
                .split([',', ';', ':', '='])
                .any(|part| is_folder(part.trim(), cwd)))
}

fn is_folder(text: &str, cwd: &Path) -> bool {
    if text.is_empty() || text.starts_with('-') {
        return false;
    }
    // The program may expand `~` itself.
    if text == "~" || text.starts_with("~/") {
        return true;
    }
    let path = Path::new(text);
    match cwd.join(path).metadata() {
        Ok(found) => found.is_dir(),
        // A folder in a container, or one that the server creates. A relative name that does not exist is just a name.
        Err(_) => path.is_absolute() && path.extension().is_none(),
    }
}

/// A handler whose roots are replaced.
struct WithRoots {
    handler: Arc<dyn ClientHandler>,
    roots: Roots,
}

impl ClientHandler for WithRoots {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        let declared = matches!(self.roots, Roots::Folders(_));
        ClientCapabilities {
            roots: declared.then(RootsCapability::default),
            ..self.handler.capabilities()
        }
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        self.handler.elicit(server, params)
    }

    fn create_message<'a>(
        &'a self,
        server: &'a ServerName,
        params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        self.handler.create_message(server, params)
    }

    fn list_roots<'a>(
        &'a self,
        _: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        let answer = match &self.roots {
            Roots::Folders(folders) => {
                let roots = folders.iter().filter_map(|folder| root(folder));
                Ok(ListRootsResult::new(roots.collect()))
            }
            // The server could take an empty list as an instruction to serve nothing.
            Roots::None | Roots::OfHandler => Err(ErrorObject::new(
                ErrorCode::METHOD_NOT_FOUND,
                "this client does not offer roots to this server",
            )),
        };
        ready(answer).boxed()
    }

    fn other<'a>(
        &'a self,
        server: &'a ServerName,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorObject<'static>>> {
        self.handler.other(server, method, params)
    }

    fn notified(&self, server: &ServerName, method: &str, params: Option<&RawValue>) {
        self.handler.notified(server, method, params);
    }

    fn flooded(&self, server: &ServerName, limits: QuestionLimits) {
        self.handler.flooded(server, limits);
    }
}

/// Converts a folder to a root; `None` if it has no file URL, for example a relative path.
fn root(folder: &Path) -> Option<Root<'static>> {
    let address = Url::from_directory_path(folder).ok()?;
    let name = folder.file_name().map(OsStr::to_string_lossy);
    Some(Root {
        name: name.map(|name| name.into_owned().into()),
        ..Root::new(String::from(address).into())
    })
}

#[cfg(test)]
mod tests {
    use switchboard_config::secret::Secret;

    use super::*;

    fn args(args: &[&str]) -> ServerEntry {
        ServerEntry {
            command: Some("npx".into()),
            args: args.iter().map(ToString::to_string).collect(),
            ..ServerEntry::default()
        }
    }

    #[test]
    fn an_entry_that_names_folders_is_not_told_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let cwd = folder.path();
        std::fs::create_dir(cwd.join("data")).unwrap();
        std::fs::write(cwd.join("server.js"), "").unwrap();
        std::fs::write(cwd.join("run"), "").unwrap();
        let here = cwd.to_str().unwrap();
        let package = "@modelcontextprotocol/server-filesystem";
        for named in [
            &["-y", package, "/tmp"][..],
            &[package, "data"],
            &[package, "."],
            &[package, "~/notes"],
            &["--root=/tmp"],
            &["--root", "/not/there/yet"],
            &["-v", "/tmp:/projects", "mcp/filesystem", "/projects"],
            &["--mount", "type=bind,src=/tmp,dst=/projects"],
            &["-c", "exec server-filesystem /tmp"],
            &["file:///tmp"],
            &["--dirs=a,data"],
            &[here],
        ] {
            assert_eq!(
                Roots::of(&args(named), cwd, cwd),
                Roots::None,
                "{named:?} names a folder"
            );
        }
        let script = cwd.join("server.js");
        for other in [
            &["-y", package][..],
            &[script.to_str().unwrap()],
            &["server.js", "run"],
            &["-m", "server"],
            &["--url", "https://example.com/tmp"],
            &["--config=/etc/missing.json"],
            &[],
        ] {
            assert_eq!(
                Roots::of(&args(other), cwd, cwd),
                Roots::OfHandler,
                "{other:?} names no folder"
            );
        }
        let mut with_env = args(&[package]);
        with_env.env = vec![("PATH".into(), Secret::new("/usr/bin"))];
        assert_eq!(Roots::of(&with_env, cwd, cwd), Roots::OfHandler);
        with_env.env = vec![("ALLOWED".into(), Secret::new(format!("/x.txt:{here}")))];
        assert_eq!(Roots::of(&with_env, cwd, cwd), Roots::None);
    }

    #[test]
    fn what_an_entry_says_is_told_whatever_its_arguments_are() {
        let workspace = Path::new("/project");
        let mut entry = args(&["/tmp"]);
        for (configured, expected) in [
            (
                RootsEntry::Workspace,
                Roots::Folders(vec!["/project".into()]),
            ),
            (RootsEntry::None, Roots::None),
            (
                RootsEntry::Folders(vec!["docs".into(), "/srv".into()]),
                Roots::Folders(vec!["/project/docs".into(), "/srv".into()]),
            ),
        ] {
            entry.roots = Some(configured);
            assert_eq!(Roots::of(&entry, workspace, workspace), expected);
        }
    }

    /// Counts what reaches it besides the requests of the specification.
    #[derive(Default)]
    struct Counting(std::sync::atomic::AtomicUsize);

    impl Counting {
        fn count(&self) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    impl ClientHandler for Counting {
        fn other<'a>(
            &'a self,
            _: &'a ServerName,
            _: &'a str,
            params: Option<&'a RawValue>,
        ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorObject<'static>>> {
            self.count();
            ready(Ok(params.unwrap().to_owned())).boxed()
        }

        fn notified(&self, _: &ServerName, _: &str, _: Option<&RawValue>) {
            self.count();
        }

        fn flooded(&self, _: &ServerName, _: QuestionLimits) {
            self.count();
        }
    }

    #[tokio::test]
    async fn only_the_roots_of_a_handler_are_replaced() {
        let counting = Arc::new(Counting::default());
        let handler: Arc<dyn ClientHandler> = Arc::clone(&counting) as _;
        let handler = Roots::None.handler(&handler);
        let (server, params) = (
            "lab".into(),
            RawValue::from_string("{}".to_owned()).unwrap(),
        );
        let answer = handler.other(&server, "ext/ask", Some(&params)).await;
        assert_eq!(answer.unwrap().get(), "{}");
        handler.notified(&server, "ext/note", None);
        handler.flooded(&server, QuestionLimits::default());
        assert_eq!(counting.0.load(std::sync::atomic::Ordering::Relaxed), 3);
        assert!(handler.list_roots(&server).await.is_err());
    }
}

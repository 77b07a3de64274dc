//! The embedded server `workspace`, used if no server is configured.
//!
//! Read-only and confined to one folder: tools to find, search and read files, the files as resources, one prompt. It
//! also serves as an example of an in-process server: this file handles MCP, `definitions` has the definitions, `root`
//! the folder, and `search` the tools.

mod definitions;
mod root;
mod search;

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use switchboard_protocol::types::RawObject;
use switchboard_protocol::types::completion::{
    CompleteRequestParams, Completion, CompletionReference,
};
use switchboard_protocol::types::content::{EmbeddedResource, Role};
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::prompt::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptMessage,
};
use switchboard_protocol::types::resource::{
    BlobResourceContents, ListResourcesResult, ReadResourceRequestParams, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate, TextResourceContents,
};
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool};
use tokio::sync::Semaphore;

use crate::files::FileError;
use crate::permissions::SecretPlaces;
use crate::service::{
    Cancellation, Failure, Features, Reply, RequestContext, Service, error_result, invalid_params,
    text_block, unknown_prompt, unknown_tool,
};
use root::{Root, WorkspaceError};

pub(crate) use definitions::tools;
pub use definitions::{NAME, catalog};

const PAGE: usize = 1000;

/// Requests that access files concurrently; others wait.
const WORKERS: usize = 4;

/// The embedded server.
#[derive(Debug)]
pub struct Workspace {
    root: Arc<Root>,
    turns: Arc<Semaphore>,
}

impl Workspace {
    /// Serves this folder, which must exist.
    pub fn new(folder: &Path) -> std::io::Result<Self> {
        Ok(Self {
            root: Arc::new(Root::new(folder)?),
            turns: Arc::new(Semaphore::new(WORKERS)),
        })
    }

    /// Serves this folder, omitting secret paths from lists and searches.
    pub fn passing_over(folder: &Path, secrets: SecretPlaces) -> std::io::Result<Self> {
        let mut root = Root::new(folder)?;
        root.secrets = secrets;
        Ok(Self {
            root: Arc::new(root),
            turns: Arc::new(Semaphore::new(WORKERS)),
        })
    }

    /// Runs blocking file access on another thread. The closure has to check the [`Cancellation`] regularly.
    async fn work<T: Send + 'static>(
        &self,
        context: &RequestContext,
        work: impl FnOnce(&Root, &Cancellation) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let (root, cancellation) = (Arc::clone(&self.root), context.cancellation());
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work is done, even if the request was cancelled.
            let _turn = turn;
            work(&root, &cancellation)
        });
        done.await
            .unwrap_or_else(|_| Err(WorkspaceError::of("", &FileError::Cancelled)))
    }

    /// Decodes the arguments of a tool and runs it.
    async fn tool<A: DeserializeOwned + Send + 'static>(
        &self,
        arguments: Option<RawObject<'_>>,
        context: &RequestContext,
        run: fn(&A, &Root, &Cancellation) -> Result<CallToolResult<'static>, WorkspaceError>,
    ) -> CallToolResult<'static> {
        let arguments = match arguments.unwrap_or_default().deserialize::<A>() {
            Ok(arguments) => arguments,
            Err(error) => return error_result(format!("invalid arguments: {error}")),
        };
        self.work(context, move |root, cancellation| {
            run(&arguments, root, cancellation)
        })
        .await
        .unwrap_or_else(|error| error_result(error.to_string()))
    }

    async fn contents(
        &self,
        path: String,
        context: &RequestContext,
    ) -> Result<ResourceContents<'static>, WorkspaceError> {
        let bytes = self.work(context, {
            let path = path.clone();
            move |root, _| root.read(&path)
        });
        let uri = self.root.uri_of(&path);
        Ok(match String::from_utf8(bytes.await?) {
            Ok(text) => {
                let mut contents = TextResourceContents::new(uri.into(), text.into());
                contents.mime_type = Some("text/plain".into());
                ResourceContents::Text(contents)
            }
            Err(binary) => {
                let blob = STANDARD.encode(binary.as_bytes());
                let mut contents = BlobResourceContents::new(uri.into(), blob.into());
                contents.mime_type = Some("application/octet-stream".into());
                ResourceContents::Blob(contents)
            }
        })
    }
}

impl Service for Workspace {
    fn identity(&self) -> Implementation<'static> {
        let mut identity = Implementation::new(NAME.into());
        identity.version = Some(env!("CARGO_PKG_VERSION").into());
        identity.title = Some("Workspace".into());
        identity
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            prompts: true,
            resources: true,
            completions: true,
            logging: false,
        }
    }

    fn instructions(&self) -> Option<std::borrow::Cow<'static, str>> {
        Some(definitions::INSTRUCTIONS.into())
    }

    fn tools(&self) -> Vec<Tool<'static>> {
        tools()
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            let arguments = call.arguments;
            Ok(match &*call.name {
                "glob" => self.tool(arguments, context, search::glob).await,
                "grep" => self.tool(arguments, context, search::grep).await,
                "read_file" => self.tool(arguments, context, search::read_file).await,
                other => return Err(unknown_tool(other)),
            })
        })
    }

    fn resources<'a>(
        &'a self,
        cursor: Option<&'a str>,
        context: &'a RequestContext,
    ) -> Reply<'a, ListResourcesResult<'static>> {
        Box::pin(async move {
            // A cursor is the last path of the previous page, so it stays valid when files change.
            let after = cursor.map(str::to_owned);
            let files = self.work(context, move |root, cancellation| {
                let (mut files, _) = root.files(None, cancellation, |path| {
                    after.as_deref().is_none_or(|after| path > after)
                })?;
                let more = files.len() > PAGE;
                files.truncate(PAGE);
                Ok((files, more))
            });
            let (files, more) = files.await?;
            let mut page: ListResourcesResult<'static> = ListResourcesResult::new(
                files
                    .iter()
                    .map(|path| Resource::new(self.root.uri_of(path).into(), path.clone().into()))
                    .collect(),
            );
            page.next_cursor = files
                .last()
                .filter(|_| more)
                .map(|last| last.clone().into());
            Ok(page)
        })
    }

    fn resource_templates(&self) -> Vec<ResourceTemplate<'static>> {
        vec![definitions::template(&self.root.uri_of(""))]
    }

    fn read_resource<'a>(
        &'a self,
        read: ReadResourceRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, ReadResourceResult<'static>> {
        Box::pin(async move {
            let Some(path) = self.root.path_of(&read.uri) else {
                return Err(context.resource_not_found(&read.uri));
            };
            let contents = self.contents(path, context).await;
            let contents = contents.map_err(|error| {
                if error.is_missing {
                    context.resource_not_found(&read.uri)
                } else {
                    error.into()
                }
            })?;
            Ok(ReadResourceResult::new(vec![contents].into()))
        })
    }

    fn prompts(&self) -> Vec<Prompt<'static>> {
        vec![definitions::prompt()]
    }

    fn get_prompt<'a>(
        &'a self,
        get: GetPromptRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, GetPromptResult<'static>> {
        Box::pin(async move {
            if get.name != definitions::PROMPT {
                return Err(unknown_prompt(&get.name));
            }
            let Some(path) = get.arguments.get("path") else {
                return Err(invalid_params("the argument `path` is missing"));
            };
            let contents = self.contents(path.clone().into_owned(), context).await?;
            let question = text_block(format!("Explain what the file {path} does, and how."));
            let messages = [question, EmbeddedResource::new(contents).into()];
            Ok(GetPromptResult::new(
                messages
                    .into_iter()
                    .map(|content| PromptMessage::new(Role::User, content))
                    .collect(),
            ))
        })
    }

    fn complete<'a>(
        &'a self,
        typed: CompleteRequestParams<'a>,
        context: &'a RequestContext,
    ) -> Reply<'a, Completion<'static>> {
        Box::pin(async move {
            // The prompt and the template have one argument each, a file.
            let known = match &typed.reference {
                CompletionReference::Prompt(prompt) => prompt.name == definitions::PROMPT,
                CompletionReference::Resource(_) => true,
                CompletionReference::Unknown(_) => false,
            };
            if !known || typed.argument.name != "path" {
                return Ok(Completion::new(Vec::new().into()));
            }
            let start = typed.argument.value.into_owned();
            let files = self.work(context, move |root, cancellation| {
                root.files(None, cancellation, |path| path.starts_with(&start))
            });
            let (files, _) = files.await?;
            Ok(Completion::new(files.into_iter().map(Into::into).collect()))
        })
    }
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        invalid_params(error.to_string())
    }
}

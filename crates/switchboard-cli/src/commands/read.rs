//! `switchboard read`: prints one resource; unchanged to a pipe or file, sanitized to a terminal.

use base64::Engine as _;
use switchboard::internal::catalog::text::neutralise;
use switchboard::{ContentError, ListKind, RequestError, ServerName};
use switchboard_config::text::visible;
use switchboard_protocol::types::decode;
use switchboard_protocol::types::resource::{ReadResourceResult, Resource, ResourceContents};

use super::call::result::{BASE64, write_file};
use super::content::{self, list_all};
use super::status::size;
use crate::cli::ReadArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::servers::Servers;
use crate::session::{self, CommandHost};

pub(crate) fn run(arguments: &ReadArguments, context: &Context) -> Outcome {
    let servers = Servers::load(context, Some(&arguments.server))?;
    session::run(context, &servers, async |session| {
        session.start().await;
        session.need(&arguments.server)?;
        let server = ServerName::from(arguments.server.as_str());
        let result = match session.host.read_resource(&server, &arguments.uri).await {
            Ok(result) => result,
            Err(error) => return Err(unknown_or(&error, arguments, session).await),
        };
        if context.printer.json && arguments.output.is_none() {
            context.printer.json_text(result.as_str())?;
            return Ok(Exit::Done);
        }
        let read: ReadResourceResult<'_> = decode(result.raw())
            .map_err(|error| Failure::failed("cannot decode the resource").because(error))?;
        let contents = Contents::of(&read)?;
        contents.show(arguments, context)?;
        if context.printer.json {
            context.printer.json_text(result.as_str())?;
        }
        Ok(Exit::Done)
    })
}

/// A resource's parts, concatenated.
#[derive(Debug, Default)]
struct Contents {
    bytes: Vec<u8>,
    /// The MIME type of the first binary part.
    binary: Option<String>,
}

impl Contents {
    fn of(read: &ReadResourceResult<'_>) -> Result<Self, Failure> {
        let mut contents = Self::default();
        for part in &read.contents.items {
            match part {
                ResourceContents::Text(part) => {
                    contents
                        .bytes
                        .extend_from_slice(part.text.decode().as_bytes());
                }
                ResourceContents::Blob(part) => {
                    // Some encoders break base64 into lines.
                    let compact: String = part.blob.decode().split_ascii_whitespace().collect();
                    let bytes = BASE64.decode(compact).map_err(|error| {
                        Failure::failed("the server sent invalid base64").because(error)
                    })?;
                    contents.bytes.extend_from_slice(&bytes);
                    let mime_type = part.mime_type.as_deref();
                    let mime_type = mime_type.unwrap_or("application/octet-stream");
                    let shown = || visible(mime_type).into_owned();
                    contents.binary.get_or_insert_with(shown);
                }
            }
        }
        if let Some(odd) = read.contents.set_aside.first() {
            let message = "the server sent an unknown kind of content";
            let start: String = odd.raw.get().chars().take(80).collect();
            return Err(Failure::failed(message).because(visible(&start)));
        }
        Ok(contents)
    }

    fn show(&self, arguments: &ReadArguments, context: &Context) -> Result<(), Failure> {
        let bytes = size(self.bytes.len() as u64);
        if let Some(file) = &arguments.output {
            let path = context.cwd.join(file);
            write_file(&path, &self.bytes)?;
            let shown = path.display().to_string();
            context
                .printer
                .note(format!("{bytes} written to {}", visible(&shown)));
            return Ok(());
        }
        if !Printer::is_on_terminal() {
            return Printer::raw(&self.bytes);
        }
        if let Some(mime_type) = &self.binary {
            let message = format!("the resource is binary ({mime_type}, {bytes})");
            return Err(Failure::usage(message)
                .because("binary output could corrupt the terminal")
                .hint("save it with --output FILE, or pipe it to another program"));
        }
        let text = String::from_utf8_lossy(&self.bytes);
        context.printer.data(neutralise(&text))
    }
}

/// The failure to read, with a suggestion if the server does not list the resource.
async fn unknown_or(
    error: &ContentError,
    arguments: &ReadArguments,
    session: &CommandHost<'_>,
) -> Failure {
    let failure = content::failure(error, session);
    let ContentError::Request {
        error: RequestError::Rejected(_),
        ..
    } = error
    else {
        return failure;
    };
    let Ok(lists) = list_all(session, ListKind::Resources, Some(&arguments.server)).await else {
        return failure;
    };
    let items = lists.iter().flat_map(content::Listed::items);
    let resources: Vec<Resource<'_>> = items.filter_map(|item| decode(item).ok()).collect();
    let known = resources.iter().map(|resource| &*resource.uri);
    if known.clone().any(|uri| uri == arguments.uri) {
        return failure;
    }
    let mut unknown = content::unknown(
        "resource",
        &arguments.server,
        &arguments.uri,
        known,
        "resources",
    );
    unknown.causes = failure.causes;
    unknown
}

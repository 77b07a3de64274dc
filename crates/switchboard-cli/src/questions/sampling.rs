//! Sampling: servers may query the chat's model, with the user's consent and within a budget.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anstyle::Style;
use futures_util::StreamExt as _;
use switchboard::permissions::{ConsentView, Screen};
use switchboard::{ServerName, declined};
use switchboard_agent::message::{Image, Message, Part, Role};
use switchboard_agent::provider::{Chunk, ModelReply, Provider, Request, Stop};
use switchboard_protocol::types::content::{ContentBlock, Role as WireRole};
use switchboard_protocol::types::sampling::{
    CreateMessageRequestParams, CreateMessageResult, SamplingMessage,
};
use switchboard_protocol::types::wire::OneOrMany;
use switchboard_protocol::{ErrorCode, ErrorObject};

use super::safe;
use crate::dialog::{Choice, Chosen, Dialog};
use crate::live;
use crate::printer::{Printer, style};
use crate::screen;

/// Tokens that one server may use, input and output, per run of the program.
const BUDGET: u64 = 200_000;
/// Rows needed besides the request.
const ROWS_AROUND: usize = 8;

/// The model for sampling requests, once one is set.
#[derive(Default)]
pub(crate) struct SamplingModel {
    provider: Mutex<Option<Arc<dyn Provider>>>,
    /// Servers allowed until the program ends.
    granted: Mutex<HashSet<ServerName>>,
    /// Tokens used by each server.
    used: Mutex<HashMap<ServerName, u64>>,
}

impl SamplingModel {
    /// Makes a model available to servers.
    pub(crate) fn set(&self, provider: &Arc<dyn Provider>) {
        *lock(&self.provider) = Some(Arc::clone(provider));
    }

    pub(super) fn is_there(&self) -> bool {
        lock(&self.provider).is_some()
    }

    /// Asks the user for consent, then queries the model.
    pub(super) async fn ask(
        &self,
        server: &ServerName,
        params: &CreateMessageRequestParams<'_>,
        printer: &Printer,
    ) -> Result<CreateMessageResult<'static>, ErrorObject<'static>> {
        let provider = lock(&self.provider).clone();
        let provider = provider.ok_or_else(|| declined("no model available"))?;
        let wrong = |message: &'static str| ErrorObject::new(ErrorCode::INVALID_PARAMS, message);
        if !params.tools.items.is_empty() {
            return Err(wrong("this client does not support tools in sampling"));
        }
        let messages = params.messages.items.iter().map(message);
        let messages: Option<Vec<Message>> = messages.collect();
        let messages = messages.ok_or_else(|| wrong("only text and images are supported"))?;
        if messages.is_empty() {
            return Err(wrong("the messages are empty"));
        }
        if lock(&self.used)
            .get(server)
            .is_some_and(|used| *used >= BUDGET)
        {
            return Err(declined("this server has used up its token budget"));
        }
        let most = params.max_tokens.as_u64().unwrap_or(1).max(1);
        let most = most.min(provider.model().max_output);
        let is_granted = lock(&self.granted).contains(server);
        let system = params
            .system_prompt
            .as_ref()
            .map(|text| text.decode().into_owned());
        if !is_granted {
            let asking = self.consent(server, system.as_deref(), &messages, most, printer);
            let allowed = live::unless_dismissed(asking).await.unwrap_or(Ok(false));
            if !allowed.unwrap_or(false) {
                return Err(declined("the user declined"));
            }
        }
        let answer = answer(&*provider, &system.unwrap_or_default(), &messages, most).await?;
        let usage = answer.usage.total();
        *lock(&self.used).entry(server.clone()).or_default() += usage;
        Ok(result(&answer, &provider.model().id))
    }

    /// Asks for consent. The complete request can be displayed, and must be before it can be approved.
    async fn consent(
        &self,
        server: &ServerName,
        system: Option<&str>,
        messages: &[Message],
        most: u64,
        printer: &Printer,
    ) -> io::Result<bool> {
        let name = safe(server.as_str());
        let title = format!("{name} wants to ask your model");
        let mut dialog = Dialog::open(&title, printer).await?;
        let view = view(system, messages);
        let mut is_shown = false;
        let mut is_said = false;
        loop {
            if dialog.is_panel() || !is_said {
                is_said = true;
                dialog.clear();
                is_shown |= say(&name, most, &view, &mut dialog);
            }
            let mut choices = Vec::new();
            if !is_shown {
                choices.push(Choice::new('v', "show all of it"));
            }
            choices.push(Choice::new('y', "once"));
            choices.push(Choice::new('s', "until this program ends"));
            choices.push(Choice::new('n', "no"));
            match dialog.choose(&choices, Some(choices.len() - 1)).await? {
                Chosen::Key('v') => {
                    for row in view.unfolded(screen::size().columns.saturating_sub(1)) {
                        printer.ask(format!("{row}\n"));
                    }
                    is_shown = true;
                }
                Chosen::Key('y' | 's') if !is_shown => {
                    let refusal = "part of the request is not shown: press v to see it first";
                    printer.warning(refusal, None);
                }
                Chosen::Key('s') => {
                    lock(&self.granted).insert(server.clone());
                    return Ok(true);
                }
                Chosen::Key('y') => return Ok(true),
                Chosen::Resized | Chosen::Back | Chosen::Forward => {}
                Chosen::Key(_) | Chosen::Left | Chosen::Other => return Ok(false),
            }
        }
    }
}

/// Says what the server wants to ask. Returns whether all of it is there.
fn say(name: &str, most: u64, view: &ConsentView, dialog: &mut Dialog<'_>) -> bool {
    let size = screen::size();
    let wants = format!(" wants to ask your model, for an answer of at most {most} tokens:");
    dialog.say(vec![
        (style::WARNING, "? ".to_owned()),
        (style::NAME, name.to_owned()),
        (Style::new(), wants),
    ]);
    let folded = view.folded(Screen {
        columns: size.columns.saturating_sub(1),
        rows: size.rows.saturating_sub(ROWS_AROUND),
    });
    folded.rows.iter().for_each(|row| dialog.say_text(row));
    folded.is_complete()
}

/// The request as shown to the user.
fn view(system: Option<&str>, messages: &[Message]) -> ConsentView {
    let turns = messages.iter().map(|message| {
        let role = match message.role {
            Role::Assistant => "model",
            Role::User => "user",
        };
        let parts = message.parts.iter().map(|part| match part {
            Part::Text { text } => text.clone(),
            Part::Image(image) => format!("[picture, {} bytes]", image.data.len() * 3 / 4),
            _ => "[other content]".to_owned(),
        });
        let text = parts.collect::<Vec<_>>().join("\n");
        serde_json::json!({ role: text })
    });
    let mut shown = serde_json::Map::new();
    if let Some(system) = system {
        shown.insert("system".to_owned(), system.into());
    }
    shown.insert("messages".to_owned(), turns.collect());
    let raw = serde_json::value::to_raw_value(&shown).ok();
    ConsentView::new("", None, raw.as_deref())
}

async fn answer(
    provider: &dyn Provider,
    system: &str,
    messages: &[Message],
    most: u64,
) -> Result<ModelReply, ErrorObject<'static>> {
    let failed = |message: String| ErrorObject::new(ErrorCode::INTERNAL_ERROR, message);
    let mut chunks = provider.ask(Request {
        system,
        tools: &[],
        messages,
        max_output_tokens: Some(most),
    });
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Ok(Chunk::End(answer)) => return Ok(answer),
            Ok(_) => {}
            Err(error) => return Err(failed(format!("the model returned no answer: {error}"))),
        }
    }
    Err(failed("the model returned no answer".to_owned()))
}

fn message(message: &SamplingMessage<'_>) -> Option<Message> {
    let parts = message.content.as_slice().iter().map(|block| match block {
        ContentBlock::Image(image) => Some(Part::Image(Image {
            mime_type: image.mime_type.clone().into_owned(),
            data: image.data.decode().into_owned(),
        })),
        block => {
            let text = block.as_text()?.decode().into_owned();
            Some(Part::Text { text })
        }
    });
    Some(Message {
        role: match message.role {
            WireRole::User => Role::User,
            WireRole::Assistant => Role::Assistant,
            WireRole::Other(_) => return None,
        },
        parts: parts.collect::<Option<_>>()?,
    })
}

fn result(answer: &ModelReply, model: &str) -> CreateMessageResult<'static> {
    let text = ContentBlock::text(answer.message.all_text());
    let stop = match answer.stop {
        Stop::Length | Stop::Window => "maxTokens",
        Stop::Refused => "refusal",
        _ => "endTurn",
    };
    CreateMessageResult {
        stop_reason: Some(stop.into()),
        ..CreateMessageResult::new(
            WireRole::Assistant,
            OneOrMany::One(text),
            model.to_owned().into(),
        )
    }
}

fn lock<T>(place: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

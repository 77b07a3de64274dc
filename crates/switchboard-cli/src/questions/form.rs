//! Elicitation forms on the terminal: prompts field by field, then asks for confirmation before sending.

use std::io;

use anstyle::Style;
use serde_json::{Map, Value};
use switchboard_protocol::types::elicitation::{
    ElicitAction, ElicitRequestFormParams, ElicitResult,
};
use switchboard_protocol::types::wire::{Raw, RawObject};

use super::entry::Entered;
use super::field::{Field, MAX_LISTED_CHOICES};
use super::{paragraph, safe};
use crate::dialog::{Choice, Chosen, Dialog};
use crate::live::Line;
use crate::printer::{Printer, paint, style};
use crate::screen;
use crate::terminal::fitted;

/// Forms with more fields are declined.
const MAX_FIELDS: usize = 50;

/// The user's response to a form.
enum Filled {
    Sent(Map<String, Value>),
    Declined,
    Left,
}

/// Shows a form and waits until the user submits, declines or cancels it.
pub(super) async fn fill_in(
    server: &str,
    params: &ElicitRequestFormParams<'_>,
    printer: &Printer,
) -> io::Result<ElicitResult<'static>> {
    let name = safe(server);
    let mut dialog = Dialog::open(&format!("{name} has a question"), printer).await?;
    dialog.say(vec![
        (style::WARNING, "? ".to_owned()),
        (style::NAME, name.clone()),
        (Style::new(), " asks:".to_owned()),
    ]);
    paragraph(&params.message, &mut dialog);
    let fields = match fields(params) {
        Ok(fields) => fields,
        Err(reason) => {
            printer.warning(format!("declined: {reason}"), None);
            return Ok(ElicitResult::new(ElicitAction::Decline));
        }
    };
    let filled = answers(&name, &fields, &mut dialog).await?;
    let is_panel = dialog.is_panel();
    drop(dialog);
    let report = |outcome: &str| {
        if is_panel {
            printer.note(paint(style::QUIET, format!("{outcome} {name}")));
        }
    };
    Ok(match filled {
        Filled::Sent(values) => {
            report(&summary(&fields, &values));
            accepted(&values)
        }
        Filled::Declined => {
            report("declined the question of");
            ElicitResult::new(ElicitAction::Decline)
        }
        Filled::Left => {
            report("left the question of");
            ElicitResult::new(ElicitAction::Cancel)
        }
    })
}

fn accepted(values: &Map<String, Value>) -> ElicitResult<'static> {
    let content = Raw::from_serialize(values).ok();
    let content = content.and_then(|raw| RawObject::try_from(raw).ok());
    ElicitResult {
        content,
        ..ElicitResult::new(ElicitAction::Accept)
    }
}

/// Converts the fields of a form; the error says why it cannot be filled in here.
fn fields(params: &ElicitRequestFormParams<'_>) -> Result<Vec<Field>, String> {
    let schema = &params.requested_schema;
    let is_required = |name: &str| schema.required.items.iter().any(|each| each == name);
    let mut fields = Vec::new();
    for (name, property) in schema.properties.iter() {
        let required = is_required(name);
        match Field::of(name, property, required) {
            Some(field) => fields.push(field),
            None if required => {
                return Err(format!("field `{}` has an unknown type", safe(name)));
            }
            None => {}
        }
    }
    let is_there = |name: &str| fields.iter().any(|field| field.name == name);
    if let Some(missing) = schema.required.items.iter().find(|name| !is_there(name)) {
        return Err(format!("field `{}` cannot be displayed", safe(missing)));
    }
    if fields.len() > MAX_FIELDS {
        return Err(format!("the form has {} fields", fields.len()));
    }
    Ok(fields)
}

/// What was sent, on one line.
fn summary(fields: &[Field], values: &Map<String, Value>) -> String {
    let shown: Vec<String> = fields
        .iter()
        .filter_map(|field| {
            let value = values.get(&field.name)?;
            Some(format!("{}: {}", field.label, field.shown(value)))
        })
        .collect();
    if shown.is_empty() {
        return "answered".to_owned();
    }
    format!("sent {} to", shown.join(", "))
}

async fn answers(server: &str, fields: &[Field], dialog: &mut Dialog<'_>) -> io::Result<Filled> {
    if !fields.is_empty() {
        let keys = "  enter accepts the value in brackets, esc cancels the form";
        dialog.say(vec![(style::QUIET, keys.to_owned())]);
    }
    let mut values = Map::new();
    let mark = dialog.mark();
    loop {
        dialog.rewind(mark);
        let mut answered = Map::new();
        for field in fields {
            let before = values.get(&field.name);
            let mark = dialog.mark();
            let Some(answer) = one(field, before, dialog).await? else {
                return Ok(Filled::Left);
            };
            if dialog.is_panel() {
                // Of what is answered, one line stays.
                dialog.rewind(mark);
                dialog.say(answered_row(field, answer.as_ref()));
            }
            if let Some(value) = answer {
                answered.insert(field.name.clone(), value);
            }
        }
        values = answered;
        if !dialog.is_panel() {
            for field in fields {
                if let Some(value) = values.get(&field.name) {
                    dialog.say(answered_row(field, Some(value)));
                }
            }
        }
        match confirmed(server, !fields.is_empty(), dialog).await? {
            Chosen::Key('y') => return Ok(Filled::Sent(values)),
            Chosen::Key('e') => {}
            Chosen::Key(_) => return Ok(Filled::Declined),
            _ => return Ok(Filled::Left),
        }
    }
}

fn answered_row(field: &Field, value: Option<&Value>) -> Line {
    let shown = value.map_or_else(|| "no answer".to_owned(), |value| field.shown(value));
    vec![(style::QUIET, format!("  {}: {shown}", field.label))]
}

/// Asks whether to send the form.
async fn confirmed(server: &str, has_fields: bool, dialog: &mut Dialog<'_>) -> io::Result<Chosen> {
    let mut choices = vec![Choice::new('y', format!("send it to {server}"))];
    if has_fields {
        choices.push(Choice::new('e', "change it"));
    }
    choices.push(Choice::new('n', "no"));
    // A completed form is sent by default; a question without fields is not, to avoid accidental consent.
    let default = if has_fields { 0 } else { choices.len() - 1 };
    loop {
        match dialog.choose(&choices, Some(default)).await? {
            Chosen::Resized | Chosen::Back | Chosen::Forward => {}
            // No typed value is lost by a wrong key.
            Chosen::Other if has_fields => {}
            Chosen::Other => return Ok(Chosen::Key('n')),
            chosen => return Ok(chosen),
        }
    }
}

/// Prompts for one field. `before` is the answer to change. `None` if the form was cancelled, `Some(None)` if the field
/// was left empty.
async fn one(
    field: &Field,
    before: Option<&Value>,
    dialog: &mut Dialog<'_>,
) -> io::Result<Option<Option<Value>>> {
    let columns = screen::size().columns;
    let options = field.options();
    let is_list = dialog.is_panel() && !options.is_empty();
    let mark = if field.required { "" } else { " (optional)" };
    let hint = if is_list {
        field.list_hint()
    } else {
        field.hint()
    };
    dialog.say(vec![
        (Style::new(), "  ".to_owned()),
        (style::NAME, field.label.clone()),
        (Style::new(), format!("{mark}  ")),
        (style::QUIET, hint),
    ]);
    if let Some(about) = &field.about {
        let about = fitted(about, columns.saturating_sub(5)).into_owned();
        dialog.say(vec![(style::QUIET, format!("    {about}"))]);
    }
    match is_list {
        true if field.takes_several() => several(field, &options, before, dialog).await,
        true => chosen(field, options, before, dialog).await,
        false => typed(field, before, dialog).await,
    }
}

/// Lets the user choose one value from a list.
async fn chosen(
    field: &Field,
    mut options: Vec<(String, Value)>,
    before: Option<&Value>,
    dialog: &mut Dialog<'_>,
) -> io::Result<Option<Option<Value>>> {
    let before = before.cloned().or_else(|| field.read("").ok().flatten());
    let at = options
        .iter()
        .position(|(_, value)| Some(value) == before.as_ref());
    let mut rows: Vec<Line> = options.iter().map(|(title, _)| option_row(title)).collect();
    if !field.required {
        rows.push(vec![(style::QUIET, "no answer".to_owned())]);
    }
    let first = if field.required { 0 } else { options.len() };
    let picked = dialog.pick(&rows, at.unwrap_or(first)).await?;
    Ok(picked.map(|index| (index < options.len()).then(|| options.swap_remove(index).1)))
}

/// Lets the user mark values in a list until their number is right.
async fn several(
    field: &Field,
    options: &[(String, Value)],
    before: Option<&Value>,
    dialog: &mut Dialog<'_>,
) -> io::Result<Option<Option<Value>>> {
    let before = before.cloned().or_else(|| field.read("").ok().flatten());
    let before = before.as_ref().and_then(Value::as_array);
    let is_marked = |value: &Value| before.is_some_and(|before| before.contains(value));
    let mut marks: Vec<bool> = options.iter().map(|(_, value)| is_marked(value)).collect();
    let rows: Vec<Line> = options.iter().map(|(title, _)| option_row(title)).collect();
    let mark = dialog.mark();
    loop {
        if !dialog.mark_rows(&rows, &mut marks).await? {
            return Ok(None);
        }
        let marked = options
            .iter()
            .zip(&marks)
            .filter(|(_, is_marked)| **is_marked);
        let values = marked.map(|((_, value), _)| value.clone()).collect();
        match field.read_several(values) {
            Ok(value) => return Ok(Some(value)),
            Err(wrong) => {
                dialog.rewind(mark);
                dialog.say(wrong_row(wrong));
            }
        }
    }
}

fn option_row(title: &str) -> Line {
    let room = screen::size().columns.saturating_sub(8);
    vec![(Style::new(), fitted(title, room).into_owned())]
}

fn wrong_row(wrong: String) -> Line {
    vec![(style::ERROR, "  ✗ ".to_owned()), (Style::new(), wrong)]
}

/// Lets the user type a value until it is valid.
async fn typed(
    field: &Field,
    before: Option<&Value>,
    dialog: &mut Dialog<'_>,
) -> io::Result<Option<Option<Value>>> {
    let columns = screen::size().columns;
    for (index, choice) in field.choices().iter().take(MAX_LISTED_CHOICES).enumerate() {
        let title = fitted(&choice.title, columns.saturating_sub(10)).into_owned();
        dialog.say_text(&format!("    {:>2} {title}", index + 1));
    }
    if field.choices().len() > MAX_LISTED_CHOICES {
        let more = field.choices().len() - MAX_LISTED_CHOICES;
        dialog.say_text(&format!("       … and {more} more"));
    }
    let default = field
        .default()
        .map(|default| format!("[{}] ", fitted(&default, columns / 2)));
    let prompt = vec![
        (Style::new(), format!("  {}", default.unwrap_or_default())),
        (style::HINT, "› ".to_owned()),
    ];
    let mut text = before.map(|value| field.shown(value)).unwrap_or_default();
    loop {
        let Entered::Line(typed) = dialog.line(&prompt, &text).await? else {
            return Ok(None);
        };
        match field.read(&typed) {
            Ok(value) => return Ok(Some(value)),
            Err(wrong) => dialog.say(wrong_row(wrong)),
        }
        text = typed;
    }
}

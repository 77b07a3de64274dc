//! Elicitation forms on the terminal: prompts field by field, then asks for confirmation before sending.

use std::io;

use serde_json::{Map, Value};
use switchboard_protocol::types::elicitation::{
    ElicitAction, ElicitRequestFormParams, ElicitResult,
};
use switchboard_protocol::types::wire::{Raw, RawObject};

use super::entry::{self, Entered};
use super::field::{Field, MAX_LISTED_CHOICES};
use super::{paragraph, safe};
use crate::printer::{Printer, paint, style};
use crate::terminal::{Key, Keyboard, fitted};

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
    let name = paint(style::NAME, safe(server));
    printer.ask(format!("{} {name} asks:\n", paint(style::WARNING, "?")));
    printer.ask(paragraph(&params.message));
    let fields = match fields(params) {
        Ok(fields) => fields,
        Err(reason) => {
            printer.warning(format!("declined: {reason}"), None);
            return Ok(ElicitResult::new(ElicitAction::Decline));
        }
    };
    // One keyboard for the form: text typed ahead belongs to the next field.
    let mut keyboard = Keyboard::open()?;
    Ok(
        match answers(&safe(server), &fields, &mut keyboard, printer).await? {
            Filled::Sent(values) => accepted(&values),
            Filled::Declined => ElicitResult::new(ElicitAction::Decline),
            Filled::Left => ElicitResult::new(ElicitAction::Cancel),
        },
    )
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

async fn answers(
    server: &str,
    fields: &[Field],
    keyboard: &mut Keyboard,
    printer: &Printer,
) -> io::Result<Filled> {
    let key = |key: &str| paint(style::NAME, key);
    if !fields.is_empty() {
        printer.ask(paint(
            style::QUIET,
            "  enter accepts the value in brackets, esc cancels the form\n",
        ));
    }
    loop {
        let mut values = Map::new();
        for field in fields {
            match one(field, keyboard, printer).await? {
                Some(Some(value)) => _ = values.insert(field.name.clone(), value),
                Some(None) => {}
                None => return Ok(Filled::Left),
            }
        }
        for field in fields {
            if let Some(value) = values.get(&field.name) {
                let line = format!("  {}: {}\n", field.label, field.shown(value));
                printer.ask(paint(style::QUIET, line));
            }
        }
        let again = if fields.is_empty() {
            String::new()
        } else {
            format!("  {} change it", key("e"))
        };
        // A completed form is sent by default; a question without fields is not, to avoid accidental consent.
        let (send, no) = if fields.is_empty() {
            ("", " (default)")
        } else {
            (" (default)", "")
        };
        // An unknown key asks again, so that no typed value is lost.
        let is_changed = loop {
            printer.ask(format!(
                "  {} send it to {server}{send}{again}  {} no{no}  {} not now ",
                key("y"),
                key("n"),
                key("esc"),
            ));
            let pressed = keyboard.key().await?;
            if let Key::Character(character) = pressed {
                printer.ask(safe(&character.to_string()));
            }
            printer.ask("\n");
            match pressed {
                Key::Character('y' | 'Y') => break false,
                Key::Enter if !fields.is_empty() => break false,
                Key::Character('e' | 'E') if !fields.is_empty() => break true,
                Key::Escape | Key::End => return Ok(Filled::Left),
                Key::Character('n' | 'N') => return Ok(Filled::Declined),
                _ if !fields.is_empty() => {}
                _ => return Ok(Filled::Declined),
            }
        };
        if !is_changed {
            return Ok(Filled::Sent(values));
        }
    }
}

/// Prompts for one field. `None` if the form was cancelled, `Some(None)` if the field was left empty.
async fn one(
    field: &Field,
    keyboard: &mut Keyboard,
    printer: &Printer,
) -> io::Result<Option<Option<Value>>> {
    let columns = crate::terminal::error_size().map_or(100, |size| size.columns);
    let hint = paint(style::QUIET, field.hint());
    let mark = if field.required { "" } else { " (optional)" };
    let label = paint(style::NAME, &field.label);
    printer.ask(format!("  {label}{mark}  {hint}\n"));
    if let Some(about) = &field.about {
        let about = fitted(about, columns.saturating_sub(5));
        printer.ask(format!("    {}\n", paint(style::QUIET, about)));
    }
    for (index, choice) in field.choices().iter().take(MAX_LISTED_CHOICES).enumerate() {
        let title = fitted(&choice.title, columns.saturating_sub(10)).into_owned();
        printer.ask(format!("    {:>2} {title}\n", index + 1));
    }
    if field.choices().len() > MAX_LISTED_CHOICES {
        let more = field.choices().len() - MAX_LISTED_CHOICES;
        printer.ask(format!("       … and {more} more\n"));
    }
    let default = field
        .default()
        .map(|default| format!("[{}] ", fitted(&default, columns / 2)));
    let prompt = format!(
        "  {}{} ",
        default.unwrap_or_default(),
        paint(style::HINT, "›")
    );
    loop {
        let Entered::Line(typed) = entry::line(keyboard, printer, &prompt).await? else {
            return Ok(None);
        };
        match field.read(&typed) {
            Ok(value) => return Ok(Some(value)),
            Err(wrong) => printer.ask(format!("  {} {wrong}\n", paint(style::ERROR, "✗"))),
        }
    }
}

//! Renders recorded requests for snapshots.
//!
//! Each request shows only what is new since the previous one. Tool definitions and the fixed part of the system prompt
//! are compared only if the file asks for it, so that rewording them does not change every snapshot; otherwise tools
//! are listed by name. Long texts are represented by a hash.

use std::fmt::Write as _;

use serde_json::Value;
use switchboard_test::model::{Recorded, Wire};

use crate::play::Played;

/// Maximum length of a text shown in full.
const LONGEST: usize = 600;
/// Characters shown of the beginning and end of a longer text.
const SHOWN: usize = 120;

pub(crate) fn render(wire: Wire, played: &Played, shows_tools: bool) -> String {
    let mut text = format!("\n== {wire:?}\n");
    let mut before: Option<Request> = None;
    let requests = played.requests.iter();
    let mut requests: Vec<Request> = requests
        .map(|recorded| Request::new(recorded, &played.places))
        .collect();
    sort_side_by_side(&mut requests);
    for (number, request) in requests.into_iter().enumerate() {
        let _ = writeln!(text, "\n# request {}", number + 1);
        request.write(before.as_ref(), shows_tools, &mut text);
        before = Some(request);
    }
    text
}

/// Sub-agents run side by side, so their requests arrive in any order: sorts them by task.
fn sort_side_by_side(requests: &mut [Request]) {
    let main = requests.first().map(|first| first.system.clone());
    let is_main = |request: &Request| Some(&request.system) == main.as_ref();
    for run in requests.chunk_by_mut(|one, other| !is_main(one) && !is_main(other)) {
        run.sort_by_key(|request| request.messages.first().cloned());
    }
}

#[derive(Default)]
struct Request {
    /// Other fields: the model, limits.
    rest: String,
    tools: Vec<(String, String)>,
    system: String,
    messages: Vec<String>,
    /// Positions of cache breakpoints.
    marks: Vec<String>,
}

impl Request {
    fn new(recorded: &Recorded, places: &[(String, String)]) -> Self {
        let mut request = Self::default();
        let mut body = recorded.body.clone();
        let fields = body.as_object_mut().expect("an object");
        let take = |fields: &mut serde_json::Map<String, Value>, name: &str| {
            fields.remove(name).and_then(|value| match value {
                Value::Array(items) => Some(items),
                _ => None,
            })
        };
        for mut tool in take(fields, "tools").unwrap_or_default() {
            request.unmark(&mut tool, "the tools");
            let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
            let name = name.unwrap_or_default().to_owned();
            request.tools.push((name, tool.to_string()));
        }
        for mut block in take(fields, "system").unwrap_or_default() {
            request.unmark(&mut block, "the system prompt");
            request
                .system
                .push_str(block["text"].as_str().unwrap_or_default());
        }
        for (number, mut message) in take(fields, "messages")
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            if message["role"] == "system" {
                let system = message["content"].as_str().unwrap_or_default();
                system.clone_into(&mut request.system);
                continue;
            }
            let place = format!("message {number}");
            if let Some(blocks) = message["content"].as_array_mut() {
                for block in blocks {
                    request.unmark(block, &place);
                }
            }
            shorten(&mut message, places);
            let role = message["role"].as_str().unwrap_or_default().to_owned();
            message.as_object_mut().expect("an object").remove("role");
            let content = match message.as_object() {
                Some(fields) if fields.len() == 1 => message["content"].to_string(),
                _ => message.to_string(),
            };
            request.messages.push(format!("{role}: {content}"));
        }
        request.rest = body.to_string();
        request
    }

    /// Removes a cache breakpoint and records its position.
    fn unmark(&mut self, value: &mut Value, place: &str) {
        let fields = value.as_object_mut().expect("an object");
        if fields.remove("cache_control").is_some() {
            self.marks.push(place.to_owned());
        }
    }

    fn write(&self, before: Option<&Self>, shows_tools: bool, text: &mut String) {
        let nothing = Self::default();
        let known = before.unwrap_or(&nothing);
        if self.rest != known.rest {
            let _ = writeln!(text, "{}", self.rest);
        }
        if self.tools != known.tools {
            let is_longer = self.tools.starts_with(&known.tools);
            let new = &self.tools[if is_longer { known.tools.len() } else { 0 }..];
            let more = if is_longer && before.is_some() {
                " and"
            } else {
                ""
            };
            let named = new.iter().map(|(name, definition)| {
                let hash = shows_tools.then(|| format!(":{:08x}", hash(definition)));
                format!(" {name}{}", hash.unwrap_or_default())
            });
            let _ = writeln!(text, "tools:{more}{}", named.collect::<String>());
            let shown = new
                .iter()
                .filter(|(name, _)| shows_tools && name.starts_with("mcp__"));
            for (_, definition) in shown {
                let _ = writeln!(text, "  {definition}");
            }
        }
        if self.system != known.system {
            let (usual, rest) = self
                .system
                .split_once("\nFolder: ")
                .unwrap_or((&self.system, ""));
            // The folder and the date differ from run to run.
            let rest: Vec<&str> = rest.lines().skip(2).collect();
            let (first, _) = usual.split_once('.').unwrap_or((usual, ""));
            let whole = if shows_tools {
                format!(" {:08x}", hash(usual))
            } else {
                String::new()
            };
            let rest = rest.join("\n  ");
            let _ = writeln!(text, "system: {first}.{whole}\n  {}", rest.trim());
        }
        let is_longer = self.messages.starts_with(&known.messages);
        if !is_longer {
            let _ = writeln!(text, "(another conversation than before)");
        }
        let new = if is_longer {
            &self.messages[known.messages.len()..]
        } else {
            &self.messages
        };
        for message in new {
            let _ = writeln!(text, "{message}");
        }
        if !self.marks.is_empty() {
            let _ = writeln!(text, "marks: {}", self.marks.join(", "));
        }
    }
}

/// Replaces what differs from run to run, and shortens long texts.
fn shorten(value: &mut Value, places: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (place, name) in places {
                *text = text.replace(place.as_str(), name);
            }
            *text = without_chance(text);
            if text.chars().count() > LONGEST {
                let characters: Vec<char> = text.chars().collect();
                let start: String = characters[..SHOWN].iter().collect();
                let end: String = characters[characters.len() - SHOWN..].iter().collect();
                *text = format!(
                    "{start}<{} characters, {:08x}>{end}",
                    characters.len(),
                    hash(text)
                );
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, places)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(field, places)),
        _ => {}
    }
}

/// Names of output files end in random letters.
fn without_chance(text: &str) -> String {
    let (prefix, suffix) = ("/spill/output-", ".txt");
    let Some((before, rest)) = text.split_once(prefix) else {
        return text.to_owned();
    };
    let (name, after) = rest.split_once(suffix).expect("a name ends");
    let (name, _) = name
        .rsplit_once('-')
        .expect("a name has letters at its end");
    format!(
        "{before}{prefix}{name}-RANDOM{suffix}{}",
        without_chance(after)
    )
}

fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash: u32, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

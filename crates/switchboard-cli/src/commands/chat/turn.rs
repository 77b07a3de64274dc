//! Draws a turn: streamed text, one line per call, and live status below.
//!
//! Owns the order of output. The model's text goes to standard output, everything else to standard error. While a
//! prompt holds the terminal, events are queued.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use anstyle::Style;
use base64::Engine as _;
use switchboard::internal::call::spill::SpillFolder;
use switchboard_agent::message::{Content, Image};
use switchboard_agent::{EndReason, Reply, SessionEvent};
use tokio::time::Instant;

use super::call_line::{
    self, MAX_DISPLAY_LINES, display, elapsed, missing_server, summary, trouble,
};
use super::results::{Results, Returned};
use crate::commands::call::result::BASE64;
use crate::context::Context;
use crate::error::Failure;
use crate::live::{self, Line, Live, spinner};
use crate::markdown::{Look, Markdown};
use crate::printer::{Printer, Verbosity, paint, style};
use crate::questions::safe;
use crate::session::spill_folder;
use crate::startup::counted;
use crate::terminal::{self, fitted};
use crate::{picture, screen};

/// Delay before live lines are drawn.
const PATIENCE: Duration = Duration::from_millis(300);
/// Assumed width of a terminal that does not report one.
const COLUMNS: usize = 80;
/// Maximum indentation of nested calls.
const MAX_DEPTH: usize = 6;
/// Rows shown of text that is not final.
const MAX_PREVIEW_ROWS: usize = 12;

pub(super) struct Turn<'p> {
    printer: &'p Printer,
    live: Live<'p>,
    started: Instant,
    ticks: usize,
    doing: Doing,
    /// The model's text since the last call, and its source.
    text: Option<Markdown>,
    source: String,
    /// Final rows of the text that are not on the screen yet.
    unprinted: Vec<Line>,
    /// The size of the screen that the text is wrapped for.
    generation: u64,
    /// The model's reasoning, up to the incomplete line.
    thought: String,
    calls: Vec<Running>,
    /// Nesting depth by call id.
    depths: HashMap<String, usize>,
    /// The calls whose lines are printed above the last nested one, outermost first.
    above: Vec<String>,
    shown: Shown,
    /// Events received while a prompt held the terminal.
    queued: VecDeque<SessionEvent>,
    /// Missing servers that have been reported.
    reported: &'p mut HashSet<String>,
    /// Results that can be shown in full; `None` if results are not shown.
    results: Option<&'p RefCell<Results>>,
    /// Where images are saved.
    spill: SpillFolder,
}

/// What the turn is waiting for.
enum Doing {
    Connecting,
    Waiting,
    Thinking,
    Writing,
    Retrying(String),
}

/// The last kind of output on the screen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Text,
    Calls,
}

struct Running {
    id: String,
    /// Id of the call that it is nested in.
    parent: Option<String>,
    name: String,
    summary: String,
    started: Instant,
    /// Total prompt time when the call started.
    prompt_time: Duration,
    depth: usize,
    progress: String,
    /// Whether its line is already printed, because nested calls follow.
    announced: bool,
}

impl<'p> Turn<'p> {
    pub(super) fn new(
        context: &'p Context,
        reported: &'p mut HashSet<String>,
        results: Option<&'p RefCell<Results>>,
    ) -> Self {
        let printer = &context.printer;
        Self {
            printer,
            live: Live::new(printer),
            started: Instant::now(),
            ticks: 0,
            doing: Doing::Connecting,
            text: None,
            source: String::new(),
            unprinted: Vec::new(),
            generation: screen::generation(),
            thought: String::new(),
            calls: Vec::new(),
            depths: HashMap::new(),
            above: Vec::new(),
            shown: Shown::Nothing,
            queued: VecDeque::new(),
            reported,
            results,
            spill: SpillFolder::new(spill_folder(context)),
        }
    }

    /// Handles an event.
    pub(super) fn event(&mut self, event: SessionEvent) -> Result<(), Failure> {
        // Progress prints nothing by itself, and many such events may arrive during a prompt, so they are not queued.
        let is_progress = matches!(event, SessionEvent::CallProgress { .. });
        if live::is_paused() && !is_progress {
            self.queued.push_back(event);
            return Ok(());
        }
        if !is_progress {
            self.release()?;
        }
        self.show(event)
    }

    /// Redraws the live lines.
    pub(super) fn tick(&mut self) -> Result<(), Failure> {
        if live::is_paused() {
            return Ok(());
        }
        self.release()?;
        self.ticks += 1;
        if screen::is_active() {
            self.wrap_again();
            let lines = self.live_lines();
            screen::text(&std::mem::take(&mut self.unprinted), lines);
            return Ok(());
        }
        if self.printer.is_live() && self.started.elapsed() >= PATIENCE {
            let lines = self.live_lines();
            self.live.draw(&lines);
        }
        Ok(())
    }

    /// Wraps the text again if the width of the screen has changed.
    fn wrap_again(&mut self) {
        let generation = screen::generation();
        if generation == self.generation {
            return;
        }
        self.generation = generation;
        if self.text.is_some() {
            let mut markdown = Markdown::new(self.look());
            let rows = markdown.push(&self.source);
            self.text = Some(markdown);
            self.unprinted.clear();
            screen::wrap_text_again(rows);
        }
    }

    /// Removes the live lines, before something else is printed.
    fn clear(&mut self) {
        if screen::is_active() {
            screen::text(&std::mem::take(&mut self.unprinted), Vec::new());
        } else {
            self.live.clear();
        }
    }

    /// Ends the turn and prints the remaining text.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.release()?;
        self.end_text()?;
        self.clear();
        Ok(())
    }

    fn release(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.queued.pop_front() {
            self.show(event)?;
        }
        Ok(())
    }

    fn show(&mut self, event: SessionEvent) -> Result<(), Failure> {
        if !matches!(
            event,
            SessionEvent::Thinking { .. } | SessionEvent::CallProgress { .. }
        ) {
            self.think("\n");
        }
        match event {
            SessionEvent::Started { failed_servers, .. } => {
                self.doing = Doing::Waiting;
                // A server that recovered is reported again when it fails again.
                let is_missing =
                    |name: &String| failed_servers.iter().any(|server| server.name == *name);
                self.reported.retain(is_missing);
                let mut is_warned = false;
                for server in &failed_servers {
                    if self.reported.insert(server.name.clone())
                        && let Some((message, hint)) = missing_server(server)
                    {
                        self.clear();
                        let room = columns().saturating_sub("warning: ".len() + 1);
                        let message = fitted(&message, room.max(20));
                        self.printer.warning(message, Some(&hint));
                        is_warned = true;
                    }
                }
                if is_warned && screen::is_active() {
                    self.printer.note("");
                }
            }
            SessionEvent::Text { text } => {
                self.doing = Doing::Writing;
                let look = self.look();
                self.source.push_str(&text);
                let markdown = self.text.get_or_insert_with(|| Markdown::new(look));
                let rows = markdown.push(&text);
                self.rows(&rows)?;
            }
            SessionEvent::Thinking { text } => {
                self.doing = Doing::Thinking;
                self.think(&text);
            }
            SessionEvent::Retrying {
                reason,
                wait_ms,
                attempt,
                ..
            } => {
                self.text = None;
                let source = std::mem::take(&mut self.source);
                if screen::is_active() && !source.is_empty() {
                    self.clear();
                    screen::end_text(&source);
                }
                let wait = elapsed(Duration::from_millis(wait_ms));
                let reported = format!("{}; attempt {attempt} in {wait}", safe(&reason));
                if self.shown == Shown::Text {
                    self.note(format!("connection lost mid-answer; retrying: {reported}"));
                } else if !self.printer.is_live() {
                    self.note(&reported);
                }
                self.doing = Doing::Retrying(reported);
            }
            SessionEvent::CallBegins {
                id,
                server,
                tool,
                arguments,
                parent,
                ..
            } => {
                self.end_text()?;
                let depth = self.depth_below(parent.as_deref());
                self.depths.insert(id.clone(), depth);
                let running = Running {
                    id,
                    parent,
                    name: call_line::name(server.as_deref(), &tool),
                    summary: summary(arguments.as_deref()),
                    started: Instant::now(),
                    prompt_time: live::prompt_time(),
                    depth,
                    progress: String::new(),
                    announced: false,
                };
                let place = self.place_below(&running);
                self.calls.insert(place, running);
            }
            SessionEvent::CallProgress {
                id,
                progress,
                total,
                message,
                elapsed_ms: None,
            } => {
                let found = self.calls.iter_mut().find(|call| call.id == id);
                if let Some(call) = found {
                    call.progress = progressed(progress, total, message.as_deref());
                }
            }
            SessionEvent::CallEnds {
                id,
                content,
                result,
                is_error,
                elapsed_ms,
                display: shown,
                ..
            } => {
                self.end_text()?;
                let took = Duration::from_millis(elapsed_ms);
                let returned = Returned {
                    content: &content,
                    result: result.as_ref(),
                    display: shown.as_deref(),
                };
                let trouble = is_error.then(|| trouble(&content));
                self.end_call(&id, trouble, took, &returned);
                self.doing = Doing::Waiting;
            }
            SessionEvent::ToolsChanged { added, removed } => {
                if !added.is_empty() {
                    self.note(format!(
                        "{} added: {}",
                        counted(added.len(), "tool"),
                        names(&added)
                    ));
                }
                if !removed.is_empty() {
                    let count = counted(removed.len(), "tool");
                    self.note(format!("{count} removed: {}", names(&removed)));
                }
            }
            SessionEvent::Compacted { before, after } => self.note(format!(
                "session compacted: about {before} tokens before, {after} now"
            )),
            SessionEvent::Notice { text, .. } => self.note(safe(&text)),
            SessionEvent::Ended(reply) => {
                self.end_text()?;
                self.ended(&reply);
            }
            _ => {}
        }
        Ok(())
    }

    /// Prints the model's reasoning, line by line, if verbose.
    fn think(&mut self, more: &str) {
        if self.printer.verbosity < Verbosity::Verbose {
            return;
        }
        self.thought.push_str(more);
        while let Some(end) = self.thought.find('\n') {
            let rest = self.thought.split_off(end + 1);
            let line = std::mem::replace(&mut self.thought, rest);
            if !line.trim().is_empty() {
                self.clear();
                self.printer.detail(safe(line.trim_end()));
            }
        }
    }

    fn ended(&mut self, reply: &Reply) {
        let reported = match reply.reason {
            EndReason::Refused => "the model refused to answer",
            EndReason::Length => "the answer is cut off: it reached the output limit",
            EndReason::TurnBudget => {
                "request limit of the turn reached; send \"continue\" for more"
            }
            EndReason::TokenBudget => "token limit of the turn reached; send \"continue\" for more",
            _ => return,
        };
        self.clear();
        self.printer.warning(reported, None);
    }

    /// Prints final rows of the text.
    fn rows(&mut self, rows: &[Line]) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        let follows_calls = self.shown == Shown::Calls;
        self.shown = Shown::Text;
        if screen::is_active() {
            if follows_calls {
                self.clear();
                self.printer.note("");
            }
            self.unprinted.extend(rows.iter().cloned());
            return Ok(());
        }
        self.live.clear();
        if follows_calls {
            self.printer.note("");
        }
        self.printer.data(lines(rows))
    }

    fn end_text(&mut self) -> Result<(), Failure> {
        let Some(markdown) = self.text.take() else {
            return Ok(());
        };
        self.rows(&markdown.finish())?;
        let source = std::mem::take(&mut self.source);
        if screen::is_active() {
            self.clear();
            screen::end_text(&source);
        }
        Ok(())
    }

    fn end_call(
        &mut self,
        id: &str,
        trouble: Option<String>,
        took: Duration,
        returned: &Returned<'_>,
    ) {
        let Some(index) = self.calls.iter().position(|call| call.id == id) else {
            return;
        };
        let is_last = self.above.last().is_some_and(|above| above == id);
        self.announce_parents(index);
        let call = self.calls.remove(index);
        let indent = "  ".repeat(call.depth);
        let took = elapsed(took);
        let (mark, mark_style) = match trouble {
            None => ("●", style::GOOD),
            Some(_) => ("✗", style::ERROR),
        };
        // Its own line is the last one that has nested lines, so that it need not be repeated.
        let line = if call.announced && is_last {
            vec![
                (mark_style, format!("{indent}{mark} ")),
                (style::QUIET, format!("{} ended, {took}", call.name)),
            ]
        } else {
            call.line(mark, mark_style, &took, columns())
        };
        self.call_line(&line);
        let room = columns().saturating_sub(indent.len() + 4).max(20);
        let is_error = trouble.is_some();
        if let Some(trouble) = trouble {
            self.call_line(&vec![
                (Style::new(), format!("{indent}  ")),
                (style::REMOVED, fitted(&trouble, room).into_owned()),
            ]);
        }
        let title = format!("{}  {}", call.name, call.summary);
        let mut results = self.results.map(RefCell::borrow_mut);
        let result = results.as_mut().map(|results| results.add(title, returned));
        let mut rows = match (returned.display, result) {
            (Some(text), result) => display(text, MAX_DISPLAY_LINES, result.map(|it| it.number)),
            // The first line of an error is there already, and results of sub-agents are theirs.
            (None, Some(result)) if !is_error && call.depth == 0 => result.folded(room),
            (None, _) => Vec::new(),
        };
        drop(results);
        for line in &mut rows {
            for (_, text) in line.iter_mut() {
                *text = fitted(text, room).into_owned();
            }
            line.insert(0, (Style::new(), format!("{indent}  ")));
            self.call_line(line);
        }
        for part in returned.content {
            if let Content::Image(image) = part {
                self.picture(image, &format!("{indent}  "));
            }
        }
    }

    /// Shows an image, or saves it and prints where it is.
    fn picture(&mut self, image: &Image, indent: &str) {
        let compact: String = image.data.split_ascii_whitespace().collect();
        let Ok(bytes) = BASE64.decode(compact) else {
            return;
        };
        if screen::is_active()
            && let Some(sequence) = picture::inline(&bytes, picture::graphics())
        {
            self.clear();
            screen::picture(&sequence, "");
            return;
        }
        let extension = picture::extension(&image.mime_type);
        match self.spill.write("image", extension, &bytes) {
            Ok(saved) => {
                let path = safe(&saved.path.display().to_string());
                self.call_line(&vec![(style::QUIET, format!("{indent}saved to {path}"))]);
            }
            Err(error) => self.printer.warning(safe(&error.to_string()), None),
        }
    }

    /// Prints the lines of the calls that this one is nested in, unless they are printed above it already.
    fn announce_parents(&mut self, index: usize) {
        let mut parents = Vec::new();
        let mut parent = self.calls.get(index).and_then(|call| call.parent.as_ref());
        while let Some(id) = parent
            && parents.len() < MAX_DEPTH
        {
            parents.insert(0, id.clone());
            let above = self.calls.iter().find(|call| call.id == *id);
            parent = above.and_then(|call| call.parent.as_ref());
        }
        let mut lines = Vec::new();
        for (place, id) in parents.iter().enumerate() {
            let is_there = self.above.get(..=place) == parents.get(..=place);
            if !is_there && let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) {
                call.announced = true;
                lines.push(call.line("○", style::HINT, "", columns()));
            }
        }
        self.above = parents;
        for line in lines {
            self.call_line(&line);
        }
    }

    /// Where a call belongs among the running ones: below the call that it is nested in, after the others there.
    fn place_below(&self, running: &Running) -> usize {
        let parent = running.parent.as_ref();
        let parent = parent.and_then(|id| self.calls.iter().position(|call| call.id == *id));
        let Some(parent) = parent else {
            return self.calls.len();
        };
        let nested = self.calls.iter().skip(parent + 1);
        let nested = nested.take_while(|call| call.depth >= running.depth);
        parent + 1 + nested.count()
    }

    /// Prepares for output that does not belong to the turn.
    pub(super) fn make_room(&mut self) {
        self.clear();
        if self.shown != Shown::Nothing {
            self.printer.note("");
        }
        self.shown = Shown::Nothing;
        self.above.clear();
    }

    fn call_line(&mut self, line: &Line) {
        self.clear();
        if self.shown == Shown::Text {
            self.printer.note("");
        }
        self.shown = Shown::Calls;
        self.printer.note(one_line(line));
    }

    fn note(&mut self, text: impl std::fmt::Display) {
        self.clear();
        self.printer.note(paint(style::QUIET, text));
    }

    fn depth_below(&self, parent: Option<&str>) -> usize {
        let above = parent.and_then(|parent| self.depths.get(parent));
        above.map_or(0, |depth| (depth + 1).min(MAX_DEPTH))
    }

    /// The live lines: the end of the text, the running calls, and what the turn is waiting for.
    fn live_lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(markdown) = &self.text {
            let rows = markdown.preview();
            let hidden = rows.len().saturating_sub(MAX_PREVIEW_ROWS);
            lines.extend(rows.into_iter().skip(hidden));
        }
        if !self.calls.is_empty() && self.shown == Shown::Text {
            lines.push(Line::new());
        }
        let now = self.ticks;
        for call in &self.calls {
            // Prompt time does not count as the call's running time.
            let prompt_time = live::prompt_time().saturating_sub(call.prompt_time);
            let running = elapsed(call.started.elapsed().saturating_sub(prompt_time));
            let after = format!("{running}  {}", call.progress);
            lines.push(call.line(spinner(now), style::HINT, after.trim_end(), columns()));
        }
        if self.calls.is_empty() {
            let doing = match &self.doing {
                Doing::Connecting => "connecting",
                Doing::Waiting => "waiting for the model",
                Doing::Thinking => "thinking",
                Doing::Writing => return lines,
                Doing::Retrying(reported) => reported.as_str(),
            };
            let seconds = self.started.elapsed().as_secs();
            // The status line of a chat has the key.
            let keys = if screen::is_active() {
                ""
            } else {
                "  (ctrl-C interrupts)"
            };
            lines.push(vec![
                (style::HINT, format!("{} ", spinner(now))),
                (style::QUIET, format!("{doing}, {seconds} s{keys}")),
            ]);
        }
        lines
    }

    fn look(&self) -> Look {
        let columns = terminal::width().unwrap_or(COLUMNS);
        Look {
            // Leave the last column empty: some terminals wrap a line that fills it.
            width: columns.saturating_sub(1),
            styled: self.printer.colors.stdout,
        }
    }
}

impl Running {
    fn line(&self, mark: &str, mark_style: Style, after: &str, columns: usize) -> Line {
        let indent = "  ".repeat(self.depth);
        let taken = indent.len() + 2 + self.name.len() + 2 + after.chars().count() + 4;
        let summary = fitted(&self.summary, columns.saturating_sub(taken).max(10)).into_owned();
        let gap = if summary.is_empty() { "" } else { "  " };
        let mut line = vec![
            (mark_style, format!("{indent}{mark} ")),
            (style::NAME, self.name.clone()),
            (style::QUIET, format!("{gap}{summary}")),
        ];
        if !after.is_empty() {
            line.push((Style::new(), format!("  {after}")));
        }
        line
    }
}

fn columns() -> usize {
    terminal::error_size().map_or(COLUMNS, |size| size.columns)
}

fn lines(rows: &[Line]) -> String {
    let mut text = String::new();
    for row in rows {
        text.push_str(&one_line(row));
        text.push('\n');
    }
    text
}

fn one_line(row: &Line) -> String {
    row.iter()
        .map(|(style, text)| paint(*style, text))
        .collect()
}

fn names(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| safe(name)).collect();
    if names.len() > SHOWN {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

fn progressed(progress: Option<f64>, total: Option<f64>, message: Option<&str>) -> String {
    let done = match (progress, total) {
        (Some(progress), Some(total)) if total > 0.0 => {
            let percent = (progress / total * 100.0).clamp(0.0, 100.0);
            format!("{} {percent:.0} %", bar(percent))
        }
        (Some(progress), _) => progress.to_string(),
        (None, _) => String::new(),
    };
    let message = message.map(safe).unwrap_or_default();
    format!("{done}  {message}").trim().to_owned()
}

/// A bar of ten cells.
fn bar(percent: f64) -> String {
    let filled = (1..=10).filter(|cell| percent >= f64::from(cell * 10) - 0.5);
    let filled = filled.count();
    format!("{}{}", "▰".repeat(filled), "▱".repeat(10 - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_with_a_total_has_a_bar() {
        for (progress, total, expected) in [
            (Some(0.0), Some(4.0), "▱▱▱▱▱▱▱▱▱▱ 0 %  on it"),
            (Some(1.0), Some(4.0), "▰▰▱▱▱▱▱▱▱▱ 25 %  on it"),
            (Some(9.0), Some(4.0), "▰▰▰▰▰▰▰▰▰▰ 100 %  on it"),
            (Some(3.0), None, "3  on it"),
            (None, None, "on it"),
        ] {
            assert_eq!(progressed(progress, total, Some("on it")), expected);
        }
        assert_eq!(
            progressed(Some(f64::NAN), Some(1.0), None),
            "▱▱▱▱▱▱▱▱▱▱ NaN %"
        );
    }
}

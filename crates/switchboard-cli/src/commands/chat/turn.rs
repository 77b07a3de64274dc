//! A turn on the screen: text as it is written, calls in one line each, and what goes on below.
//!
//! Owns the order of things on the screen. The model's words are data, on standard output; everything else is on standard
//! error. While somebody is being asked something, nothing is shown: it waits until the question is answered.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use anstyle::Style;
use switchboard_agent::events::{EndReason, Reply, SessionEvent};
use tokio::time::Instant;

use super::call_line::{display, elapsed, missing_server, summary, trouble};
use crate::error::Failure;
use crate::live::{self, Line, Live, spinner};
use crate::markdown::{Look, Markdown};
use crate::printer::{Printer, Verbosity, paint, style};
use crate::questions::safe;
use crate::startup::counted;
use crate::terminal::{self, fitted};

/// Work that is done sooner shows nothing that moves.
const PATIENCE: Duration = Duration::from_millis(300);
/// Columns where the terminal does not say.
const COLUMNS: usize = 80;
/// Calls within calls are indented at most so deep.
const DEEPEST: usize = 6;
/// So many rows of text that may yet change are shown.
const SHOWN_ROWS: usize = 12;

/// A turn.
pub(super) struct Turn<'p> {
    printer: &'p Printer,
    live: Live<'p>,
    begun: Instant,
    ticks: usize,
    doing: Doing,
    /// The model's words since the last call.
    text: Option<Markdown>,
    /// What the model thinks, the line that is not whole.
    thought: String,
    calls: Vec<Running>,
    /// How deep calls are within others.
    depths: HashMap<String, usize>,
    shown: Shown,
    /// What came while somebody was asked something.
    held: VecDeque<SessionEvent>,
    /// Servers that cannot be used, of which the person knows.
    told: &'p mut HashSet<String>,
}

/// What the turn waits for.
enum Doing {
    Connecting,
    Waiting,
    Thinking,
    Writing,
    Retrying(String),
}

/// What the screen ends with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Text,
    Calls,
}

/// A call that goes on.
struct Running {
    id: String,
    name: String,
    summary: String,
    begun: Instant,
    /// How long the person had been asked something when it began.
    asked: Duration,
    depth: usize,
    progress: String,
    /// Whether its line stands on the screen already, because calls within it follow.
    announced: bool,
}

impl<'p> Turn<'p> {
    pub(super) fn new(printer: &'p Printer, told: &'p mut HashSet<String>) -> Self {
        Self {
            printer,
            live: Live::new(printer),
            begun: Instant::now(),
            ticks: 0,
            doing: Doing::Connecting,
            text: None,
            thought: String::new(),
            calls: Vec::new(),
            depths: HashMap::new(),
            shown: Shown::Nothing,
            held: VecDeque::new(),
            told,
        }
    }

    /// Something happened.
    pub(super) fn event(&mut self, event: SessionEvent) -> Result<(), Failure> {
        // How far a call is shows nothing by itself, and may be told any number of times while somebody thinks.
        let is_progress = matches!(event, SessionEvent::CallProgress { .. });
        if live::is_paused() && !is_progress {
            self.held.push_back(event);
            return Ok(());
        }
        if !is_progress {
            self.release()?;
        }
        self.show(event)
    }

    /// Draws what moves anew.
    pub(super) fn tick(&mut self) -> Result<(), Failure> {
        if live::is_paused() {
            return Ok(());
        }
        self.release()?;
        self.ticks += 1;
        if self.printer.is_live() && self.begun.elapsed() >= PATIENCE {
            let lines = self.moving();
            self.live.draw(&lines);
        }
        Ok(())
    }

    /// The turn is over, in whatever way: what is left of the text is shown.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.release()?;
        self.end_text()?;
        self.live.clear();
        Ok(())
    }

    fn release(&mut self) -> Result<(), Failure> {
        while let Some(event) = self.held.pop_front() {
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
                // One that has come back is told of again when it is missing again.
                let is_missing =
                    |name: &String| failed_servers.iter().any(|server| server.name == *name);
                self.told.retain(is_missing);
                for server in &failed_servers {
                    if self.told.insert(server.name.clone())
                        && let Some((message, hint)) = missing_server(server)
                    {
                        self.live.clear();
                        let room = columns().saturating_sub("warning: ".len() + 1);
                        let message = fitted(&message, room.max(60));
                        self.printer.warning(message, Some(&hint));
                    }
                }
            }
            SessionEvent::Text { text } => {
                self.doing = Doing::Writing;
                let look = self.look();
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
            } => {
                self.text = None;
                let wait = elapsed(Duration::from_millis(wait_ms));
                let told = format!("{}; attempt {attempt} in {wait}", safe(&reason));
                if self.shown == Shown::Text {
                    self.note(format!("connection lost mid-answer; retrying: {told}"));
                } else if !self.printer.is_live() {
                    self.note(&told);
                }
                self.doing = Doing::Retrying(told);
            }
            SessionEvent::CallBegins {
                id,
                name,
                arguments,
                parent,
                ..
            } => {
                self.end_text()?;
                let depth = self.depth_below(parent.as_deref());
                self.depths.insert(id.clone(), depth);
                self.calls.push(Running {
                    id,
                    name: safe(&name),
                    summary: summary(arguments.as_deref()),
                    begun: Instant::now(),
                    asked: live::asked(),
                    depth,
                    progress: String::new(),
                    announced: false,
                });
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
                is_error,
                elapsed_ms,
                display: shown,
                ..
            } => {
                self.end_text()?;
                let took = Duration::from_millis(elapsed_ms);
                self.end_call(
                    &id,
                    is_error.then(|| trouble(&content)),
                    took,
                    shown.as_deref(),
                );
                self.doing = Doing::Waiting;
            }
            SessionEvent::ToolsChanged { added, removed } => {
                if !added.is_empty() {
                    self.note(format!(
                        "{} came: {}",
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
            SessionEvent::Notice { text } => self.note(safe(&text)),
            SessionEvent::Ended(reply) => {
                self.end_text()?;
                self.ended(&reply);
            }
            _ => {}
        }
        Ok(())
    }

    /// What the model thinks, line by line, for those who want to know.
    fn think(&mut self, more: &str) {
        if self.printer.verbosity < Verbosity::Verbose {
            return;
        }
        self.thought.push_str(more);
        while let Some(end) = self.thought.find('\n') {
            let rest = self.thought.split_off(end + 1);
            let line = std::mem::replace(&mut self.thought, rest);
            if !line.trim().is_empty() {
                self.live.clear();
                self.printer.detail(safe(line.trim_end()));
            }
        }
    }

    fn ended(&mut self, reply: &Reply) {
        let told = match reply.reason {
            EndReason::Refused => "the model refuses to answer",
            EndReason::Length => "the answer reached its limit and breaks off",
            EndReason::TurnBudget => {
                "request limit of the turn reached; send \"continue\" for more"
            }
            EndReason::TokenBudget => "token limit of the turn reached; send \"continue\" for more",
            _ => return,
        };
        self.live.clear();
        self.printer.warning(told, None);
    }

    /// The rows of the text that are certain.
    fn rows(&mut self, rows: &[Line]) -> Result<(), Failure> {
        if rows.is_empty() {
            return Ok(());
        }
        self.live.clear();
        if self.shown == Shown::Calls {
            self.printer.note("");
        }
        self.shown = Shown::Text;
        self.printer.data(lines(rows))
    }

    fn end_text(&mut self) -> Result<(), Failure> {
        match self.text.take() {
            Some(markdown) => self.rows(&markdown.finish()),
            None => Ok(()),
        }
    }

    fn end_call(&mut self, id: &str, trouble: Option<String>, took: Duration, shown: Option<&str>) {
        let Some(index) = self.calls.iter().position(|call| call.id == id) else {
            return;
        };
        self.announce_parents(index);
        let call = self.calls.remove(index);
        let indent = "  ".repeat(call.depth);
        let took = elapsed(took);
        let (mark, mark_style) = match trouble {
            None => ("●", style::GOOD),
            Some(_) => ("✗", style::ERROR),
        };
        let line = if call.announced {
            vec![
                (mark_style, format!("{indent}{mark} ")),
                (style::QUIET, format!("{} ended, {took}", call.name)),
            ]
        } else {
            call.line(mark, mark_style, &took, columns())
        };
        self.call_line(&line);
        let room = columns().saturating_sub(indent.len() + 4).max(20);
        if let Some(trouble) = trouble {
            self.call_line(&vec![
                (Style::new(), format!("{indent}  ")),
                (style::REMOVED, fitted(&trouble, room).into_owned()),
            ]);
        }
        for mut line in shown.map(display).unwrap_or_default() {
            for (_, text) in &mut line {
                *text = fitted(text, room).into_owned();
            }
            line.insert(0, (Style::new(), format!("{indent}  ")));
            self.call_line(&line);
        }
    }

    /// What calls within others stand below must be on the screen before them.
    fn announce_parents(&mut self, index: usize) {
        let Some(depth) = self.calls.get(index).map(|call| call.depth) else {
            return;
        };
        let mut lines = Vec::new();
        for call in self.calls.iter_mut().take(index) {
            if call.depth < depth && !call.announced {
                call.announced = true;
                lines.push(call.line("○", style::HINT, "", columns()));
            }
        }
        for line in lines {
            self.call_line(&line);
        }
    }

    fn call_line(&mut self, line: &Line) {
        self.live.clear();
        if self.shown == Shown::Text {
            self.printer.note("");
        }
        self.shown = Shown::Calls;
        self.printer.note(one_line(line));
    }

    fn note(&mut self, text: impl std::fmt::Display) {
        self.live.clear();
        self.printer.note(paint(style::QUIET, text));
    }

    fn depth_below(&self, parent: Option<&str>) -> usize {
        let above = parent.and_then(|parent| self.depths.get(parent));
        above.map_or(0, |depth| (depth + 1).min(DEEPEST))
    }

    /// What is below the text and changes: its end, the calls that go on, and what is waited for.
    fn moving(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(markdown) = &self.text {
            let rows = markdown.preview();
            let hidden = rows.len().saturating_sub(SHOWN_ROWS);
            lines.extend(rows.into_iter().skip(hidden));
        }
        if !self.calls.is_empty() && self.shown == Shown::Text {
            lines.push(Line::new());
        }
        let now = self.ticks;
        for call in &self.calls {
            // While the person thinks, the call does nothing.
            let asked = live::asked().saturating_sub(call.asked);
            let running = elapsed(call.begun.elapsed().saturating_sub(asked));
            let after = format!("{running}  {}", call.progress);
            lines.push(call.line(spinner(now), style::HINT, after.trim_end(), columns()));
        }
        if self.calls.is_empty() {
            let doing = match &self.doing {
                Doing::Connecting => "connecting",
                Doing::Waiting => "waiting for the model",
                Doing::Thinking => "thinking",
                Doing::Writing => return lines,
                Doing::Retrying(told) => told.as_str(),
            };
            let seconds = self.begun.elapsed().as_secs();
            lines.push(vec![
                (style::HINT, format!("{} ", spinner(now))),
                (
                    style::QUIET,
                    format!("{doing}, {seconds} s  (ctrl-C interrupts)"),
                ),
            ]);
        }
        lines
    }

    fn look(&self) -> Look {
        let columns = terminal::width().unwrap_or(COLUMNS);
        Look {
            // The last column stays empty: some terminals break a line that fills it.
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
            format!("{:.0} %", (progress / total * 100.0).clamp(0.0, 100.0))
        }
        (Some(progress), _) => progress.to_string(),
        (None, _) => String::new(),
    };
    let message = message.map(safe).unwrap_or_default();
    format!("{done}  {message}").trim().to_owned()
}

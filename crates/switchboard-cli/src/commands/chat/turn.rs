//! Draws a turn: streamed text, one line per call, and live status below.
//!
//! Owns the order of output. The model's text goes to standard output, everything else to standard error. While a
//! prompt holds the terminal, events are queued.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use anstyle::Style;
use switchboard_agent::{EndReason, Reply, SessionEvent};
use tokio::time::Instant;

use super::call_line::{display, elapsed, missing_server, summary, trouble};
use crate::error::Failure;
use crate::live::{self, Line, Live, spinner};
use crate::markdown::{Look, Markdown};
use crate::printer::{Printer, Verbosity, paint, style};
use crate::questions::safe;
use crate::startup::counted;
use crate::terminal::{self, fitted};

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
    /// The model's text since the last call.
    text: Option<Markdown>,
    /// The model's reasoning, up to the incomplete line.
    thought: String,
    calls: Vec<Running>,
    /// Nesting depth by call id.
    depths: HashMap<String, usize>,
    shown: Shown,
    /// Events received while a prompt held the terminal.
    queued: VecDeque<SessionEvent>,
    /// Missing servers that have been reported.
    reported: &'p mut HashSet<String>,
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
    pub(super) fn new(printer: &'p Printer, reported: &'p mut HashSet<String>) -> Self {
        Self {
            printer,
            live: Live::new(printer),
            started: Instant::now(),
            ticks: 0,
            doing: Doing::Connecting,
            text: None,
            thought: String::new(),
            calls: Vec::new(),
            depths: HashMap::new(),
            shown: Shown::Nothing,
            queued: VecDeque::new(),
            reported,
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
        if self.printer.is_live() && self.started.elapsed() >= PATIENCE {
            let lines = self.live_lines();
            self.live.draw(&lines);
        }
        Ok(())
    }

    /// Ends the turn and prints the remaining text.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.release()?;
        self.end_text()?;
        self.live.clear();
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
                for server in &failed_servers {
                    if self.reported.insert(server.name.clone())
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
                    started: Instant::now(),
                    prompt_time: live::prompt_time(),
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
            SessionEvent::Notice { text } => self.note(safe(&text)),
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
                self.live.clear();
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
        self.live.clear();
        self.printer.warning(reported, None);
    }

    /// Prints final rows of the text.
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

    /// Prints the lines of enclosing calls before those of nested ones.
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
            format!("{:.0} %", (progress / total * 100.0).clamp(0.0, 100.0))
        }
        (Some(progress), _) => progress.to_string(),
        (None, _) => String::new(),
    };
    let message = message.map(safe).unwrap_or_default();
    format!("{done}  {message}").trim().to_owned()
}

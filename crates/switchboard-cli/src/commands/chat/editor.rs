//! The line editor of the prompt, with history and completion, on its own thread.
//!
//! Reading a terminal blocks, so the editor runs on a thread that lives as long as the program. It requests completions
//! from the chat, whose tasks continue while the user types.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Editor as LineEditor, Helper};
use tokio::sync::{mpsc, oneshot};

use crate::error::Failure;
use crate::live;
use crate::printer::Printer;

/// Timeout for completions.
const PATIENCE: Duration = Duration::from_secs(3);
const MAX_HISTORY: usize = 1_000;

pub(super) struct Editor {
    requests: mpsc::Sender<ReadRequest>,
    questions: mpsc::Receiver<Question>,
}

/// The outcome of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// One or several lines.
    Line(String),
    /// Ctrl-C on a non-empty line, which is discarded.
    Cleared,
    /// Ctrl-C on an empty line.
    Interrupted,
    /// Ctrl-D.
    Ended,
}

/// Candidates to replace the end of a line.
#[derive(Debug, Default)]
pub(super) struct Completions {
    /// Byte offset in the line where a candidate is inserted.
    pub(super) start: usize,
    pub(super) candidates: Vec<String>,
}

/// An event while a line is read.
pub(super) enum EditorEvent {
    Read(Read),
    Completion(Question),
}

/// A completion request of the editor.
pub(super) struct Question {
    /// The line up to the cursor.
    pub(super) line: String,
    pub(super) answer: oneshot::Sender<Completions>,
}

/// A request to read a line.
struct ReadRequest {
    prompt: String,
    in_history: bool,
    read: oneshot::Sender<Result<Read, ReadlineError>>,
}

impl Editor {
    pub(super) fn start(history: PathBuf, printer: &Printer) -> Result<Self, Failure> {
        let editor_failure = |error: &dyn std::fmt::Display| {
            Failure::failed("cannot show the prompt").because(error)
        };
        let (ask, questions) = mpsc::channel(1);
        let assistant = Assistant {
            ask,
            typed: Arc::default(),
        };
        announce_by(printer, &assistant.typed);
        let color = if printer.colors.stdout {
            ColorMode::Forced
        } else {
            ColorMode::Disabled
        };
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .color_mode(color)
            .history_ignore_space(true)
            .max_history_size(MAX_HISTORY)
            .map_err(|error| editor_failure(&error))?
            .build();
        let (requests, receiver) = mpsc::channel(1);
        let thread = std::thread::Builder::new().name("prompt".to_owned());
        let work = move || read_lines(config, assistant, &history, receiver);
        thread.spawn(work).map_err(|error| editor_failure(&error))?;
        Ok(Self {
            requests,
            questions,
        })
    }

    /// Starts reading a line. [`Reading::next`] returns its events.
    pub(super) async fn read(
        &mut self,
        prompt: &str,
        in_history: bool,
    ) -> Result<Reading<'_>, Failure> {
        let (sender, read) = oneshot::channel();
        let request = ReadRequest {
            prompt: prompt.to_owned(),
            in_history,
            read: sender,
        };
        self.requests.send(request).await.map_err(|_| gone())?;
        Ok(Reading {
            read,
            questions: &mut self.questions,
        })
    }
}

pub(super) struct Reading<'e> {
    read: oneshot::Receiver<Result<Read, ReadlineError>>,
    questions: &'e mut mpsc::Receiver<Question>,
}

impl Reading<'_> {
    /// Waits for the next event.
    pub(super) async fn next(&mut self) -> Result<EditorEvent, Failure> {
        tokio::select! {
            read = &mut self.read => match read {
                Ok(Ok(read)) => Ok(EditorEvent::Read(read)),
                Ok(Err(error)) => {
                    Err(Failure::failed("cannot read the terminal").because(error))
                }
                Err(_) => Err(gone()),
            },
            Some(question) = self.questions.recv() => Ok(EditorEvent::Completion(question)),
        }
    }
}

fn gone() -> Failure {
    Failure::failed("the prompt has stopped").hint("start the chat again; the session is saved")
}

fn read_lines(
    config: Config,
    assistant: Assistant,
    history: &Path,
    mut receiver: mpsc::Receiver<ReadRequest>,
) {
    let typed = Arc::clone(&assistant.typed);
    let Ok(mut editor) = LineEditor::<Assistant, FileHistory>::with_config(config) else {
        return;
    };
    editor.set_helper(Some(assistant));
    // A missing or unreadable history counts as empty.
    let _ = editor.load_history(history);
    while let Some(request) = receiver.blocking_recv() {
        *lock(&typed) = Typed {
            prompt: request.prompt.clone(),
            line: String::new(),
        };
        let read = match editor.readline(&request.prompt) {
            Ok(line) => {
                if request.in_history && editor.add_history_entry(&line).is_ok_and(|added| added) {
                    // If the history cannot be written, it lasts until the program ends.
                    let _ = editor.append_history(history);
                }
                Ok(Read::Line(joined(&line)))
            }
            Err(ReadlineError::Interrupted) if !lock(&typed).line.is_empty() => Ok(Read::Cleared),
            Err(ReadlineError::Interrupted) => Ok(Read::Interrupted),
            Err(ReadlineError::Eof) => Ok(Read::Ended),
            Err(error) => Err(error),
        };
        if request.read.send(read).is_err() {
            return;
        }
    }
}

/// Removes the trailing backslashes that continue a line.
fn joined(line: &str) -> String {
    line.replace("\\\n", "\n")
}

/// Whether the input continues on another line.
fn is_incomplete(text: &str) -> bool {
    let fences = text
        .lines()
        .filter(|line| line.trim_start().starts_with("```"));
    text.ends_with('\\') || fences.count() % 2 == 1
}

/// Provides completions, and tracks the current line.
struct Assistant {
    ask: mpsc::Sender<Question>,
    typed: Arc<Mutex<Typed>>,
}

/// The prompt and the text typed so far.
#[derive(Debug, Default)]
struct Typed {
    prompt: String,
    line: String,
}

/// Prints announcements above the prompt and redraws the prompt below.
///
/// rustyline's external printer is not used: with it, keys that arrive faster than they are read stay unread.
fn announce_by(printer: &Printer, typed: &Arc<Mutex<Typed>>) {
    let (printer, typed) = (printer.clone(), Arc::clone(typed));
    live::set_announcer(Box::new(move |message| {
        let Typed { prompt, line } = &*lock(&typed);
        printer.draw(&if printer.can_draw {
            format!("\r\u{1b}[J{message}\r\n{prompt}{line}")
        } else {
            format!("\n{message}\n")
        });
    }));
}

fn lock(typed: &Mutex<Typed>) -> MutexGuard<'_, Typed> {
    typed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Helper for Assistant {}

impl Highlighter for Assistant {}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &rustyline::Context<'_>) -> Option<String> {
        // rustyline calls this on every change of the line: the only way to know what Ctrl-C discards.
        line.clone_into(&mut lock(&self.typed).line);
        None
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_incomplete(context.input()) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (answer, answered) = oneshot::channel();
        let line = line.get(..position).unwrap_or(line).to_owned();
        if self.ask.blocking_send(Question { line, answer }).is_err() {
            return Ok((position, Vec::new()));
        }
        let completions = answered.blocking_recv().unwrap_or(Completions {
            start: position,
            candidates: Vec::new(),
        });
        let pair = |candidate: String| Pair {
            display: candidate.trim_end().to_owned(),
            replacement: candidate,
        };
        let candidates = completions.candidates.into_iter().map(pair).collect();
        Ok((completions.start.min(position), candidates))
    }
}

/// Applies the timeout to completions.
pub(super) async fn in_time(completing: impl Future<Output = Completions>) -> Completions {
    let completed = tokio::time::timeout(PATIENCE, completing).await;
    completed.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclosed_input_continues() {
        for (text, expected) in [
            ("", false),
            ("a", false),
            ("a \\", true),
            ("a \\\nb", false),
            ("```\ncode", true),
            ("```\ncode\n```", false),
        ] {
            assert_eq!(is_incomplete(text), expected, "{text:?}");
        }
        assert_eq!(joined("a \\\nb\nc\\d"), "a \nb\nc\\d");
    }
}

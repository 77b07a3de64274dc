//! The prompt: a line editor with history and completion, on a thread of its own.
//!
//! Reading a terminal blocks, so the editor has a thread that lives as long as the program, and what it needs to know on
//! the way (completions) is asked of the chat, which goes on while somebody types.

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

/// How long somebody waits for completions. A server that is slower completes nothing.
const PATIENCE: Duration = Duration::from_secs(3);
const MOST_HISTORY: usize = 1_000;

/// The editor.
pub(super) struct Editor {
    wishes: mpsc::Sender<Wish>,
    questions: mpsc::Receiver<Question>,
}

/// What came of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// A line, or several.
    Line(String),
    /// Ctrl-C with something in the line, which is gone.
    Cleared,
    /// Ctrl-C with nothing in it.
    Interrupted,
    /// Ctrl-D.
    Ended,
}

/// What can be put in place of the end of a line.
#[derive(Debug, Default)]
pub(super) struct Completions {
    /// Where in the line it goes.
    pub(super) start: usize,
    pub(super) candidates: Vec<String>,
}

/// What happens while a line is read.
pub(super) enum Heard {
    Read(Read),
    Completion(Question),
}

/// A question of the editor: how may this go on?
pub(super) struct Question {
    /// The line up to the cursor.
    pub(super) line: String,
    pub(super) answer: oneshot::Sender<Completions>,
}

/// A line that somebody wants read.
struct Wish {
    prompt: String,
    remembered: bool,
    read: oneshot::Sender<Result<Read, ReadlineError>>,
}

impl Editor {
    /// Starts the thread.
    pub(super) fn start(history: PathBuf, printer: &Printer) -> Result<Self, Failure> {
        let unable = |error: &dyn std::fmt::Display| {
            Failure::failed("the prompt cannot be shown").because(error)
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
            .max_history_size(MOST_HISTORY)
            .map_err(|error| unable(&error))?
            .build();
        let (wishes, wanted) = mpsc::channel(1);
        let thread = std::thread::Builder::new().name("prompt".to_owned());
        let work = move || read_lines(config, assistant, &history, wanted);
        thread.spawn(work).map_err(|error| unable(&error))?;
        Ok(Self { wishes, questions })
    }

    /// Wants a line read. What happens until then is heard with [`Reading::next`].
    pub(super) async fn read(
        &mut self,
        prompt: &str,
        remembered: bool,
    ) -> Result<Reading<'_>, Failure> {
        let (sender, read) = oneshot::channel();
        let wish = Wish {
            prompt: prompt.to_owned(),
            remembered,
            read: sender,
        };
        self.wishes.send(wish).await.map_err(|_| gone())?;
        Ok(Reading {
            read,
            questions: &mut self.questions,
        })
    }
}

/// A line that is being read.
pub(super) struct Reading<'e> {
    read: oneshot::Receiver<Result<Read, ReadlineError>>,
    questions: &'e mut mpsc::Receiver<Question>,
}

impl Reading<'_> {
    /// What happens next.
    pub(super) async fn next(&mut self) -> Result<Heard, Failure> {
        tokio::select! {
            read = &mut self.read => match read {
                Ok(Ok(read)) => Ok(Heard::Read(read)),
                Ok(Err(error)) => {
                    Err(Failure::failed("the terminal cannot be read").because(error))
                }
                Err(_) => Err(gone()),
            },
            Some(question) = self.questions.recv() => Ok(Heard::Completion(question)),
        }
    }
}

fn gone() -> Failure {
    Failure::failed("the prompt is gone").hint("start the chat again; the session is not lost")
}

fn read_lines(
    config: Config,
    assistant: Assistant,
    history: &Path,
    mut wanted: mpsc::Receiver<Wish>,
) {
    let typed = Arc::clone(&assistant.typed);
    let Ok(mut editor) = LineEditor::<Assistant, FileHistory>::with_config(config) else {
        return;
    };
    editor.set_helper(Some(assistant));
    // Without a history that can be read there is none yet.
    let _ = editor.load_history(history);
    while let Some(wish) = wanted.blocking_recv() {
        *lock(&typed) = Typed {
            prompt: wish.prompt.clone(),
            line: String::new(),
        };
        let read = match editor.readline(&wish.prompt) {
            Ok(line) => {
                if wish.remembered && editor.add_history_entry(&line).is_ok_and(|added| added) {
                    // A convenience: where it cannot be kept, it is there until the end.
                    let _ = editor.append_history(history);
                }
                Ok(Read::Line(joined(&line)))
            }
            Err(ReadlineError::Interrupted) if !lock(&typed).line.is_empty() => Ok(Read::Cleared),
            Err(ReadlineError::Interrupted) => Ok(Read::Interrupted),
            Err(ReadlineError::Eof) => Ok(Read::Ended),
            Err(error) => Err(error),
        };
        if wish.read.send(read).is_err() {
            return;
        }
    }
}

/// The text of several lines: the marks that said that a line goes on are taken out.
fn joined(line: &str) -> String {
    line.replace("\\\n", "\n")
}

/// Whether a text wants another line.
fn goes_on(text: &str) -> bool {
    let fences = text
        .lines()
        .filter(|line| line.trim_start().starts_with("```"));
    text.ends_with('\\') || fences.count() % 2 == 1
}

/// What the editor asks while somebody types.
struct Assistant {
    ask: mpsc::Sender<Question>,
    typed: Arc<Mutex<Typed>>,
}

/// What stands at the prompt.
#[derive(Debug, Default)]
struct Typed {
    prompt: String,
    line: String,
}

/// Shows messages to somebody who types: above the prompt, which is drawn anew below with what is in it.
///
/// The editor has a way of its own for this, but while that is in use it leaves keys lying that come faster than it reads.
fn announce_by(printer: &Printer, typed: &Arc<Mutex<Typed>>) {
    let (printer, typed) = (printer.clone(), Arc::clone(typed));
    live::set_messenger(Box::new(move |message| {
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
        // This is called whenever the line has changed, and the only way to know what Ctrl-C throws away.
        line.clone_into(&mut lock(&self.typed).line);
        None
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if goes_on(context.input()) {
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

/// Completions that take no longer than anybody waits.
pub(super) async fn in_time(completing: impl Future<Output = Completions>) -> Completions {
    let completed = tokio::time::timeout(PATIENCE, completing).await;
    completed.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_goes_on_while_it_is_open() {
        for (text, expected) in [
            ("", false),
            ("a", false),
            ("a \\", true),
            ("a \\\nb", false),
            ("```\ncode", true),
            ("```\ncode\n```", false),
        ] {
            assert_eq!(goes_on(text), expected, "{text:?}");
        }
        assert_eq!(joined("a \\\nb\nc\\d"), "a \nb\nc\\d");
    }
}

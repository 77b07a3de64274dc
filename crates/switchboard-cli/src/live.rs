//! Live terminal output: status lines that are redrawn in place and removed afterwards, and the lock that prompts take
//! on the terminal.
//!
//! No line fills the terminal's width: the `^C` that the terminal echoes after the last one must not wrap, or the lines
//! could not be erased.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError};
use std::time::Duration;

use anstyle::Style;
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::time::{Instant, interval_at};
use unicode_width::UnicodeWidthStr as _;

use crate::printer::{Printer, paint};
use crate::screen;
use crate::terminal::{self, Size, fitted};

/// Interval between redraws.
pub(crate) const TICK: Duration = Duration::from_millis(80);

/// Delay before a line is shown: shorter work shows none.
const PATIENCE: Duration = Duration::from_millis(500);

/// Columns reserved for the echoed `^C`.
const MARGIN: usize = 3;

/// One line, in differently styled pieces.
pub(crate) type Line = Vec<(Style, String)>;

/// Awaits `work`, drawing a status line on a terminal while it takes long. `status` gets the elapsed time and the
/// spinner's frame number.
pub(crate) async fn with_line<T>(
    printer: &Printer,
    work: impl Future<Output = T>,
    status: impl Fn(Duration, usize) -> Line,
) -> T {
    if !printer.is_live() {
        return work.await;
    }
    let mut work = std::pin::pin!(work);
    let started = Instant::now();
    let mut ticks = interval_at(started + PATIENCE, TICK);
    let mut live = Live::new(printer);
    let mut turn = 0;
    loop {
        tokio::select! {
            outcome = &mut work => return outcome,
            _ = ticks.tick() => {
                live.draw(&[status(started.elapsed(), turn)]);
                turn += 1;
            }
        }
    }
}

/// Whether a prompt holds the terminal. Global, like the terminal.
static PAUSED: AtomicBool = AtomicBool::new(false);
/// Number of live lines on the screen.
static DRAWN: AtomicUsize = AtomicUsize::new(0);
/// Serializes prompts.
static PROMPTS: Mutex<()> = Mutex::const_new(());

/// Waits for exclusive use of the terminal. Erases live lines; none are drawn while the lock is held. On the screen of
/// a chat they stay, above the question.
pub(crate) async fn lock_terminal(printer: &Printer) -> TerminalLock {
    // Let pending output be printed before the prompt.
    tokio::task::yield_now().await;
    let turn = PROMPTS.lock().await;
    if !screen::is_active() {
        PAUSED.store(true, Ordering::Relaxed);
        printer.draw(&erase_sequence());
    }
    prompts().open_since = Some(Instant::now());
    TerminalLock { _guard: turn }
}

/// How long prompts have held the terminal.
struct PromptTime {
    /// Of those that are answered.
    past: Duration,
    /// When the open one began.
    open_since: Option<Instant>,
}

static PROMPT_TIME: StdMutex<PromptTime> = StdMutex::new(PromptTime {
    past: Duration::ZERO,
    open_since: None,
});

impl PromptTime {
    fn total(&self) -> Duration {
        let open = self.open_since.map(|since| since.elapsed());
        self.past + open.unwrap_or_default()
    }
}

fn prompts() -> StdMutexGuard<'static, PromptTime> {
    PROMPT_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Total time that prompts have held the terminal since the program started, with the one that is open.
pub(crate) fn prompt_time() -> Duration {
    prompts().total()
}

static DISMISSED: Notify = Notify::const_new();

/// Cancels every open and queued question: the user does not want to answer.
pub(crate) fn dismiss() {
    DISMISSED.notify_waiters();
}

/// Awaits a question's answer; `None` if it is dismissed first.
pub(crate) async fn unless_dismissed<T>(question: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        () = DISMISSED.notified() => None,
        answer = question => Some(answer),
    }
}

/// Whether the terminal lock is held by the input prompt rather than by a question.
static TYPING: AtomicBool = AtomicBool::new(false);

/// While it lives, the user is typing at a prompt without a live area.
pub(crate) struct Typing;

pub(crate) fn typing() -> Typing {
    TYPING.store(true, Ordering::Relaxed);
    Typing
}

impl Drop for Typing {
    fn drop(&mut self) {
        TYPING.store(false, Ordering::Relaxed);
    }
}

/// Tells a user who is typing at a prompt without a live area that a question waits.
pub(crate) fn announce(title: &str, printer: &Printer) {
    if TYPING.load(Ordering::Relaxed) {
        printer.draw(&format!("\n{title}: press enter to see it\n"));
    }
}

/// Whether a prompt holds the terminal, so that nothing may be drawn.
pub(crate) fn is_paused() -> bool {
    PAUSED.load(Ordering::Relaxed)
}

/// The lock on the terminal: while it lives, no live lines are drawn and other prompts wait.
pub(crate) struct TerminalLock {
    _guard: MutexGuard<'static, ()>,
}

impl Drop for TerminalLock {
    fn drop(&mut self) {
        let mut prompts = prompts();
        prompts.past = prompts.total();
        prompts.open_since = None;
        drop(prompts);
        PAUSED.store(false, Ordering::Relaxed);
    }
}

/// Live lines on the terminal, erased on drop.
#[derive(Debug)]
pub(crate) struct Live<'p> {
    printer: &'p Printer,
}

impl<'p> Live<'p> {
    pub(crate) fn new(printer: &'p Printer) -> Self {
        Self { printer }
    }

    /// Replaces the lines on the screen, as many as fit, unless a prompt holds the terminal.
    pub(crate) fn draw(&mut self, lines: &[Line]) {
        if is_paused() || screen::set_work(lines.to_vec()) {
            return;
        }
        let size = terminal::error_size().unwrap_or(Size {
            columns: 80,
            rows: 24,
        });
        let mut text = erase_sequence();
        let most = size.rows.saturating_sub(1).max(1);
        for (index, line) in lines.iter().take(most).enumerate() {
            if index > 0 {
                text.push('\n');
            }
            let is_last = index + 1 == most && lines.len() > most;
            if is_last {
                let _ = write!(text, "… and {} more", lines.len() - index);
            } else {
                self.add(&mut text, line, size.columns.saturating_sub(MARGIN));
            }
        }
        DRAWN.store(lines.len().min(most), Ordering::Relaxed);
        self.printer.draw(&text);
    }

    pub(crate) fn clear(&mut self) {
        if screen::set_work(Vec::new()) {
            return;
        }
        self.printer.draw(&erase_sequence());
    }

    fn add(&self, text: &mut String, line: &Line, mut room: usize) {
        for (style, piece) in line {
            if room == 0 {
                break;
            }
            let piece = fitted(piece, room);
            room = room.saturating_sub(piece.width());
            text.push_str(&self.printer.styled(*style, piece));
        }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The escape sequence that moves to the start of the first line and erases from there.
fn erase_sequence() -> String {
    match DRAWN.swap(0, Ordering::Relaxed) {
        0 => String::new(),
        1 => "\r\u{1b}[J".to_owned(),
        lines => format!("\r\u{1b}[{}A\u{1b}[J", lines - 1),
    }
}

/// A line as text, without a line break.
pub(crate) fn painted(line: &Line) -> String {
    let piece = |(style, text): &(Style, String)| paint(*style, text);
    line.iter().map(piece).collect()
}

/// The spinner's character for a frame number.
pub(crate) fn spinner(turn: usize) -> &'static str {
    const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
    FRAMES.get(turn % FRAMES.len()).copied().unwrap_or("•")
}

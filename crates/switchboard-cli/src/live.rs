//! Lines that change while something goes on, and are gone afterwards.
//!
//! No line is as wide as the terminal: what Ctrl-C echoes after the last one must not wrap, or the lines could not be
//! taken away again.

use std::fmt::Write as _;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anstyle::Style;
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::time::{Instant, interval_at};
use unicode_width::UnicodeWidthStr as _;

use crate::printer::Printer;
use crate::terminal::{self, Size, fitted};

/// How often lines that move are drawn anew.
pub(crate) const TICK: Duration = Duration::from_millis(80);

/// Work that is done sooner is not shown.
const PATIENCE: Duration = Duration::from_millis(500);

/// Room for what Ctrl-C echoes.
const MARGIN: usize = 3;

/// One line, in pieces of different styles.
pub(crate) type Line = Vec<(Style, String)>;

/// Waits for some work, with a line on a terminal while it takes its time. `shown_as` gets how long it has been going on,
/// and the turn of the spinner.
pub(crate) async fn shown<T>(
    printer: &Printer,
    work: impl Future<Output = T>,
    shown_as: impl Fn(Duration, usize) -> Line,
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
                live.draw(&[shown_as(started.elapsed(), turn)]);
                turn += 1;
            }
        }
    }
}

/// Whether somebody else has the terminal. There is one terminal, so there is one such mark.
static PAUSED: AtomicBool = AtomicBool::new(false);
/// How many lines that move are on the screen.
static DRAWN: AtomicUsize = AtomicUsize::new(0);
/// Whose turn it is to ask the person at the terminal something.
static FLOOR: Mutex<()> = Mutex::const_new(());

/// Waits until nobody else asks the person something. What moves is taken away and nothing is drawn for as long as what
/// this gives lives.
pub(crate) async fn floor(printer: &Printer) -> Floor {
    // What has happened is shown before anything is asked about it.
    tokio::task::yield_now().await;
    let turn = FLOOR.lock().await;
    PAUSED.store(true, Ordering::Relaxed);
    printer.draw(&removal());
    Floor {
        begun: Instant::now(),
        _turn: turn,
    }
}

/// Milliseconds that questions to the person have taken.
static ASKED: AtomicU64 = AtomicU64::new(0);

/// How long the person has been asked something, since the program began.
pub(crate) fn asked() -> Duration {
    Duration::from_millis(ASKED.load(Ordering::Relaxed))
}

static DISMISSED: Notify = Notify::const_new();

/// Takes back every question that is asked or waits to be, because the person does not want to be asked.
pub(crate) fn dismiss() {
    DISMISSED.notify_waiters();
}

/// What a question leads to; `None` if it is dismissed before.
pub(crate) async fn unless_dismissed<T>(question: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        () = DISMISSED.notified() => None,
        answer = question => Some(answer),
    }
}

/// Who shows a line to somebody who has the floor.
type Messenger = Box<dyn FnMut(&str) + Send>;

static MESSENGER: std::sync::Mutex<Option<Messenger>> = std::sync::Mutex::new(None);

/// From now on, whoever has the floor for long can be told something by this.
pub(crate) fn set_messenger(messenger: Messenger) {
    let mut place = MESSENGER.lock().unwrap_or_else(PoisonError::into_inner);
    *place = Some(messenger);
}

/// Whether the person has the floor to type what they like, as opposed to answering a question.
static TYPING: AtomicBool = AtomicBool::new(false);

/// While it lives, the person types at a prompt.
pub(crate) struct Typing;

/// The person types at a prompt from now on.
pub(crate) fn typing() -> Typing {
    TYPING.store(true, Ordering::Relaxed);
    Typing
}

impl Drop for Typing {
    fn drop(&mut self) {
        TYPING.store(false, Ordering::Relaxed);
    }
}

/// Tells a person who types that somebody wants the floor. A question that is being answered is not disturbed.
pub(crate) fn knock(message: &str) {
    if !TYPING.load(Ordering::Relaxed) {
        return;
    }
    let mut messenger = MESSENGER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(messenger) = messenger.as_mut() {
        messenger(message);
    }
}

/// Whether somebody is being asked something, so that nothing may be shown.
pub(crate) fn is_paused() -> bool {
    PAUSED.load(Ordering::Relaxed)
}

/// While it lives, nothing moves and nobody else asks.
pub(crate) struct Floor {
    begun: Instant,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Floor {
    fn drop(&mut self) {
        let took = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        ASKED.fetch_add(took, Ordering::Relaxed);
        PAUSED.store(false, Ordering::Relaxed);
    }
}

/// Lines on the terminal. Dropped, they are taken away.
#[derive(Debug)]
pub(crate) struct Live<'p> {
    printer: &'p Printer,
}

impl<'p> Live<'p> {
    pub(crate) fn new(printer: &'p Printer) -> Self {
        Self { printer }
    }

    /// Draws these lines in place of those that were there, as many as the terminal has room for, unless somebody else
    /// has the terminal.
    pub(crate) fn draw(&mut self, lines: &[Line]) {
        if is_paused() {
            return;
        }
        let size = terminal::error_size().unwrap_or(Size {
            columns: 80,
            rows: 24,
        });
        let mut text = removal();
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

    /// Takes the lines away.
    pub(crate) fn clear(&mut self) {
        self.printer.draw(&removal());
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

/// What takes the lines away: to the start of the first, then everything from there.
fn removal() -> String {
    match DRAWN.swap(0, Ordering::Relaxed) {
        0 => String::new(),
        1 => "\r\u{1b}[J".to_owned(),
        lines => format!("\r\u{1b}[{}A\u{1b}[J", lines - 1),
    }
}

/// What moves at the beginning of a line, by how often it was drawn.
pub(crate) fn spinner(turn: usize) -> &'static str {
    const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
    FRAMES.get(turn % FRAMES.len()).copied().unwrap_or("•")
}

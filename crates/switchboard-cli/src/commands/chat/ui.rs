//! The live area of the interactive chat: reads keys, edits the input, shows the menu and the status line.
//!
//! Runs beside the work of the chat, so that the input can be used while a turn or a command runs. A line entered
//! meanwhile waits in a queue, unless it is a command that only shows something. While a question is being answered, its
//! dialog gets the keys.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use anstyle::Style;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use switchboard::status::ServerStatus;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::complete::{self, Subject};
use super::menu::{Candidate, Menu};
use super::status::{self, Status};
use crate::error::Failure;
use crate::focus::{self, Pressed, Request};
use crate::input::{Edited, History, Input};
use crate::interrupt::Interrupts;
use crate::live::Line;
use crate::printer::style;
use crate::questions::safe;
use crate::screen::{self, Frame};
use crate::session::CommandHost;
use crate::terminal::{self, fitted};
#[cfg(unix)]
use crate::{attributes, environment, picture};

/// A question gets the keys when none was pressed for this time, so that no key meant for the input answers it.
const QUIET: Duration = Duration::from_millis(300);
/// A second Ctrl-C within this time leaves the chat.
const LEAVING: Duration = Duration::from_secs(2);
/// The screen is drawn again when its size has not changed for this time.
const RESIZE: Duration = Duration::from_millis(60);
/// Queued lines shown.
const MAX_QUEUED_ROWS: usize = 3;

/// What the user entered.
#[derive(Debug)]
pub(super) enum Entered {
    Line {
        text: String,
        /// The input as it was shown.
        echo: Vec<Line>,
    },
    /// Ctrl-O: show the last result in full.
    Expand,
    /// Ctrl-D on an empty input, or the end of the terminal.
    End,
}

pub(super) struct Ui {
    state: RefCell<State>,
    /// Wakes [`run`](Self::run) to draw.
    changed: Notify,
    sender: mpsc::UnboundedSender<Entered>,
    interrupts: Interrupts,
}

struct State {
    input: Input,
    status: Status,
    menu: Option<Menu>,
    /// The candidates found last, unfiltered.
    found: Option<(Subject, Rc<[Candidate]>)>,
    /// Whether the candidates may have changed since.
    is_stale: bool,
    /// Whether Tab was pressed before the candidates were there.
    wants_first: bool,
    /// A menu that the user closed: it stays closed until the text changes.
    closed: Option<String>,
    /// Entered lines that have not been taken.
    queued: VecDeque<String>,
    is_working: bool,
    last_key: Instant,
    /// Until when Ctrl-C leaves.
    leaving: Option<Instant>,
    resized: Option<Instant>,
    /// The question that waits for the keys, and the one that has them.
    waiting: Option<Request>,
    focused: Option<mpsc::UnboundedSender<Pressed>>,
}

impl Ui {
    pub(super) fn new(
        history: History,
        status: Status,
        interrupts: Interrupts,
    ) -> (Self, mpsc::UnboundedReceiver<Entered>) {
        // Unbounded: filled by a person.
        let (sender, entered) = mpsc::unbounded_channel();
        let state = State {
            input: Input::new(history),
            status,
            menu: None,
            found: None,
            is_stale: false,
            wants_first: false,
            closed: None,
            queued: VecDeque::new(),
            is_working: false,
            last_key: Instant::now() - QUIET,
            leaving: None,
            resized: None,
            waiting: None,
            focused: None,
        };
        let ui = Self {
            state: RefCell::new(state),
            changed: Notify::new(),
            sender,
            interrupts,
        };
        (ui, entered)
    }

    /// Sets whether a turn or a command runs, which Esc interrupts.
    pub(super) fn set_working(&self, is_working: bool) {
        self.state.borrow_mut().is_working = is_working;
        self.changed.notify_one();
    }

    /// Changes the status line.
    pub(super) fn set_status(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.state.borrow_mut().status);
        self.changed.notify_one();
    }

    pub(super) fn toggle_vi(&self) -> bool {
        self.state.borrow_mut().input.toggle_vi()
    }

    /// Removes a line from the queue: it is being handled.
    pub(super) fn taken(&self, text: &str) {
        let queued = &mut self.state.borrow_mut().queued;
        if let Some(place) = queued.iter().position(|queued| queued == text) {
            queued.remove(place);
        }
        self.changed.notify_one();
    }

    /// Whether a question is being answered.
    pub(super) fn is_asking(&self) -> bool {
        self.state.borrow().focused.is_some()
    }

    /// Handles Ctrl-C outside of a turn: discards the input, or asks for a second one. Returns whether to leave.
    pub(super) fn interrupted(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let now = Instant::now();
        let is_second = state.leaving.take().is_some_and(|until| now < until);
        if !state.input.is_empty() {
            state.input.clear();
            state.menu = None;
        } else if is_second {
            return true;
        } else {
            state.leaving = Some(now + LEAVING);
        }
        self.changed.notify_one();
        false
    }

    /// Reads keys until the chat ends.
    pub(super) async fn run(&self, session: &CommandHost<'_>) -> Result<Infallible, Failure> {
        let mut events = read_events()?;
        let mut requests = focus::own();
        let mut changes = session.host.events();
        let mut finding: Option<LocalBoxFuture<'_, (Subject, Rc<[Candidate]>)>> = None;
        let mut connected = 0;
        loop {
            let statuses = session.host.statuses();
            let now = statuses
                .iter()
                .filter(|each| each.state.is_connected())
                .count();
            if now != connected {
                connected = now;
                self.state.borrow_mut().is_stale = true;
            }
            if let Some(subject) = self.wanted_subject() {
                let found = complete::candidates(subject.clone(), session);
                finding = Some(async move { (subject, found.await) }.boxed_local());
            }
            self.draw(&statuses);
            let deadline = self.next_deadline();
            let closed = self.state.borrow().focused.clone();
            tokio::select! {
                event = events.recv() => match event {
                    Some(Ok(event)) => self.event(event),
                    Some(Err(error)) => {
                        return Err(Failure::failed("cannot read the terminal").because(error));
                    }
                    None => _ = self.sender.send(Entered::End),
                },
                Some(request) = requests.recv() => self.state.borrow_mut().waiting = Some(request),
                () = self.changed.notified() => {}
                () = async { match closed { Some(keys) => keys.closed().await, None => std::future::pending().await } } => {
                    self.state.borrow_mut().focused = None;
                }
                found = async { match &mut finding { Some(finding) => finding.await, None => std::future::pending().await } } => {
                    finding = None;
                    let mut state = self.state.borrow_mut();
                    state.found = Some(found);
                    state.filter();
                    if state.wants_first && state.menu.is_some() {
                        state.insert_selected();
                    }
                }
                _ = changes.recv() => {}
                () = async { match deadline { Some(deadline) => sleep_until(deadline).await, None => std::future::pending().await } } => {
                    self.state.borrow_mut().elapsed();
                }
            }
            self.state.borrow_mut().hand_over();
        }
    }

    /// The subject of the menu whose candidates are to be found.
    fn wanted_subject(&self) -> Option<Subject> {
        let mut state = self.state.borrow_mut();
        let subject = state.subject()?;
        let is_known = state
            .found
            .as_ref()
            .is_some_and(|(known, _)| *known == subject);
        if is_known && !state.is_stale {
            return None;
        }
        state.is_stale = false;
        if !is_known {
            // What is known at once can be chosen at once.
            let known = complete::known(&subject).into();
            state.found = Some((subject.clone(), known));
            state.filter();
        }
        Some(subject)
    }

    fn next_deadline(&self) -> Option<Instant> {
        let state = self.state.borrow();
        let is_waiting = state.waiting.is_some() && state.input.is_empty();
        let quiet = is_waiting.then(|| state.last_key + QUIET);
        [quiet, state.leaving, state.resized]
            .into_iter()
            .flatten()
            .min()
    }

    fn event(&self, event: Event) {
        let mut state = self.state.borrow_mut();
        // A key pressed after the end of a question is meant for the input.
        if state
            .focused
            .as_ref()
            .is_some_and(mpsc::UnboundedSender::is_closed)
        {
            state.focused = None;
        }
        match event {
            Event::Resize(..) => state.resized = Some(Instant::now() + RESIZE),
            Event::Paste(text) => {
                state.last_key = Instant::now();
                if let Some(keys) = &state.focused {
                    let _ = keys.send(Pressed::Paste(text));
                } else {
                    state.input.paste(&text);
                    state.filter();
                }
            }
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                state.last_key = Instant::now();
                state.leaving = None;
                if is_control(key, 'z') && cfg!(unix) {
                    drop(state);
                    terminal::stop_process();
                } else if is_control(key, 'c') {
                    // Without signals for keys, as on Windows.
                    self.interrupts.raise();
                } else if let Some(keys) = &state.focused {
                    let _ = keys.send(Pressed::Key(key));
                } else {
                    self.key(&mut state, key);
                }
            }
            _ => {}
        }
    }

    fn key(&self, state: &mut State, key: KeyEvent) {
        state.wants_first = false;
        if state.menu_key(key) {
            return;
        }
        match key.code {
            KeyCode::Tab if state.waiting.is_some() => state.grant(),
            KeyCode::Tab => state.wants_first = state.subject().is_some(),
            KeyCode::Char('d') if is_control(key, 'd') && state.input.is_empty() => {
                let _ = self.sender.send(Entered::End);
            }
            KeyCode::Char('o') if is_control(key, 'o') => {
                let _ = self.sender.send(Entered::Expand);
            }
            KeyCode::Char('l') if is_control(key, 'l') => screen::resized(),
            KeyCode::Char('r') if is_control(key, 'r') => state.search_history(),
            _ => match state.input.key(key) {
                Edited::Submitted => {
                    if state.complete_entered() {
                        return;
                    }
                    self.submit(state);
                }
                Edited::Changed => state.filter(),
                Edited::Unused if key.code == KeyCode::Esc && state.is_working => {
                    self.interrupts.raise();
                }
                Edited::Unused => {}
            },
        }
    }

    fn submit(&self, state: &mut State) {
        state.menu = None;
        if state.input.text().0.trim().is_empty() {
            state.input.clear();
            return;
        }
        let echo = state.input.echo(screen::size().columns);
        let text = state.input.take();
        state.queued.push_back(text.clone());
        let _ = self.sender.send(Entered::Line { text, echo });
    }

    fn draw(&self, servers: &[ServerStatus]) {
        let state = self.state.borrow();
        if state.resized.is_some() {
            return;
        }
        let columns = screen::size().columns;
        let mut rows: Vec<Line> = Vec::new();
        if state.is_working {
            // As after the turn, when an empty line has been printed.
            rows.push(Line::new());
            let hidden = state.queued.len().saturating_sub(MAX_QUEUED_ROWS);
            for text in state.queued.iter().skip(hidden) {
                let line = safe(text.lines().next().unwrap_or_default());
                let line = fitted(&line, columns.saturating_sub(12)).into_owned();
                rows.push(vec![(style::QUIET, format!("  queued: {line}"))]);
            }
        }
        if let Some(waiting) = state.waiting.as_ref().filter(|waiting| !waiting.is_wanted) {
            let title = fitted(&waiting.title, columns.saturating_sub(20)).into_owned();
            rows.push(vec![
                (style::WARNING, "? ".to_owned()),
                (Style::new(), title),
                (style::QUIET, ": tab answers".to_owned()),
            ]);
        }
        let above = rows.len();
        let (input, (row, column)) = state.input.rows(columns);
        rows.extend(input);
        if let Some(menu) = &state.menu {
            rows.extend(menu.rows(columns));
        }
        let hint = match (state.leaving, state.is_working, state.input.mode()) {
            (Some(_), ..) => Some("ctrl-C again leaves".to_owned()),
            (None, true, _) => Some("esc interrupts".to_owned()),
            (None, false, Some(mode)) => Some(mode.to_owned()),
            (None, false, None) => None,
        };
        rows.push(status::line(
            &state.status,
            servers,
            hint.as_deref(),
            columns,
        ));
        screen::set_input(Frame {
            rows,
            cursor: Some((above + row, column)),
        });
    }
}

impl State {
    /// The subject of the menu for the text before the cursor.
    fn subject(&self) -> Option<Subject> {
        let (text, position) = self.input.text();
        let line = text.get(..position)?;
        if self.closed.as_deref() == Some(line) {
            return None;
        }
        complete::subject(line).map(|(subject, ..)| subject)
    }

    /// Opens, closes or filters the menu after a change of the text.
    fn filter(&mut self) {
        let (text, position) = self.input.text();
        let line = text.get(..position).unwrap_or_default();
        let subject = complete::subject(line);
        let is_closed = self.closed.as_deref() == Some(line);
        self.menu = match (&subject, &self.found) {
            (Some((subject, start, word)), Some((known, found))) if known == subject => {
                Menu::of(*start, word, found)
            }
            _ => None,
        };
        if is_closed {
            self.menu = None;
        } else {
            self.closed = None;
        }
        if subject.is_none() {
            // Servers and files may have changed when the next menu opens.
            self.found = None;
        }
    }

    /// Handles a key of the open menu. Returns whether it was one.
    fn menu_key(&mut self, key: KeyEvent) -> bool {
        let Some(menu) = &mut self.menu else {
            return false;
        };
        match key.code {
            KeyCode::Up => menu.up(),
            KeyCode::Down => menu.down(),
            KeyCode::Char('p') if is_control(key, 'p') => menu.up(),
            KeyCode::Char('n') if is_control(key, 'n') => menu.down(),
            KeyCode::Esc => {
                let (text, position) = self.input.text();
                self.closed = text.get(..position).map(str::to_owned);
                self.menu = None;
            }
            KeyCode::Tab => self.insert_selected(),
            _ => return false,
        }
        true
    }

    /// Completes the word on Enter, if it was begun in the menu. Returns whether the line stays open.
    fn complete_entered(&mut self) -> bool {
        let (text, position) = self.input.text();
        let Some(menu) = &self.menu else {
            return false;
        };
        let word = text.get(menu.start..position).unwrap_or_default();
        let Some(candidate) = menu.entered(word) else {
            return false;
        };
        // A command that takes nothing more is run at once.
        let is_whole = candidate.text.starts_with('/') && !candidate.text.ends_with(' ');
        let chosen = Some((menu.start, candidate.text.clone()));
        self.insert(chosen);
        !is_whole
    }

    fn insert_selected(&mut self) {
        self.wants_first = false;
        let menu = self.menu.as_ref();
        let chosen = menu.and_then(|menu| Some((menu.start, menu.selected()?.text.clone())));
        self.insert(chosen);
    }

    fn insert(&mut self, chosen: Option<(usize, String)>) {
        if let Some((start, text)) = chosen {
            let gap = if text.starts_with('@') { " " } else { "" };
            self.input.complete(start, &format!("{text}{gap}"));
            self.filter();
        }
    }

    /// Shows earlier inputs that contain the typed letters.
    fn search_history(&mut self) {
        let (text, position) = self.input.text();
        let word = text.get(..position).unwrap_or_default().to_owned();
        let entries = self.input.history().latest();
        let entries = entries.iter().filter(|entry| !entry.contains('\n'));
        let candidates: Vec<Candidate> = entries
            .map(|entry| Candidate::new(entry.clone(), ""))
            .collect();
        self.menu = Menu::of(0, &word, &candidates);
    }

    /// Handles the end of a waiting time.
    fn elapsed(&mut self) {
        let now = Instant::now();
        if self.leaving.is_some_and(|until| now >= until) {
            self.leaving = None;
        }
        if self.resized.is_some_and(|until| now >= until) {
            self.resized = None;
            screen::resized();
            if let Some(keys) = &self.focused {
                let _ = keys.send(Pressed::Resized);
            }
        }
    }

    /// Gives the keys to a waiting question, unless the user is typing.
    fn hand_over(&mut self) {
        let is_wanted = self
            .waiting
            .as_ref()
            .is_some_and(|request| request.is_wanted);
        let is_quiet = is_wanted || self.last_key.elapsed() >= QUIET;
        let is_gone = |request: &Request| request.granted.is_closed();
        if self.waiting.as_ref().is_some_and(is_gone) {
            self.waiting = None;
        }
        if self.waiting.is_some() && self.input.is_empty() && is_quiet && self.focused.is_none() {
            self.grant();
        }
    }

    fn grant(&mut self) {
        if let Some(request) = self.waiting.take()
            && request.granted.send(()).is_ok()
        {
            self.focused = Some(request.keys);
        }
    }
}

/// Reads the terminal on a thread that lives as long as the program.
fn read_events() -> Result<mpsc::Receiver<std::io::Result<Event>>, Failure> {
    let (sender, events) = mpsc::channel(256);
    let thread = std::thread::Builder::new().name("keys".to_owned());
    let work = move || {
        #[cfg(unix)]
        if environment::may_show_sixel() {
            // From here on, a resize is noticed and reported by the first read below.
            while crossterm::event::poll(Duration::ZERO).is_ok_and(|is_there| is_there) {
                let _ = sender.blocking_send(crossterm::event::read());
            }
            screen::write_query(attributes::QUERY);
            let pass_on = |event| _ = sender.blocking_send(Ok(event));
            // An error is met again below.
            picture::set_sixel(attributes::read(pass_on).unwrap_or(false));
        }
        loop {
            let event = crossterm::event::read();
            let is_over = event.is_err();
            if sender.blocking_send(event).is_err() || is_over {
                return;
            }
        }
    };
    let failure =
        |error: std::io::Error| Failure::failed("cannot read the terminal").because(error);
    thread.spawn(work).map_err(failure)?;
    Ok(events)
}

fn is_control(key: KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers.contains(KeyModifiers::CONTROL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_after_the_end_of_a_question_goes_to_the_input() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::load(folder.path().join("history"));
        let interrupts = Interrupts::listen().unwrap();
        let (ui, _entered) = Ui::new(history, Status::default(), interrupts);
        let (keys, mut pressed) = mpsc::unbounded_channel();
        ui.state.borrow_mut().focused = Some(keys);
        let press = |character: char| {
            let key = KeyEvent::new(KeyCode::Char(character), KeyModifiers::NONE);
            ui.event(Event::Key(key));
        };
        press('q');
        assert!(matches!(pressed.try_recv(), Ok(Pressed::Key(_))));
        drop(pressed);
        press('a');
        assert_eq!(ui.state.borrow().input.text().0, "a");
    }
}

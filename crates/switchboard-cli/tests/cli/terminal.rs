//! The program on a pseudo-terminal, with the screen that a user would see.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize};
use switchboard_test::model::Turn;

use crate::chat::Machine;
use crate::servers::PYTHON;

/// Timeout of every wait; only a failing test reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The default answer of an approval, which is selected first.
pub(crate) const ASKED: &str = "❯ n  no";

/// Makes the terminal the controlling one, as a shell does, so that it sends signals.
const AS_A_SHELL: &str = "import os, sys
os.setsid()
terminal = os.open(sys.argv[1], os.O_RDWR)
for stream in range(3):
    os.dup2(terminal, stream)
os.execv(sys.argv[2], sys.argv[2:])";

/// Begins and ends an update that a terminal shows at once.
const UPDATE: [&[u8]; 2] = [b"\x1b[?2026h", b"\x1b[?2026l"];

/// Asks a terminal for its attributes.
const QUERY: &[u8] = b"\x1b[c";

/// The bytes written to the terminal, and its screen.
struct Shown {
    bytes: Vec<u8>,
    screen: vt100::Parser,
    /// Bytes of an update whose end has not arrived. The parser would show the part that has.
    held: Vec<u8>,
    ended: bool,
}

impl Shown {
    fn receive(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
        self.held.extend_from_slice(chunk);
        let [begin, end] = UPDATE;
        let last = |sequence: &[u8]| {
            let mut windows = self.held.windows(sequence.len());
            windows.rposition(|window| window == sequence)
        };
        let is_open = |start: &usize| last(end).is_none_or(|end| end < *start);
        let cut = (1..begin.len()).find(|length| self.held.ends_with(&begin[..*length]));
        let whole = match last(begin).filter(is_open) {
            Some(start) => start,
            None => self.held.len() - cut.unwrap_or(0),
        };
        let shown: Vec<u8> = self.held.drain(..whole).collect();
        self.screen.process(&shown);
    }
}

/// The program on a terminal.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<(Mutex<Shown>, Condvar)>,
}

impl Terminal {
    /// A terminal that has no graphics, and says so when it is asked.
    pub(crate) fn start(
        machine: &Machine,
        arguments: &[&str],
        columns: u16,
        variables: &[(&str, &str)],
    ) -> Self {
        Self::answering(
            Some("\u{1b}[?62;22c"),
            machine,
            arguments,
            columns,
            variables,
        )
    }

    /// A terminal that gives this answer when it is asked for its attributes.
    pub(crate) fn answering(
        answer: Option<&'static str>,
        machine: &Machine,
        arguments: &[&str],
        columns: u16,
        variables: &[(&str, &str)],
    ) -> Self {
        let (keys, name) = pseudo_terminal(columns);
        let context = &machine.context;
        let child = Command::new(&*PYTHON)
            .args(["-c", AS_A_SHELL, &name])
            .arg(assert_cmd::cargo::cargo_bin("switchboard"))
            .args(arguments)
            .env_clear()
            .env("TERM", "xterm")
            .env("NO_COLOR", "1")
            .env("HOME", context.path("home"))
            .env("PATH", context.path("bin"))
            .env("SWITCHBOARD_CONFIG_DIR", context.path("config"))
            .env("SWITCHBOARD_STATE_DIR", context.path("state"))
            .env("SWITCHBOARD_MANAGED_FILE", context.path("managed.toml"))
            .env("SWITCHBOARD_LOCAL_MODELS", "off")
            .env("ANTHROPIC_API_KEY", "key")
            .env("ANTHROPIC_BASE_URL", machine.model.anthropic_url())
            .envs(variables.iter().copied())
            .current_dir(context.path("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let shown = Arc::new((
            Mutex::new(Shown {
                bytes: Vec::new(),
                screen: vt100::Parser::new(50, columns, 500),
                held: Vec::new(),
                ended: false,
            }),
            Condvar::new(),
        ));
        let mut output = keys.try_clone().unwrap();
        std::thread::spawn({
            let shown = Arc::clone(&shown);
            move || {
                let mut answer = answer;
                let mut buffer = [0; 4096];
                loop {
                    // Reading fails while the other end is not open.
                    let read = output.read(&mut buffer).unwrap_or(0);
                    let mut place = shown.0.lock().unwrap();
                    place.receive(&buffer[..read]);
                    let is_asked = place.bytes.windows(QUERY.len()).any(|bytes| bytes == QUERY);
                    if let Some(text) = answer.take_if(|_| is_asked) {
                        output.write_all(text.as_bytes()).unwrap();
                    }
                    place.ended = read == 0 && !place.bytes.is_empty();
                    shown.1.notify_all();
                    if place.ended {
                        return;
                    }
                }
            }
        });
        Self { child, keys, shown }
    }

    /// Presses keys. A line reader may discard keys after the end of its line, so wait for a prompt first.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen contains this.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) {
        self.until(text, |screen| screen.contains(text));
    }

    /// Waits for the end of the turn: until then, Ctrl-C would interrupt it.
    #[track_caller]
    pub(crate) fn sees_idle(&self) {
        self.until("end of the turn", |screen| {
            !screen.contains("esc interrupts")
        });
    }

    /// Waits for an empty prompt at the end of the screen, above the status line, while nothing runs.
    #[track_caller]
    pub(crate) fn sees_prompt(&self) {
        self.until("a prompt", ends_with_prompt);
    }

    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_there: impl Fn(&str) -> bool) {
        let end = Instant::now() + PATIENCE;
        let mut shown = self.shown.0.lock().unwrap();
        loop {
            let screen = shown.screen.screen().contents();
            if is_there(&screen) {
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !shown.ended, "no {what} in:\n{screen}");
            shown = self.shown.1.wait_timeout(shown, left).unwrap().0;
        }
    }

    /// Waits until the program has written this.
    #[track_caller]
    pub(crate) fn until_bytes(&self, what: &str, is_there: impl Fn(&str) -> bool) {
        let end = Instant::now() + PATIENCE;
        let mut shown = self.shown.0.lock().unwrap();
        while !is_there(&String::from_utf8_lossy(&shown.bytes)) {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !shown.ended, "{what:?} was not written");
            shown = self.shown.1.wait_timeout(shown, left).unwrap().0;
        }
    }

    /// Changes the size of the terminal, as a user does who drags its border.
    pub(crate) fn resize(&self, columns: u16) {
        let size = Winsize {
            ws_row: 50,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let mut shown = self.shown.0.lock().unwrap();
        shown.screen.screen_mut().set_size(50, columns);
        drop(shown);
        rustix::termios::tcsetwinsize(&self.keys, size).unwrap();
    }

    /// The screen, without trailing spaces.
    pub(crate) fn screen(&self) -> String {
        let shown = self.shown.0.lock().unwrap();
        let contents = shown.screen.screen().contents();
        let lines = contents.lines().map(str::trim_end);
        lines.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn bytes(&self) -> String {
        String::from_utf8_lossy(&self.shown.0.lock().unwrap().bytes).into_owned()
    }

    /// Whether the kernel keeps unread output when Ctrl-C is pressed.
    pub(crate) fn keeps_output(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.keys).unwrap();
        modes.local_modes.contains(LocalModes::NOFLSH)
    }

    /// Waits for the program to exit. Returns whether the terminal then edits and echoes lines itself again.
    pub(crate) fn ends_with_echo(self) -> bool {
        let terminal = self.keys.try_clone().unwrap();
        self.end();
        let modes = rustix::termios::tcgetattr(terminal).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits for the program to exit.
    #[track_caller]
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + PATIENCE;
        let mut shown = self.shown.0.lock().unwrap();
        while !shown.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.child.kill().unwrap();
            }
            shown = self.shown.1.wait_timeout(shown, left).unwrap().0;
        }
        drop(shown);
        (self.child.wait().unwrap().code(), self.screen())
    }
}

/// A new terminal: the side that types and reads, and the path of the side of the program.
pub(crate) fn pseudo_terminal(columns: u16) -> (File, String) {
    let controller =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let size = Winsize {
        ws_row: 50,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&controller, size).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    (File::from(controller), name.into_string().unwrap())
}

/// Whether a screen ends with an empty prompt while nothing runs.
pub(crate) fn ends_with_prompt(screen: &str) -> bool {
    let mut lines = screen.trim_end().lines().rev();
    let last = lines.next().unwrap_or_default();
    let is_plain = last.trim_end() == "›";
    let is_idle = last.starts_with("  ") && !last.contains("interrupts");
    is_plain || is_idle && lines.next().is_some_and(|line| line.trim_end() == "›")
}

/// Replaces times and ids, which differ between runs.
pub(crate) fn steady(machine: &Machine, screen: &str) -> String {
    let text = machine.context.filtered(screen);
    let mut steady = String::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        let shown = (0..words.len()).map(|index| {
            let is_time = word(index).parse::<f64>().is_ok() && word(index + 1) == "s";
            let is_id = index > 0 && word(index - 1) == "--resume";
            match (is_time, is_id) {
                (true, _) => "#",
                (_, true) => "[ID]",
                _ => word(index),
            }
        });
        steady.push_str(&shown.collect::<Vec<_>>().join(" "));
        steady.push('\n');
    }
    steady
}

pub(crate) fn call(id: &str, tool: &str, arguments: serde_json::Value) -> Turn {
    Turn::new().call(id, tool, arguments)
}

#[test]
fn an_update_is_shown_when_it_is_complete() {
    let mut shown = Shown {
        bytes: Vec::new(),
        screen: vt100::Parser::new(2, 20, 0),
        held: Vec::new(),
        ended: false,
    };
    let mut contents_after = |chunk: &str| {
        shown.receive(chunk.as_bytes());
        shown.screen.screen().contents()
    };
    assert_eq!(contents_after("a\u{1b}[?20"), "a");
    assert_eq!(contents_after("26hb"), "a");
    assert_eq!(contents_after("c\u{1b}[?2026"), "a");
    assert_eq!(contents_after("ld\u{1b}[?2026he"), "abcd");
    assert_eq!(contents_after("\u{1b}[?2026l"), "abcde");
}

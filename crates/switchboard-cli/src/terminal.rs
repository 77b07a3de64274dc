//! Terminal access: its size, single-key prompts, and echo.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use anstream::adapter::strip_str;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
#[cfg(unix)]
use crate::screen;
use tokio::time::timeout;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Bytes that follow an escape within this time belong to the same key.
const ESCAPE_PATIENCE: Duration = Duration::from_millis(50);

/// Whether standard input and standard error are terminals, so that the user can be prompted.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for approval with one key. Fails without a terminal.
pub(crate) fn consent(question: &str, context: &Context) -> Result<bool, Failure> {
    if !is_there() {
        return Err(Failure::new(Exit::Denied, "nothing was approved")
            .because("there is no terminal to ask on")
            .hint("review the output above, then repeat the command with --yes"));
    }
    context.printer.ask(question);
    let key = key();
    context.printer.ask(echo(&key));
    match key {
        Ok(Some(key)) => Ok(matches!(key, 'y' | 'Y')),
        Ok(None) => {
            Err(Failure::new(Exit::Interrupted, "no answer").hint("repeat the command with --yes"))
        }
        Err(error) => Err(Failure::failed("could not read the answer").because(error)),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// A size in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// Assumed size of a character of a terminal that does not report it.
const CELL: Pixels = Pixels {
    width: 10,
    height: 20,
};

/// The size in pixels of this many rows of the terminal on standard error, in its full width.
pub(crate) fn pixels_of(rows: usize) -> Pixels {
    let cell = platform::cell(&io::stderr()).unwrap_or(CELL);
    let columns = error_size().map_or(80, |size| size.columns);
    Pixels {
        width: columns.saturating_sub(1) * cell.width,
        height: rows * cell.height,
    }
}

/// Reads the next byte of the terminal; `None` if none arrives in time.
#[cfg(unix)]
pub(crate) fn byte_within(wait: Duration) -> io::Result<Option<u8>> {
    platform::byte_within(wait)
}

/// Columns of standard output; `None` if it is not a terminal.
pub(crate) fn width() -> Option<usize> {
    platform::size(&io::stdout()).map(|size| size.columns)
}

/// Size of the terminal on standard error; `None` if it is not a terminal.
pub(crate) fn error_size() -> Option<Size> {
    platform::size(&io::stderr())
}

/// Cuts the text to `width` columns, with an ellipsis.
pub(crate) fn fitted(text: &str, width: usize) -> Cow<'_, str> {
    if text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut left = width.saturating_sub(1);
    let fits = |character: &char| {
        let needed = character.width().unwrap_or_default();
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    Cow::Owned(cut)
}

/// Breaks lines that are wider than the terminal between words; the rest is indented below them. Styles are kept. A
/// command in backquotes stays on one line if it fits, so that it can be copied.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let width = |text: &str| strip_str(text).to_string().width();
    let mut wrapped = String::new();
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start_matches(' ').len() + 2;
        let mut used = 0;
        let room = columns.saturating_sub(indent);
        for (place, word) in words(line, |word| width(word) <= room).enumerate() {
            let needed = width(word.trim_end());
            if place > 0 && used + 1 + needed > columns && used > indent {
                let _ = write!(wrapped, "\n{:indent$}", "");
                used = indent;
            } else if place > 0 {
                wrapped.push(' ');
                used += 1;
            }
            wrapped.push_str(word);
            used += needed;
        }
    }
    wrapped
}

/// The words of a line. A part in backquotes that fits is one word.
fn words(line: &str, fits: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        let ends = text.match_indices(' ').map(|(at, _)| at);
        let mut ends = ends.chain([text.len()]);
        let first = ends.next()?;
        let is_closed = |end: &usize| {
            let word = text.get(..*end).unwrap_or_default();
            word.matches('`').count() % 2 == 0
        };
        let whole = std::iter::once(first).chain(ends).find(is_closed);
        let end = whole.filter(|end| text.get(..*end).is_some_and(&fits));
        let end = end.unwrap_or(first);
        rest = text.get(end + 1..).filter(|_| end < text.len());
        text.get(..end)
    })
}

/// Reads one key; `None` at the end of the input.
pub(crate) fn key() -> io::Result<Option<char>> {
    let _mode = platform::Mode::keys()?;
    let byte = platform::read_byte()?;
    Ok(byte.map(char::from))
}

/// The text that echoes a one-key answer, with a line break.
pub(crate) fn echo(key: &io::Result<Option<char>>) -> String {
    match key {
        Ok(Some(key)) if key.is_ascii_graphic() => format!("{key}\n"),
        _ => "\n".to_owned(),
    }
}

/// Reads keys as they are pressed, without echo. Ctrl-C still interrupts. Dropping it restores the terminal and
/// consumes no further key.
pub(crate) struct Keyboard {
    keys: platform::Keys,
    _mode: platform::Mode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Character(char),
    Enter,
    Tab,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Backspace,
    /// Ctrl-U.
    EraseLine,
    /// Ctrl-W.
    EraseWord,
    Escape,
    /// Ctrl-D, or the end of the input.
    End,
    /// The size of the terminal has changed.
    Resized,
    /// Any key without a meaning here.
    Other,
}

impl Keyboard {
    pub(crate) fn open() -> io::Result<Self> {
        let mode = platform::Mode::keys()?;
        Ok(Self {
            keys: platform::Keys::open()?,
            _mode: mode,
        })
    }

    async fn byte(&mut self) -> io::Result<Option<u8>> {
        self.keys.byte().await
    }

    pub(crate) async fn key(&mut self) -> io::Result<Key> {
        let Some(first) = self.byte().await? else {
            return Ok(Key::End);
        };
        Ok(match first {
            b'\r' | b'\n' => Key::Enter,
            0x04 => Key::End,
            0x08 | 0x7f => Key::Backspace,
            b'\t' => Key::Tab,
            0x15 => Key::EraseLine,
            0x17 => Key::EraseWord,
            0x1b => self.escape().await?,
            0x20..0x7f => Key::Character(char::from(first)),
            0xc2..=0xf4 => self.character(first).await?,
            _ => Key::Other,
        })
    }

    /// Distinguishes the escape key from an escape sequence.
    async fn escape(&mut self) -> io::Result<Key> {
        let Ok(next) = timeout(ESCAPE_PATIENCE, self.byte()).await else {
            return Ok(Key::Escape);
        };
        match next? {
            Some(b'[' | b'O') => {
                while let Ok(more) = timeout(ESCAPE_PATIENCE, self.byte()).await {
                    match more? {
                        Some(b'A') => return Ok(Key::Up),
                        Some(b'B') => return Ok(Key::Down),
                        Some(byte) if !(0x40..0x7f).contains(&byte) => {}
                        _ => break,
                    }
                }
                Ok(Key::Other)
            }
            Some(0x1b) | None => Ok(Key::Escape),
            Some(_) => Ok(Key::Other),
        }
    }

    async fn character(&mut self, first: u8) -> io::Result<Key> {
        let length = match first {
            ..0xe0 => 2,
            0xe0..0xf0 => 3,
            _ => 4,
        };
        let mut bytes = vec![first];
        while bytes.len() < length
            && let Some(next) = self.byte().await?
        {
            bytes.push(next);
        }
        let character = std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.chars().next());
        Ok(character.map_or(Key::Other, Key::Character))
    }
}

/// Disables echo while the guard lives. Typed input stays buffered for the next reader.
pub(crate) fn silent() -> Option<impl Sized> {
    platform::Mode::silent().ok()
}

/// Saves the terminal's mode, to be [restored](restore) when the program ends.
pub(crate) fn save() {
    platform::save();
}

/// Restores the saved mode.
pub(crate) fn restore() {
    platform::restore();
}

/// Holds the mode of a chat until dropped: keys arrive one by one and are not echoed. Ctrl-C still sends a signal.
pub(crate) fn raw() -> io::Result<impl Sized> {
    platform::Raw::new()
}

/// Stops the process, as Ctrl-Z does, and goes on when it is continued.
#[cfg(unix)]
pub(crate) fn stop_process() {
    screen::suspend();
    platform::stop();
    screen::resume();
}

#[cfg(not(unix))]
pub(crate) fn stop_process() {}

/// Discards keys pressed before a question was shown: they were meant for something else.
pub(crate) fn discard_keys() {
    platform::discard_keys();
}

#[cfg(unix)]
mod platform {
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::OnceLock;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::termios::{
        LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
    };
    use std::time::Duration;
    use tokio::sync::oneshot;

    use super::{Pixels, Size};

    /// Returns `None` if the terminal reports a size of 0.
    pub(super) fn size(stream: &impl AsFd) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then(|| Size {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        })
    }

    /// Size of a character; `None` if the terminal does not report it.
    pub(super) fn cell(stream: &impl AsFd) -> Option<Pixels> {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        let cell = Pixels {
            width: usize::from(size.ws_xpixel.checked_div(size.ws_col)?),
            height: usize::from(size.ws_ypixel.checked_div(size.ws_row)?),
        };
        (cell.width > 0 && cell.height > 0).then_some(cell)
    }

    pub(super) fn byte_within(wait: Duration) -> io::Result<Option<u8>> {
        let terminal = io::stdin();
        let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&terminal, PollFlags::IN)];
        let count = rustix::io::retry_on_intr(|| poll(&mut polled, Some(&wait)))?;
        if count == 0 {
            return Ok(None);
        }
        // At the end of the input the caller must not wait for more.
        next_byte(&terminal)?
            .map(Some)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    pub(super) fn discard_keys() {
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    }

    /// Reads the next byte of standard input, bypassing the standard library's buffer: bytes read ahead into it would
    /// be lost to the next reader of the terminal.
    pub(super) fn read_byte() -> io::Result<Option<u8>> {
        next_byte(io::stdin())
    }

    fn next_byte(terminal: impl AsFd) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let count = rustix::io::retry_on_intr(|| rustix::io::read(&terminal, &mut byte))?;
        Ok((count > 0).then_some(byte[0]))
    }

    /// Reads a terminal byte by byte. A thread polls for input, but the caller reads it: a byte read by the thread
    /// would be lost if the caller is dropped.
    pub(super) struct Keys {
        terminal: OwnedFd,
        waits: Sender<oneshot::Sender<()>>,
        /// Closing it stops the thread.
        _stop: OwnedFd,
    }

    impl Keys {
        pub(super) fn open() -> io::Result<Self> {
            Self::of(io::stdin())
        }

        fn of(terminal: impl AsFd) -> io::Result<Self> {
            let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
            let own = || rustix::io::fcntl_dupfd_cloexec(&terminal, 0);
            let (waits, waiting) = channel();
            let watched = own()?;
            // Not a thread of the runtime: shutdown would wait for it.
            let thread = std::thread::Builder::new().name("keys".to_owned());
            thread.spawn(move || notify_waiters(&watched, &stopped, &waiting))?;
            Ok(Self {
                terminal: own()?,
                waits,
                _stop: stop,
            })
        }

        /// The next byte, or `None` at the end of the input. If cancelled, no byte is lost.
        pub(super) async fn byte(&mut self) -> io::Result<Option<u8>> {
            // The terminal has other readers, so read only when it is certainly readable.
            while !is_readable(&self.terminal)? {
                let (pressed, is_pressed) = oneshot::channel();
                if self.waits.send(pressed).is_err() || is_pressed.await.is_err() {
                    return Ok(None);
                }
            }
            next_byte(&self.terminal)
        }
    }

    /// Notifies each waiter of input, until the `Keys` are dropped.
    fn notify_waiters(
        terminal: &OwnedFd,
        stopped: &OwnedFd,
        waiting: &Receiver<oneshot::Sender<()>>,
    ) {
        while let Ok(waiter) = waiting.recv() {
            let mut both = [
                PollFd::new(stopped, PollFlags::IN),
                PollFd::new(terminal, PollFlags::IN),
            ];
            let polled = rustix::io::retry_on_intr(|| poll(&mut both, None));
            if polled.is_err() || !both[0].revents().is_empty() {
                return;
            }
            // Fails if the waiter was cancelled.
            let _ = waiter.send(());
        }
    }

    fn is_readable(terminal: &OwnedFd) -> io::Result<bool> {
        let now = Timespec::default();
        let mut polled = [PollFd::new(terminal, PollFlags::IN)];
        let count = rustix::io::retry_on_intr(|| poll(&mut polled, Some(&now)))?;
        Ok(count > 0)
    }

    /// Changes the terminal's mode until dropped. Ctrl-C always interrupts.
    pub(super) struct Mode(Termios);

    impl Mode {
        /// Delivers keys one by one, without echo.
        pub(super) fn keys() -> io::Result<Self> {
            Self::without(LocalModes::ICANON | LocalModes::ECHO)
        }

        /// Disables echo.
        pub(super) fn silent() -> io::Result<Self> {
            Self::without(LocalModes::ECHO)
        }

        fn without(modes: LocalModes) -> io::Result<Self> {
            let before = tcgetattr(io::stdin())?;
            let mut during = before.clone();
            during.local_modes -= modes;
            tcsetattr(io::stdin(), OptionalActions::Now, &during)?;
            Ok(Self(before))
        }
    }

    impl Drop for Mode {
        fn drop(&mut self) {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        }
    }

    /// The mode of a chat.
    pub(super) struct Raw;

    impl Raw {
        pub(super) fn new() -> io::Result<Self> {
            crossterm::terminal::enable_raw_mode()?;
            let mut modes = tcgetattr(io::stdin())?;
            // The kernel turns line feeds into line breaks, and Ctrl-C into a signal that works even if this program
            // hangs. Ctrl-Z and Ctrl-\ are keys: the mode must be restored before the process stops.
            modes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
            // With Ctrl-C, the kernel would discard output that the terminal has not read yet, and the screen would be
            // wrong from then on.
            modes.local_modes |= LocalModes::ISIG | LocalModes::NOFLSH;
            for key in [SpecialCodeIndex::VSUSP, SpecialCodeIndex::VQUIT] {
                modes.special_codes[key] = DISABLED;
            }
            tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
            Ok(Self)
        }
    }

    impl Drop for Raw {
        fn drop(&mut self) {
            let _ = crossterm::terminal::disable_raw_mode();
        }
    }

    pub(super) fn stop() {
        let during = tcgetattr(io::stdin());
        restore();
        let process = rustix::process::getpid();
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TSTP);
        if let Ok(during) = during {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &during);
        }
    }

    /// A special character with this value is never recognized.
    const DISABLED: u8 = 0;

    static SAVED: OnceLock<Termios> = OnceLock::new();

    pub(super) fn save() {
        if let Ok(modes) = tcgetattr(io::stdin()) {
            let _ = SAVED.set(modes);
        }
    }

    pub(super) fn restore() {
        if let Some(modes) = SAVED.get() {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
        }
    }

    #[cfg(test)]
    mod tests {
        use std::time::Duration;

        use rustix::fs::{Mode as Access, OFlags};
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

        use super::*;

        #[tokio::test]
        async fn a_dropped_reader_consumes_no_key() {
            let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
            grantpt(&controller).unwrap();
            unlockpt(&controller).unwrap();
            let name = ptsname(&controller, Vec::new()).unwrap();
            let flags = OFlags::RDWR | OFlags::NOCTTY;
            let terminal = rustix::fs::open(name, flags, Access::empty()).unwrap();
            let mut modes = tcgetattr(&terminal).unwrap();
            modes.make_raw();
            tcsetattr(&terminal, OptionalActions::Now, &modes).unwrap();

            for key in 0..200_u8 {
                let mut hasty = Keys::of(&terminal).unwrap();
                let given_up = tokio::time::timeout(Duration::ZERO, hasty.byte()).await;
                assert!(given_up.is_err(), "nothing was pressed");
                rustix::io::write(&controller, &[key]).unwrap();
                // Give its thread a varying time to notice.
                std::thread::sleep(Duration::from_micros(u64::from(key) * 5));
                drop(hasty);
                let next = Keys::of(&terminal).unwrap().byte().await;
                assert_eq!(next.unwrap(), Some(key));
            }
        }
    }
}

#[cfg(not(unix))]
mod platform {
    use std::io::{self, Read as _};

    use tokio::sync::mpsc;

    pub(super) fn size<S>(_: &S) -> Option<super::Size> {
        None
    }

    pub(super) fn cell<S>(_: &S) -> Option<super::Pixels> {
        None
    }

    pub(super) fn discard_keys() {}

    /// The mode of a chat.
    pub(super) struct Raw;

    impl Raw {
        pub(super) fn new() -> io::Result<Self> {
            crossterm::terminal::enable_raw_mode()?;
            Ok(Self)
        }
    }

    impl Drop for Raw {
        fn drop(&mut self) {
            let _ = crossterm::terminal::disable_raw_mode();
        }
    }

    pub(super) fn save() {}

    pub(super) fn restore() {}

    pub(super) fn read_byte() -> io::Result<Option<u8>> {
        let mut byte = [0];
        let count = io::stdin().lock().read(&mut byte)?;
        Ok((count > 0).then_some(byte[0]))
    }

    /// Keys from a thread, which reads until this is dropped.
    pub(super) struct Keys(mpsc::Receiver<io::Result<Option<u8>>>);

    impl Keys {
        pub(super) fn open() -> io::Result<Self> {
            let (sender, bytes) = mpsc::channel(1);
            let thread = std::thread::Builder::new().name("keys".to_owned());
            thread.spawn(move || while sender.blocking_send(read_byte()).is_ok() {})?;
            Ok(Self(bytes))
        }

        pub(super) async fn byte(&mut self) -> io::Result<Option<u8>> {
            self.0.recv().await.unwrap_or(Ok(None))
        }
    }

    /// The terminal delivers whole lines; the first character of a line is the answer.
    pub(super) struct Mode;

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the same signatures on every platform"
    )]
    impl Mode {
        pub(super) fn keys() -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn silent() -> io::Result<Self> {
            Ok(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{fitted, wrapped};

    #[test]
    fn long_lines_are_broken_between_words_and_indented() {
        let text = "  \u{1b}[36mremedy:\u{1b}[0m install it, or name it\nshort\n";
        let expected = "  \u{1b}[36mremedy:\u{1b}[0m install\n    it, or name it\nshort\n";
        assert_eq!(wrapped(text, 20), expected);
        assert_eq!(wrapped(text, 80), text);
        // A word that does not fit stays whole, on a line of its own.
        let path = "a /a/long/path/without/blanks b\n";
        assert_eq!(wrapped(path, 10), "a /a/long/path/without/blanks\n  b\n");
        // A command is not broken if it fits on a line.
        let command = "run first `mcp add x`\nor `mcp add a name that is long`\n";
        let expected = "run first\n  `mcp add x`\nor `mcp add a name\n  that is long`\n";
        assert_eq!(wrapped(command, 18), expected);
    }

    #[test]
    fn text_is_cut_to_columns() {
        for (text, width, expected) in [
            ("short", 5, "short"),
            ("longer", 5, "long…"),
            ("two words", 5, "two…"),
            ("漢字漢字", 5, "漢字…"),
            ("漢字", 1, "…"),
        ] {
            assert_eq!(fitted(text, width), expected, "{text} in {width}");
        }
    }
}

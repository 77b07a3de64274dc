//! Terminal access: its size, single-key prompts, and echo.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
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

#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
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
    Backspace,
    /// Ctrl-U.
    EraseLine,
    /// Ctrl-W.
    EraseWord,
    Escape,
    /// Ctrl-D, or the end of the input.
    End,
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
                    if more?.is_none_or(|byte| (0x40..0x7f).contains(&byte)) {
                        break;
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
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
    use tokio::sync::oneshot;

    use super::Size;

    /// Returns `None` if the terminal reports a size of 0.
    pub(super) fn size(stream: &impl AsFd) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then(|| Size {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        })
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

    pub(super) fn discard_keys() {}

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
    use super::fitted;

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

//! The terminal: how wide it is, and questions that one key answers.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use tokio::time::timeout;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// What follows an escape sooner belongs to the same key.
const ESCAPE_PATIENCE: Duration = Duration::from_millis(50);

/// Whether there is somebody to ask.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks for an approval with one key. With no terminal the answer is no.
pub(crate) fn consent(question: &str, context: &Context) -> Result<bool, Failure> {
    if !is_there() {
        return Err(Failure::new(Exit::Denied, "nothing was approved")
            .because("there is no terminal to ask on")
            .hint("look at what is shown above, and repeat the command with --yes"));
    }
    context.printer.ask(question);
    let key = key();
    context.printer.ask(echo(&key));
    match key {
        Ok(Some(key)) => Ok(matches!(key, 'y' | 'Y')),
        Ok(None) => Err(Failure::new(Exit::Interrupted, "no answer was given")
            .hint("repeat the command with --yes")),
        Err(error) => Err(Failure::failed("could not read the answer").because(error)),
    }
}

/// How large a terminal is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// How many columns standard output has; `None` if it is no terminal, where lines may be as long as they like.
pub(crate) fn width() -> Option<usize> {
    platform::size(&io::stdout()).map(|size| size.columns)
}

/// How large the terminal of standard error is.
pub(crate) fn error_size() -> Option<Size> {
    platform::size(&io::stderr())
}

/// The text, cut with an ellipsis where it is wider than that.
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

/// The key that the user presses, or `None` at the end of the input.
pub(crate) fn key() -> io::Result<Option<char>> {
    let _mode = platform::Mode::keys()?;
    let byte = platform::read_byte()?;
    Ok(byte.map(char::from))
}

/// What is shown of an answer of one key, to the end of its line.
pub(crate) fn echo(key: &io::Result<Option<char>>) -> String {
    match key {
        Ok(Some(key)) if key.is_ascii_graphic() => format!("{key}\n"),
        _ => "\n".to_owned(),
    }
}

/// Keys as they are pressed, with nothing echoed. Ctrl-C still interrupts. Dropped, it leaves the terminal as it was and
/// takes no further key.
pub(crate) struct Keyboard {
    keys: platform::Keys,
    _mode: platform::Mode,
}

/// A key.
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
    /// What nothing here has a use for.
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

    /// The next key.
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

    /// The escape key by itself, or the start of what another key sends.
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

/// Nothing that is typed is shown for as long as it lives. It is not lost: whoever reads next gets it.
pub(crate) fn silent() -> Option<impl Sized> {
    platform::Mode::silent().ok()
}

/// Remembers how the terminal is now, to be [restored](restore) by whatever ends the program.
pub(crate) fn remember() {
    platform::remember();
}

/// Makes the terminal what it was when it was remembered.
pub(crate) fn restore() {
    platform::restore();
}

/// Forgets the keys that were pressed before a question was asked: they answer something else.
pub(crate) fn forget_keys() {
    platform::forget_keys();
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

    /// A terminal that does not know its size has none.
    pub(super) fn size(stream: &impl AsFd) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then(|| Size {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        })
    }

    pub(super) fn forget_keys() {
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    }

    /// The next byte of the standard input, past the buffer that the library keeps: what is read ahead into it would be
    /// lost to whoever reads the terminal next.
    pub(super) fn read_byte() -> io::Result<Option<u8>> {
        next_byte(io::stdin())
    }

    fn next_byte(terminal: impl AsFd) -> io::Result<Option<u8>> {
        let mut byte = [0];
        let count = rustix::io::retry_on_intr(|| rustix::io::read(&terminal, &mut byte))?;
        Ok((count > 0).then_some(byte[0]))
    }

    /// The bytes of a terminal, one by one. A thread polls for input, but the caller reads it: a byte that the thread had
    /// read when the caller is dropped would be lost.
    pub(super) struct Keys {
        terminal: OwnedFd,
        waits: Sender<oneshot::Sender<()>>,
        /// Its end is what the thread waits for besides keys.
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
            // A thread of its own: one of the runtime's would be waited for at the end of the program.
            let thread = std::thread::Builder::new().name("keys".to_owned());
            thread.spawn(move || tell_of_keys(&watched, &stopped, &waiting))?;
            Ok(Self {
                terminal: own()?,
                waits,
                _stop: stop,
            })
        }

        /// The next byte, or `None` at the end of the input. If cancelled, no byte is lost.
        pub(super) async fn byte(&mut self) -> io::Result<Option<u8>> {
            // Others hold the terminal too, so it is read only when something is certainly there.
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
    fn tell_of_keys(
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
            // A waiter that was cancelled reads nothing.
            let _ = waiter.send(());
        }
    }

    fn is_readable(terminal: &OwnedFd) -> io::Result<bool> {
        let now = Timespec::default();
        let mut polled = [PollFd::new(terminal, PollFlags::IN)];
        let count = rustix::io::retry_on_intr(|| poll(&mut polled, Some(&now)))?;
        Ok(count > 0)
    }

    /// While it lives, the terminal treats keys differently. Ctrl-C always interrupts.
    pub(super) struct Mode(Termios);

    impl Mode {
        /// Keys come one by one and are not echoed.
        pub(super) fn keys() -> io::Result<Self> {
            Self::without(LocalModes::ICANON | LocalModes::ECHO)
        }

        /// Keys are not echoed.
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

    static REMEMBERED: OnceLock<Termios> = OnceLock::new();

    pub(super) fn remember() {
        if let Ok(modes) = tcgetattr(io::stdin()) {
            let _ = REMEMBERED.set(modes);
        }
    }

    pub(super) fn restore() {
        if let Some(modes) = REMEMBERED.get() {
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
        async fn a_reader_that_goes_takes_no_key_along() {
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
                // Time for its thread to notice, more or less of it.
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

    pub(super) fn forget_keys() {}

    pub(super) fn remember() {}

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

    /// The terminal sends whole lines, and the first character of one is the answer.
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

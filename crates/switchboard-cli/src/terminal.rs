//! The terminal: how wide it is, and questions that one key answers.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Read as _};

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

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
    context.printer.note("");
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
    let _unbuffered = platform::Unbuffered::begin()?;
    let mut byte = [0];
    let count = io::stdin().lock().read(&mut byte)?;
    Ok((count > 0).then(|| char::from(byte[0])))
}

#[cfg(unix)]
mod platform {
    use std::io;
    use std::os::fd::AsFd;

    use super::Size;
    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// A terminal that does not know its size has none.
    pub(super) fn size(stream: &impl AsFd) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        (size.ws_col > 0 && size.ws_row > 0).then(|| Size {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        })
    }

    /// While it lives, keys come one by one. Ctrl-C still interrupts.
    pub(super) struct Unbuffered(Termios);

    impl Unbuffered {
        pub(super) fn begin() -> io::Result<Self> {
            let before = tcgetattr(io::stdin())?;
            let mut during = before.clone();
            during.local_modes -= LocalModes::ICANON;
            tcsetattr(io::stdin(), OptionalActions::Now, &during)?;
            Ok(Self(before))
        }
    }

    impl Drop for Unbuffered {
        fn drop(&mut self) {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        }
    }
}

#[cfg(not(unix))]
mod platform {
    pub(super) fn size<S>(_: &S) -> Option<super::Size> {
        None
    }

    /// The terminal sends whole lines, and the first character of one is the answer.
    pub(super) struct Unbuffered;

    impl Unbuffered {
        #[expect(
            clippy::unnecessary_wraps,
            reason = "the same signature on every platform"
        )]
        pub(super) fn begin() -> std::io::Result<Self> {
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

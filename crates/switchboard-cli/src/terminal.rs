//! Questions on the terminal that one key answers.

use std::io::{self, IsTerminal as _, Read as _};

/// Whether there is somebody to ask.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
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

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

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

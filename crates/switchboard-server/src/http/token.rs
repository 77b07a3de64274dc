//! The bearer token: generation, its file, and constant-time comparison.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::Sha256;
use switchboard_config::write;

/// Random bytes of a token or a session id.
const RANDOM_BYTES: usize = 32;

/// Minimum length of a token chosen by a user.
const MIN_LENGTH: usize = 16;

/// The SHA-256 hash of a token.
pub(super) type Digest = [u8; 32];

/// The bearer token of a server. Only [`expose`](Self::expose) reveals it.
#[derive(Clone)]
pub struct Token {
    text: String,
    digest: Digest,
}

/// An error of creating or loading a [`Token`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Too short, too long, or with characters not allowed in a header.
    #[error("a token must have {MIN_LENGTH} to 1024 characters: letters, digits and -._~+/=")]
    Unfit,
    /// The system's random number generator failed.
    #[error("the system returned no random bytes")]
    NoRandomness,
    /// Other users can read the file.
    #[error("{} can be read by other users", path.display())]
    Exposed {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl TokenError {
    /// How to fix it, if known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Exposed { .. } => {
                Some("chmod 600 the file, or delete it to have a new token made")
            }
            Self::Unfit => Some("delete the file to have a new token made, or choose a longer one"),
            Self::NoRandomness | Self::File { .. } => None,
        }
    }
}

impl Token {
    /// Validates a token chosen by a user; surrounding whitespace is trimmed.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if !(MIN_LENGTH..=1024).contains(&text.len()) || !text.bytes().all(is_valid) {
            return Err(TokenError::Unfit);
        }
        Ok(Self {
            digest: Self::digest_of(text.as_bytes()),
            text: text.to_owned(),
        })
    }

    /// Generates a random token of 64 hex digits.
    pub fn generate() -> Result<Self, TokenError> {
        Self::new(&random_text().ok_or(TokenError::NoRandomness)?)
    }

    /// Loads the token from a file, or creates the file with a new token, readable only by its owner.
    ///
    /// Concurrent callers get the same token. Blocks on disk I/O.
    pub fn load_or_create(path: &Path) -> Result<Self, TokenError> {
        match Self::load(path) {
            Err(TokenError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            loaded => return loaded,
        }
        let token = Self::generate()?;
        match write::create_private(path, format!("{}\n", token.text).as_bytes()) {
            Ok(()) => Ok(token),
            // Another process created it first.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::load(path),
            Err(source) => Err(TokenError::File {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// The token in clear text, to pass to a client.
    pub fn expose(&self) -> &str {
        &self.text
    }

    pub(super) fn is(&self, shown: &[u8]) -> bool {
        is_same(&self.digest, &Self::digest_of(shown))
    }

    pub(super) fn digest(&self) -> &Digest {
        &self.digest
    }

    pub(super) fn digest_of(shown: &[u8]) -> Digest {
        use sha2::Digest as _;
        Sha256::digest(shown).into()
    }

    pub(super) fn load(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::File {
            path: path.to_owned(),
            source,
        };
        let file = std::fs::File::open(path).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = file.metadata().map_err(failed)?.permissions().mode();
            if mode & 0o077 != 0 {
                return Err(TokenError::Exposed {
                    path: path.to_owned(),
                });
            }
        }
        let mut text = String::new();
        io::Read::read_to_string(&mut io::Read::take(file, 4096), &mut text).map_err(failed)?;
        Self::new(&text)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// Compares digests in the same time for every input. An attacker cannot choose a digest that nearly matches.
pub(super) fn is_same(ours: &Digest, theirs: &Digest) -> bool {
    let pairs = ours.iter().zip(theirs);
    std::hint::black_box(pairs.fold(0, |differences, (ours, theirs)| {
        differences | (ours ^ theirs)
    })) == 0
}

/// Random hex text; `None` if the system returned no random bytes.
pub(super) fn random_text() -> Option<String> {
    let mut bytes = [0; RANDOM_BYTES];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(hexadecimal(&bytes))
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_token_matches() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.is(b"0123456789abcdef"));
        for other in [
            "",
            "0123456789abcde",
            "0123456789abcdeg",
            "0123456789abcdef0",
        ] {
            assert!(!token.is(other.as_bytes()), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
        for unfit in ["", "short", "has a space in it!!", "non-ascii-§§§§§§§§§§§"] {
            assert!(
                matches!(Token::new(unfit), Err(TokenError::Unfit)),
                "{unfit}"
            );
        }
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(one.expose(), other.expose());
    }

    #[test]
    fn a_token_is_stored_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nested/token");
        let first = Token::load_or_create(&path).unwrap();
        let again = Token::load_or_create(&path).unwrap();
        assert_eq!(first.expose(), again.expose());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
            let error = Token::load_or_create(&path).unwrap_err();
            assert!(matches!(error, TokenError::Exposed { .. }), "{error}");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        }
        std::fs::write(&path, "short").unwrap();
        assert!(matches!(
            Token::load_or_create(&path),
            Err(TokenError::Unfit)
        ));
    }

    #[test]
    fn no_other_text_passes_by_chance() {
        let token = Token::new("0123456789abcdef").unwrap();
        let passes = |number: &u32| token.is(number.to_string().as_bytes());
        assert_eq!((0..5000).find(passes), None);
    }

    #[test]
    fn concurrent_callers_get_the_same_token() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("token");
            let start = std::sync::Barrier::new(4);
            let tokens: std::collections::HashSet<String> = std::thread::scope(|scope| {
                let make = || {
                    start.wait();
                    Token::load_or_create(&path).unwrap().expose().to_owned()
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
                let tokens = threads.into_iter().map(|thread| thread.join().unwrap());
                tokens.collect()
            });
            assert_eq!(tokens.len(), 1, "{tokens:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_cannot_be_created_is_reported() {
        // Not even root can create a folder there.
        let path = Path::new("/sys/kernel/no-such-folder/token");
        match Token::load_or_create(path).unwrap_err() {
            TokenError::File {
                source,
                path: reported,
            } => {
                assert_ne!(source.kind(), io::ErrorKind::NotFound, "{source}");
                assert_eq!(reported, path);
            }
            error => panic!("{error}"),
        }
    }

    #[test]
    fn token_errors_have_hints() {
        let exposed = TokenError::Exposed { path: "x".into() };
        assert!(
            exposed
                .hint()
                .is_some_and(|hint| hint.contains("chmod 600"))
        );
        assert!(
            TokenError::Unfit
                .hint()
                .is_some_and(|hint| hint.contains("longer"))
        );
        assert_eq!(TokenError::NoRandomness.hint(), None);
    }
}

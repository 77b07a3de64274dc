//! Classifies the words after the name: a URL or a program.
//!
//! Detects mistakes that would otherwise become a missing program: a URL with a mistyped or missing scheme, a whole
//! command line in quotes, a JSON entry.

use std::path::Path;

use switchboard_config::entry::Transport;
use switchboard_config::expand::Environment;
use switchboard_config::files::{Disk, Files as _};
use switchboard_config::text::visible;
use switchboard_config::{mask, words};

use crate::error::Failure;

/// File extensions of programs that are not top-level domains.
const PROGRAM_ENDINGS: [&str; 20] = [
    "py", "js", "mjs", "cjs", "ts", "mts", "sh", "bash", "rb", "pl", "php", "lua", "jar", "exe",
    "bat", "cmd", "ps1", "bin", "appimage", "wasm",
];

/// Whether a word is a server's URL rather than a program.
pub(super) fn is_address(word: &str) -> bool {
    word.split_once("://").is_some_and(|(scheme, _)| {
        Transport::SCHEMES
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known))
    })
}

/// Where programs are searched.
pub(super) struct Place<'a> {
    pub(super) folder: &'a Path,
    pub(super) environment: &'a Environment,
}

impl Place<'_> {
    /// Whether a program of that name or path exists. Commands with variables are assumed to exist.
    pub(super) fn has_program(&self, command: &str) -> bool {
        if command.contains("${") {
            return true;
        }
        if command.contains(['/', '\\']) {
            return Disk.is_program(&self.folder.join(command));
        }
        let path = self.environment.get("PATH").unwrap_or_default();
        std::env::split_paths(path).any(|folder| Disk.is_program(&folder.join(command)))
    }
}

/// Rejects a command that was meant to be something else, and suggests the corrected line.
pub(super) fn check_program(
    name: &str,
    command: &str,
    args: &[String],
    place: &Place<'_>,
) -> Result<(), Failure> {
    if place.has_program(command) {
        return Ok(());
    }
    let shown = visible(command);
    let name = visible(name);
    if command.trim_start().starts_with('{') {
        return Err(Failure::usage("a JSON entry is not a command")
            .hint(format!("write `switchboard mcp add-json {name} '{{…}}'`")));
    }
    if let Some(meant) = meant_address(command, args) {
        let meant = visible(&mask::url(&meant)).into_owned();
        let shown = visible(&mask::url(command)).into_owned();
        return Err(
            Failure::usage(format!("`{shown}` is neither a program nor a URL"))
                .because("a URL starts with http://, https://, ws://, wss:// or unix://")
                .hint(format!(
                    "did you mean `switchboard mcp add {name} {meant}`?"
                ))
                .hint("for a program of that name, add --transport stdio"),
        );
    }
    if command.contains("://") {
        return Err(Failure::usage("the URL's scheme is not supported")
            .because("a URL starts with http://, https://, ws://, wss:// or unix://")
            .hint("for a program of that name, add --transport stdio"));
    }
    if args.is_empty()
        && let Some(line) = words::split(command)
        && let [program, _, ..] = line.as_slice()
        && (!program.contains(['/', '\\']) || place.has_program(program))
    {
        let line = words::join(mask::arguments(&line));
        return Err(Failure::usage(format!(
            "program `{}` was not found",
            visible(&mask::text(&shown))
        ))
        .because("the whole command line is one word, because it is in quotes")
        .hint(format!(
            "without the quotes: `switchboard mcp add {name} -- {}`",
            visible(&line)
        )));
    }
    Ok(())
}

/// The URL that a word was probably meant to be.
fn meant_address(word: &str, args: &[String]) -> Option<String> {
    if word.contains(char::is_whitespace) {
        return None;
    }
    mistyped_scheme(word).or_else(|| {
        let is_bare = args.is_empty() && is_host_and_path(word);
        is_bare.then(|| {
            let scheme = if is_this_machine(word) {
                "http"
            } else {
                "https"
            };
            format!("{scheme}://{word}")
        })
    })
}

/// `htps://x`, `https:/x`, `http//x`, `https:x`.
fn mistyped_scheme(word: &str) -> Option<String> {
    let end = word.find(|character: char| !character.is_ascii_alphanumeric())?;
    let (scheme, rest) = word.split_at(end);
    let marks = rest.len() - rest.trim_start_matches([':', '/', ';']).len();
    let (mark, rest) = rest.split_at(marks);
    if rest.is_empty() || scheme.len() < 2 || !(mark.starts_with([':', ';']) || mark == "//") {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    let known = Transport::SCHEMES
        .into_iter()
        .find(|known| *known == scheme);
    // Short schemes are too close to other words, so only longer ones allow a single edit.
    let near = || {
        let mut long = Transport::SCHEMES
            .into_iter()
            .filter(|known| known.len() > 3);
        long.find(|known| strsim::damerau_levenshtein(&scheme, known) <= 1)
    };
    let scheme = known.or_else(near)?;
    Some(format!("{scheme}://{rest}"))
}

/// `exa.ai/mcp`, `localhost:3000/mcp`, `127.0.0.1:8080`.
fn is_host_and_path(word: &str) -> bool {
    let (place, path) = match word.split_once('/') {
        Some((place, path)) => (place, Some(path)),
        None => (word, None),
    };
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (place, None),
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    if is_this_machine(host) {
        return port.is_some() || path.is_some();
    }
    let labels: Vec<&str> = host.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty()
            && !label.starts_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let Some((top, [_, ..])) = labels.split_last() else {
        return false;
    };
    let is_top = top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_number = labels.len() == 4 && labels.iter().all(|label| label.parse::<u8>().is_ok());
    let is_program = PROGRAM_ENDINGS.contains(&top.to_ascii_lowercase().as_str());
    labels.iter().all(is_label) && (is_number || is_top && !is_program)
}

fn is_this_machine(text: &str) -> bool {
    let host = text.split([':', '/']).next().unwrap_or_default();
    host.eq_ignore_ascii_case("localhost") || host.starts_with("127.") || host == "0.0.0.0"
}

#[cfg(test)]
mod tests {
    use super::meant_address;

    #[test]
    fn mistyped_urls_are_recognised() {
        for (word, expected) in [
            ("htps://x.y/z", Some("https://x.y/z")),
            ("HTTPS:/x.y/z", Some("https://x.y/z")),
            ("https//x.y/z", Some("https://x.y/z")),
            ("https:x.y/z", Some("https://x.y/z")),
            ("httpss://x.y", Some("https://x.y")),
            ("hhtp://localhost:3000", Some("http://localhost:3000")),
            ("https;//x.y", Some("https://x.y")),
            ("ws:/x.y", Some("ws://x.y")),
            ("exa.ai/mcp", Some("https://exa.ai/mcp")),
            ("mcp.example.com", Some("https://mcp.example.com")),
            ("localhost:3000/mcp", Some("http://localhost:3000/mcp")),
            ("127.0.0.1:8080", Some("http://127.0.0.1:8080")),
            ("10.0.0.7/mcp", Some("https://10.0.0.7/mcp")),
            ("npx", None),
            ("localhost", None),
            ("server.py", None),
            ("./server.py", None),
            ("scripts/run", None),
            ("C:\\tools\\server", None),
            ("C:/tools/server", None),
            ("python3.12", None),
            ("node_modules/.bin/x", None),
            ("a..b/c", None),
            ("@scope/package", None),
            ("", None),
        ] {
            assert_eq!(meant_address(word, &[]).as_deref(), expected, "{word}");
        }
        // A word with arguments after it is a command.
        assert_eq!(meant_address("exa.ai/mcp", &["x".to_owned()]), None);
    }
}

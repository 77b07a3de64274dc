//! URL elicitation: shows the complete URL with its host highlighted, and opens a browser only with consent.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use switchboard::internal::auth::interactive::browser;
use switchboard_protocol::types::elicitation::{
    ElicitAction, ElicitRequestUrlParams, ElicitResult,
};
use url::Url;

use super::{paragraph, safe};
use crate::printer::{Printer, paint, style};
use crate::terminal::{Key, Keyboard};

pub(super) async fn visit(
    server: &str,
    params: &ElicitRequestUrlParams<'_>,
    variables: &Arc<[(OsString, OsString)]>,
    printer: &Printer,
) -> io::Result<ElicitResult<'static>> {
    let name = paint(style::NAME, safe(server));
    printer.ask(format!(
        "{} {name} asks you to visit a page:\n",
        paint(style::WARNING, "?")
    ));
    printer.ask(paragraph(&params.message));
    let page = Url::parse(&params.url).ok();
    let page = page.filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some((url, address)) = page.and_then(|url| Some((url.clone(), address(&url)?))) else {
        let reason = format!("declined: `{}` is not a web address", safe(&params.url));
        printer.warning(reason, None);
        return Ok(ElicitResult::new(ElicitAction::Decline));
    };
    printer.ask(format!("  {address}\n"));
    if url.scheme() == "http" && !is_local(&url) {
        printer.ask(format!(
            "  {}\n",
            paint(
                style::WARNING,
                "the page is not encrypted: others on the network can read what you type there"
            )
        ));
    }
    let has_browser = browser::is_at_hand(variables);
    let key = |key: &str| paint(style::NAME, key);
    let yes = if has_browser {
        "open it in the browser"
    } else {
        "I will open it myself"
    };
    printer.ask(format!(
        "  {} {yes}  {} no (default)  {} not now ",
        key("y"),
        key("n"),
        key("esc"),
    ));
    let pressed = Keyboard::open()?.key().await?;
    if let Key::Character(character) = pressed {
        printer.ask(safe(&character.to_string()));
    }
    printer.ask("\n");
    let action = match pressed {
        Key::Character('y' | 'Y') => {
            if has_browser && let Err(error) = browser::open(&url, variables) {
                printer.warning(error, Some("open the address above yourself"));
            }
            ElicitAction::Accept
        }
        Key::Escape | Key::End => ElicitAction::Cancel,
        _ => ElicitAction::Decline,
    };
    Ok(ElicitResult::new(action))
}

/// Highlights the host as the browser parses it, so that userinfo or lookalikes cannot pass for it.
fn address(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    let full = url.as_str();
    let start = url.scheme().len() + "://".len();
    let authority = full.get(start..)?;
    let authority = authority.split(['/', '?', '#']).next()?;
    // Anything before an @ is userinfo, not part of the host.
    let before = authority
        .rsplit_once('@')
        .map_or(0, |(user, _)| user.len() + 1);
    let at = start + before;
    let (head, rest) = (full.get(..at)?, full.get(at + host.len()..)?);
    Some(format!(
        "{}{}{}",
        safe(head),
        paint(style::NAME.underline(), safe(host)),
        safe(rest)
    ))
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_host_is_highlighted() {
        let shown = |text: &str| {
            let url = Url::parse(text).unwrap();
            let marked = address(&url).unwrap();
            let on = style::NAME.underline();
            marked
                .replace(&format!("{on}"), "[")
                .replace(&format!("{on:#}"), "]")
        };
        for (url, expected) in [
            (
                "https://a.example/login?x=1#y",
                "https://[a.example]/login?x=1#y",
            ),
            (
                "https://bank.example@evil.example/",
                "https://bank.example@[evil.example]/",
            ),
            (
                "https://bank.example:443%2f@evil.example:8443/x",
                "https://bank.example:443%2f@[evil.example]:8443/x",
            ),
            ("https://аpple.example", "https://[xn--pple-43d.example]/"),
            ("http://[::1]:80/a@b", "http://[[::1]]/a@b"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }
}

//! URL elicitation: shows the complete URL with its host highlighted, and opens a browser only with consent.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use anstyle::Style;
use switchboard::internal::auth::interactive::browser;
use switchboard_protocol::types::elicitation::{
    ElicitAction, ElicitRequestUrlParams, ElicitResult,
};
use unicode_width::UnicodeWidthChar as _;
use url::Url;

use super::{paragraph, safe};
use crate::dialog::{Choice, Chosen, Dialog};
use crate::live::{self, Line};
use crate::printer::{Printer, style};
use crate::screen;

pub(super) async fn visit(
    server: &str,
    params: &ElicitRequestUrlParams<'_>,
    variables: &Arc<[(OsString, OsString)]>,
    printer: &Printer,
) -> io::Result<ElicitResult<'static>> {
    let name = safe(server);
    let mut dialog = Dialog::open(&format!("{name} has a question"), printer).await?;
    dialog.say(vec![
        (style::WARNING, "? ".to_owned()),
        (style::NAME, name),
        (Style::new(), " asks you to visit a page:".to_owned()),
    ]);
    paragraph(&params.message, &mut dialog);
    let page = Url::parse(&params.url).ok();
    let page = page.filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some((url, address)) = page.and_then(|url| Some((url.clone(), address(&url)?))) else {
        let reason = format!("declined: `{}` is not a web address", safe(&params.url));
        printer.warning(reason, None);
        return Ok(ElicitResult::new(ElicitAction::Decline));
    };
    for row in rows(&address, screen::size().columns.saturating_sub(3)) {
        dialog.say(row);
    }
    if url.scheme() == "http" && !is_local(&url) {
        let warning =
            "the page is not encrypted: others on the network can read what you type there";
        dialog.say(vec![(style::WARNING, format!("  {warning}"))]);
    }
    let has_browser = browser::is_at_hand(variables);
    let yes = if has_browser {
        "open it in the browser"
    } else {
        "I will open it myself"
    };
    let choices = [Choice::new('y', yes), Choice::new('n', "no")];
    let chosen = loop {
        match dialog.choose(&choices, Some(1)).await? {
            Chosen::Resized | Chosen::Back | Chosen::Forward => {}
            chosen => break chosen,
        }
    };
    let is_panel = dialog.is_panel();
    drop(dialog);
    let action = match chosen {
        Chosen::Key('y') => {
            if is_panel {
                printer.note(live::painted(&address));
            }
            if has_browser && let Err(error) = browser::open(&url, variables) {
                printer.warning(error, Some("open the address above yourself"));
            }
            ElicitAction::Accept
        }
        Chosen::Key(_) | Chosen::Other => ElicitAction::Decline,
        _ => ElicitAction::Cancel,
    };
    Ok(ElicitResult::new(action))
}

/// Breaks a line into rows, so that none of it is cut.
fn rows(line: &Line, room: usize) -> Vec<Line> {
    let indent = || vec![(Style::new(), "  ".to_owned())];
    let mut rows = vec![indent()];
    let mut used = 0;
    for (style, text) in line {
        for character in text.chars() {
            let width = character.width().unwrap_or_default();
            if used + width > room.max(20) {
                rows.push(indent());
                used = 0;
            }
            used += width;
            if let Some(row) = rows.last_mut() {
                match row.last_mut() {
                    Some((last, piece)) if last == style => piece.push(character),
                    _ => row.push((*style, character.to_string())),
                }
            }
        }
    }
    rows
}

/// Highlights the host as the browser parses it, so that userinfo or lookalikes cannot pass for it.
fn address(url: &Url) -> Option<Line> {
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
    Some(vec![
        (Style::new(), safe(head)),
        (style::NAME.underline(), safe(host)),
        (Style::new(), safe(rest)),
    ])
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
            let marked = live::painted(&address(&url).unwrap());
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

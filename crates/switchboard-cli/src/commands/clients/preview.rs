//! Shows how a client's file changes, as a unified diff with secrets masked.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};
use switchboard_config::clients::{Client, masked};
use switchboard_config::mask;
use switchboard_config::text::visible;
use switchboard_config::write;

use super::Machine;
use crate::printer::{paint, style};

/// Unchanged lines shown around a change.
const CONTEXT: usize = 2;

impl Machine<'_> {
    /// The change of a client's file. `None` is a file that does not exist.
    pub(super) fn preview(
        &self,
        client: &Client,
        before: Option<&str>,
        after: Option<&str>,
    ) -> String {
        let path = self.shown(&client.path);
        let what = match (before, after) {
            (None, _) => " (new file)",
            (_, None) => " (deleted)",
            _ => "",
        };
        let mut text = format!(
            "{}{} {path}{what}\n",
            paint(style::NAME, client.tool),
            paint(style::QUIET, ":")
        );
        if let Some(link) = self.link(client) {
            let _ = writeln!(text, "{}", paint(style::WARNING, link));
        }
        let hide =
            |text: Option<&str>| masked(&client.path, client.format, text.unwrap_or_default());
        let (before, after) = (hide(before), hide(after));
        let diff = TextDiff::from_lines(&before, &after);
        for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
            let _ = writeln!(text, "{}", paint(style::QUIET, hunk.header()));
            for change in hunk.iter_changes() {
                let (sign, color) = match change.tag() {
                    ChangeTag::Equal => (' ', style::QUIET),
                    ChangeTag::Delete => ('-', style::REMOVED),
                    ChangeTag::Insert => ('+', style::GOOD),
                };
                let line = change.value().trim_end_matches(['\r', '\n']);
                let line = mask::text(line).replace('\t', "    ");
                let _ = writeln!(
                    text,
                    "{}",
                    paint(color, format!("{sign}{}", visible(&line)))
                );
            }
        }
        text
    }

    /// Where a symlink leads; `None` if the file is not one.
    fn link(&self, client: &Client) -> Option<String> {
        let real = write::real_path(&client.path)?;
        let is_link = client
            .path
            .symlink_metadata()
            .is_ok_and(|found| found.is_symlink());
        let home = &self.context.environment.home;
        let leaves_home = client.path.starts_with(home) && !real.starts_with(home);
        let shown = visible(&real.display().to_string()).into_owned();
        match (is_link, leaves_home) {
            (_, true) => Some(format!(
                "  it leads out of your home folder: {shown} is changed"
            )),
            (true, false) => Some(format!("  it is a link: {shown} is changed")),
            (false, false) => None,
        }
    }
}

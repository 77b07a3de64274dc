//! Shows a running call as a live line on a terminal.

use std::sync::Arc;
use std::time::Duration;

use anstyle::Style;
use switchboard::{CallError, CallOutcome, CallRequest, Host, Progress};
use switchboard_config::text::visible;
use tokio::sync::watch;

use crate::live::{self, Line, spinner};
use crate::printer::{Printer, style};

/// Calls the tool, showing its progress.
pub(super) async fn call(
    printer: &Printer,
    label: &str,
    mut request: CallRequest,
    host: &Host,
) -> Result<CallOutcome, CallError> {
    let (sender, receiver) = watch::channel(None);
    request.progress = Some(Arc::new(move |progress: Progress| {
        sender.send_replace(Some(progress));
    }));
    live::with_line(printer, host.request(request), |elapsed, turn| {
        line(label, elapsed, receiver.borrow().as_ref(), turn)
    })
    .await
}

fn line(label: &str, elapsed: Duration, progress: Option<&Progress>, turn: usize) -> Line {
    let text = progress.map(text).unwrap_or_default();
    vec![
        (style::HINT, format!("{} ", spinner(turn))),
        (style::NAME, visible(label).into_owned()),
        (Style::new(), format!("  {} s  {text}", elapsed.as_secs())),
    ]
}

/// The progress as text.
fn text(progress: &Progress) -> String {
    let done = match progress.total {
        Some(total) if total > 0.0 => {
            let percent = (progress.progress / total * 100.0).clamp(0.0, 100.0);
            format!("{percent:.0} %")
        }
        _ => progress.progress.to_string(),
    };
    match progress.message.as_deref() {
        Some(message) => format!("{done}  {}", visible(message)),
        None => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_what_is_known() {
        let check = |progress, total, message: Option<&str>, expected: &str| {
            let progress = Progress {
                progress,
                total,
                message: message.map(str::to_owned),
            };
            assert_eq!(text(&progress), expected);
        };
        check(1.0, Some(4.0), None, "25 %");
        check(9.0, Some(4.0), Some("over\u{1b}"), "100 %  over\\u{1b}");
        check(3.0, Some(0.0), None, "3");
        check(3.5, None, Some("going"), "3.5  going");
    }
}

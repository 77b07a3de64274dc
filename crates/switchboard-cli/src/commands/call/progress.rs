//! A call that takes its time, shown while it does: a line on a terminal, and nothing is left of it afterwards.

use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use switchboard::Host;
use switchboard::call::{CallError, CallOutcome, CallRequest};
use switchboard::peer::Progress;
use switchboard_config::text::visible;
use tokio::sync::watch;
use tokio::time::{Instant, interval_at};

use crate::printer::Printer;

/// What is faster is not shown.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(80);

/// Calls the tool and shows how far it is.
pub(super) async fn shown(
    printer: &Printer,
    label: &str,
    mut request: CallRequest,
    host: &Host,
) -> Result<CallOutcome, CallError> {
    if !printer.is_live() {
        return host.call(request).await;
    }
    let (sender, news) = watch::channel(None);
    request.progress = Some(Arc::new(move |progress: Progress| {
        sender.send_replace(Some(progress));
    }));
    let mut calling = std::pin::pin!(host.call(request));
    let mut ticks = interval_at(Instant::now() + PATIENCE, TICK);
    let mut line: Option<Line> = None;
    loop {
        tokio::select! {
            outcome = &mut calling => return outcome,
            _ = ticks.tick() => {
                let line = line.get_or_insert_with(|| Line::new(label));
                line.draw(news.borrow().as_ref());
            }
        }
    }
}

/// The line while it is on the screen.
struct Line(ProgressBar);

impl Line {
    fn new(label: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {prefix}  {wide_msg} {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        bar.set_style(style.tick_strings(&["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏", " "]));
        bar.set_prefix(visible(label).into_owned());
        Self(bar)
    }

    fn draw(&self, progress: Option<&Progress>) {
        self.0.set_message(progress.map_or_else(String::new, said));
        self.0.tick();
    }
}

impl Drop for Line {
    /// Whatever ends the wait, the screen is as it was before.
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// How far a call is, in words.
fn said(progress: &Progress) -> String {
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
    fn progress_is_told_as_far_as_it_is_known() {
        let check = |progress, total, message: Option<&str>, expected: &str| {
            let progress = Progress {
                progress,
                total,
                message: message.map(str::to_owned),
            };
            assert_eq!(said(&progress), expected);
        };
        check(1.0, Some(4.0), None, "25 %");
        check(9.0, Some(4.0), Some("over\u{1b}"), "100 %  over\\u{1b}");
        check(3.0, Some(0.0), None, "3");
        check(3.5, None, Some("going"), "3.5  going");
    }
}

//! The permission prompt on the terminal: shows the call and the reason for asking, and reads a one-key answer.
//!
//! Owns the layout. The content comes from the host's [`ConsentView`]; approving requires that all of it has been on
//! the screen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anstyle::Style;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use switchboard::internal::catalog::text::neutralise;
use switchboard::permissions::{
    Approver, Because, ConsentView, GrantPlace, Offer, PromptAnswer, Question, Screen,
};
use switchboard_config::edit::NewRule;
use switchboard_config::text::visible;
use switchboard_config::trust;
use tokio::sync::oneshot;

use crate::cli::WritableScope;
use crate::context::Context;
use crate::dialog::{Choice, Chosen, Dialog};
use crate::error::Failure;
use crate::exit::Exit;
use crate::live::{self, Line};
use crate::local_file::Target;
use crate::markdown::DiffColors;
use crate::printer::{Printer, paint, style};
use crate::questions::entry::Entered;
use crate::terminal::{self, fitted};
use crate::{json_text, pager, screen, store, view};

/// Rows that the prompt needs besides the call and the choices.
const ROWS_AROUND: usize = 7;
/// Characters shown of one argument.
const MAX_ARGUMENT_CHARS: usize = 2000;
/// Arguments shown in the summary.
const MAX_ARGUMENTS: usize = 8;

/// Prompts on the terminal.
pub(crate) struct Terminal {
    context: Context,
    /// The calls that wait for an answer, in the order in which they were asked about. Whichever prompt is open shows
    /// all of them.
    waiting: Mutex<Vec<Waiting>>,
    next_id: AtomicU64,
}

/// A call that waits for an answer.
struct Waiting {
    id: u64,
    call: Arc<AskedCall>,
    answer: oneshot::Sender<PromptAnswer>,
}

/// What the user sees of a call, and what can be granted.
struct AskedCall {
    view: ConsentView,
    /// Whether a preview is a diff.
    is_diff: bool,
    /// Sanitized.
    because: String,
    remark: Option<String>,
    offers: Vec<Offer>,
    /// As JSON.
    arguments: Option<String>,
    has_trusted_hints: bool,
}

/// The call on the screen.
struct Shown {
    id: u64,
    call: Arc<AskedCall>,
    /// Whether all of the call has been on the screen.
    is_complete: bool,
    /// Whether a part of it is not on the screen now.
    is_folded: bool,
    /// The index of the offered grant.
    width: usize,
}

/// What the user did with the call on the screen.
enum Act {
    Answer(PromptAnswer),
    /// Look at the call before or after it.
    Earlier,
    Later,
    /// Show it again.
    Stay,
}

impl Terminal {
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            waiting: Mutex::default(),
            next_id: AtomicU64::new(0),
        }
    }

    fn printer(&self) -> &Printer {
        &self.context.printer
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self, question: &Question<'_>) -> AskedCall {
        let home = &self.context.environment.home;
        let because = match question.because {
            Because::Rule { tool, origin } => {
                let place = view::place(origin, home);
                format!("the rule \"{}\" asks, at {place}", safe(tool))
            }
            Because::Hook {
                origin: Some(origin),
            } => format!("the hook at {} asks", view::place(origin, home)),
            other => safe(&other.to_string()),
        };
        AskedCall {
            view: ConsentView::of(question),
            is_diff: question
                .preview
                .is_some_and(|preview| preview.text.starts_with("--- ")),
            because,
            remark: question.remark.map(safe),
            offers: question.offers.to_vec(),
            arguments: question.arguments.map(|raw| raw.get().to_owned()),
            has_trusted_hints: question.subject.annotations.is_some(),
        }
    }

    /// Waits for the answer to a call: from its own prompt, or from one that was open before.
    async fn answer(&self, question: &Question<'_>) -> std::io::Result<PromptAnswer> {
        let call = Arc::new(self.asked(question));
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answered) = oneshot::channel();
        let registered = Registered { terminal: self, id };
        self.waiting().push(Waiting {
            id,
            call: Arc::clone(&call),
            answer: sender,
        });
        let name = call.view.server.as_ref().unwrap_or(&call.view.tool);
        let heading = format!("a call of {name} waits for your answer");
        tokio::select! {
            biased;
            answer = answered => Ok(answer.unwrap_or(PromptAnswer::No)),
            dialog = Dialog::open(&heading, self.printer()) => {
                self.prompt(registered.id, call, dialog?).await
            }
        }
    }

    /// Prompts until the user has answered this call. Answers others that wait on the way.
    async fn prompt(
        &self,
        own: u64,
        call: Arc<AskedCall>,
        mut dialog: Dialog<'_>,
    ) -> std::io::Result<PromptAnswer> {
        // The call that has waited longest comes first, whichever prompt is open.
        let mut shown = self.first().unwrap_or_else(|| Shown::new(own, call));
        let mut is_said = false;
        loop {
            if dialog.is_panel() || !is_said {
                is_said = true;
                self.say(&mut dialog, &mut shown);
            }
            let answer = match self.act(&mut dialog, &mut shown).await? {
                Act::Answer(answer) => answer,
                Act::Earlier => {
                    shown = self.neighbour(shown, -1);
                    continue;
                }
                Act::Later => {
                    shown = self.neighbour(shown, 1);
                    continue;
                }
                Act::Stay => continue,
            };
            let is_grant = matches!(answer, PromptAnswer::Grant { .. });
            let is_own = shown.id == own;
            if !is_own {
                self.send(shown.id, answer.clone());
            }
            if is_grant {
                // It may cover other calls that wait. This prompt ends, too, unless it was about this call.
                self.consider_others_again(if is_own { own } else { shown.id }, own);
                if is_own {
                    return Ok(answer);
                }
                // The other call takes its grant first.
                tokio::task::yield_now().await;
                return Ok(PromptAnswer::Again);
            }
            if is_own {
                return Ok(answer);
            }
            match self.first() {
                Some(first) => shown = first,
                None => return Ok(PromptAnswer::No),
            }
        }
    }

    fn first(&self) -> Option<Shown> {
        let waiting = self.waiting();
        let first = waiting.first()?;
        Some(Shown::new(first.id, Arc::clone(&first.call)))
    }

    /// Answers another call that waits.
    fn send(&self, id: u64, answer: PromptAnswer) {
        let mut waiting = self.waiting();
        if let Some(index) = waiting.iter().position(|waiting| waiting.id == id) {
            let _ = waiting.remove(index).answer.send(answer);
        }
    }

    fn consider_others_again(&self, granted: u64, own: u64) {
        let ids: Vec<u64> = self.waiting().iter().map(|waiting| waiting.id).collect();
        for id in ids.into_iter().filter(|id| *id != granted && *id != own) {
            self.send(id, PromptAnswer::Again);
        }
    }

    /// The call before or after the one on the screen, in a circle.
    fn neighbour(&self, shown: Shown, by: isize) -> Shown {
        let waiting = self.waiting();
        let count = waiting.len();
        let at = waiting.iter().position(|waiting| waiting.id == shown.id);
        let next = at.map(|at| (at + count).saturating_add_signed(by) % count.max(1));
        match next.and_then(|next| waiting.get(next)) {
            Some(next) if next.id != shown.id => Shown::new(next.id, Arc::clone(&next.call)),
            _ => shown,
        }
    }

    /// Says what the call is, as much as fits.
    fn say(&self, dialog: &mut Dialog<'_>, shown: &mut Shown) {
        let size = screen::size();
        let call = Arc::clone(&shown.call);
        let around = self.choices(shown, true).len() + ROWS_AROUND;
        dialog.clear();
        dialog.say(call.title());
        let folded = call.view.folded(Screen {
            columns: size.columns.saturating_sub(1),
            rows: size.rows.saturating_sub(around),
        });
        for row in painted(&folded.rows, call.is_diff) {
            dialog.say(row);
        }
        let because = format!("because {}", call.because);
        if dialog.is_panel() {
            dialog.say_wrapped(&because);
        } else {
            dialog.say(vec![(style::QUIET, format!("  {because}"))]);
        }
        if let Some(remark) = &call.remark {
            let remark = fitted(remark, size.columns.saturating_sub(3)).into_owned();
            dialog.say(vec![(style::WARNING, format!("  {remark}"))]);
        }
        shown.is_folded = !folded.is_complete();
        shown.is_complete |= !shown.is_folded;
        let waiting = self.waiting();
        if dialog.is_panel() && waiting.len() > 1 {
            let at = waiting.iter().position(|waiting| waiting.id == shown.id);
            let place = format!(
                "  call {} of {} that wait: ← → shows the others",
                at.unwrap_or_default() + 1,
                waiting.len()
            );
            dialog.say(vec![(style::HINT, place)]);
        }
    }

    /// The possible answers.
    fn choices(&self, shown: &Shown, is_panel: bool) -> Vec<Choice> {
        let mut choices = Vec::new();
        if shown.is_folded {
            choices.push(Choice::new('v', "show all of it"));
        }
        choices.push(Choice::new('y', "once"));
        let offers = &shown.call.offers;
        if let Some(offer) = offers.get(shown.width) {
            let words = |place: &str| {
                if is_panel {
                    format!("{place}: {}", offer.words)
                } else {
                    place.to_owned()
                }
            };
            choices.push(Choice::new('s', words("until this program ends")));
            if offer.rule.is_some() {
                if self.has_project() {
                    choices.push(Choice::new('p', words("in this project")));
                }
                choices.push(Choice::new('a', words("everywhere")));
            }
            let other = (shown.width + 1) % offers.len();
            if let (true, Some(other)) = (offers.len() > 1, offers.get(other)) {
                let words = format!("change s, p, a to: {}", other.words);
                let words = if is_panel { words } else { String::new() };
                choices.push(Choice::new('w', words));
            }
        }
        if is_panel && shown.call.can_edit() {
            choices.push(Choice::new('e', "edit the arguments"));
        }
        if is_panel {
            choices.push(Choice::new('r', "no, and tell the model why"));
        }
        choices.push(Choice::new('n', "no"));
        choices
    }

    fn has_project(&self) -> bool {
        !self.context.flags.no_project
    }

    /// Lets the user act on the call on the screen. Leaving the prompt denies the call.
    async fn act(&self, dialog: &mut Dialog<'_>, shown: &mut Shown) -> std::io::Result<Act> {
        let is_panel = dialog.is_panel();
        let call = Arc::clone(&shown.call);
        if let (false, Some(offer)) = (is_panel, call.offers.get(shown.width)) {
            let other = if call.offers.len() > 1 {
                "  (w other)"
            } else {
                ""
            };
            dialog.say_text(&format!("  allow from now on: {}{other}", offer.words));
        }
        let choices = self.choices(shown, is_panel);
        let key = match dialog.choose(&choices, Some(choices.len() - 1)).await? {
            Chosen::Key(key) => key,
            Chosen::Left | Chosen::Other => return Ok(Act::Answer(PromptAnswer::No)),
            Chosen::Resized => return Ok(Act::Stay),
            Chosen::Back => return Ok(Act::Earlier),
            Chosen::Forward => return Ok(Act::Later),
        };
        let place = match key {
            'v' => {
                shown.is_complete |= self.show_all(dialog, &call).await?;
                return Ok(Act::Stay);
            }
            'w' => {
                shown.width = (shown.width + 1) % call.offers.len().max(1);
                return Ok(Act::Stay);
            }
            'e' => return Ok(edited(dialog, &call).await?.map_or(Act::Stay, Act::Answer)),
            'r' => return Ok(reason(dialog).await?.map_or(Act::Stay, Act::Answer)),
            'y' => None,
            's' => Some(GrantPlace::Session),
            'p' => Some(GrantPlace::Project),
            'a' => Some(GrantPlace::User),
            _ => return Ok(Act::Answer(PromptAnswer::No)),
        };
        // Nothing can be approved before it has been shown.
        if !shown.is_complete {
            let refusal = "part of the call is not shown: press v and scroll to its end first";
            self.printer().warning(refusal, None);
            return Ok(Act::Stay);
        }
        Ok(Act::Answer(self.granted(place, shown)))
    }

    /// Shows the whole call: in a pager above a panel, else printed. Returns whether its end has been on the screen.
    async fn show_all(&self, dialog: &mut Dialog<'_>, call: &AskedCall) -> std::io::Result<bool> {
        let rows = call.view.unfolded(screen::size().columns.saturating_sub(1));
        let rows = painted(&rows, call.is_diff);
        if dialog.is_panel() {
            let title = format!("call {}", call.view.tool);
            return pager::scroll(dialog, &title, &rows, self.printer()).await;
        }
        for row in &rows {
            self.printer().ask(format!("{}\n", live::painted(row)));
        }
        Ok(true)
    }

    fn granted(&self, place: Option<GrantPlace>, shown: &Shown) -> PromptAnswer {
        let Some(place) = place else {
            return PromptAnswer::Once;
        };
        let offer = shown.width;
        if let (GrantPlace::Session, Some(granted)) = (place, shown.call.offers.get(offer)) {
            let words = format!("allowed until this program ends: {}", granted.words);
            self.printer().note(paint(style::QUIET, words));
        }
        PromptAnswer::Grant { offer, place }
    }

    fn write_rule(&self, rule: &NewRule, place: GrantPlace) -> Result<(), String> {
        let scope = match place {
            GrantPlace::Project => WritableScope::Local,
            _ => WritableScope::User,
        };
        let target = Target::of_scope(scope, &self.context);
        let written = match scope {
            WritableScope::Local => self.write_local_rule(rule, &target),
            _ => store::add_rule(&target, &self.context, rule),
        };
        let file = view::path(&target.path, &self.context.environment.home);
        match written {
            Ok(()) => {
                let tool = paint(style::NAME, safe(&rule.tool));
                self.printer().note(format!(
                    "a rule for {tool} was added to {file}; delete it to be asked again"
                ));
                Ok(())
            }
            Err(failure) => {
                let causes = failure.causes.join("; ");
                let message = format!("no rule was written: {}: {causes}", failure.message);
                self.printer()
                    .warning(&message, Some("this call is allowed, once"));
                Err(message)
            }
        }
    }

    /// Adds a rule to the project's local file and approves the file. Fails if it contains rules that are not approved
    /// yet: they would be approved along with it.
    fn write_local_rule(&self, rule: &NewRule, target: &Target) -> Result<(), Failure> {
        let context = &self.context;
        let name = target.path.file_name().map(|name| name.to_string_lossy());
        let is_local = |question: &trust::Question| match &question.subject {
            trust::Subject::Section { file, part } => {
                *part == "permissions" && Some(file.as_str()) == name.as_deref()
            }
            trust::Subject::Server(_) => false,
        };
        let before = context.load_files(context.decisions());
        if !context.flags.trust_project && before.questions.iter().any(|each| is_local(each)) {
            let message = format!("the rules in {} are not approved", target.shown());
            return Err(Failure::new(Exit::Denied, message)
                .because("adding a rule would approve the others, too")
                .hint("review them with `switchboard trust diff`, then approve or remove them"));
        }
        store::add_rule(target, context, rule)?;
        let after = context.load_files(context.decisions());
        let Some(question) = after.questions.iter().find(|each| is_local(each)) else {
            return Ok(());
        };
        let (subject, fingerprint) = (question.subject.clone(), question.fingerprint.clone());
        store::change_decisions(context, |decisions, now| {
            decisions.approve(&context.project, &subject, fingerprint, now);
        })
    }
}

impl Approver for Terminal {
    fn is_there(&self) -> bool {
        terminal::is_there()
    }

    fn asks_one_at_a_time(&self) -> bool {
        // One prompt is open at a time, and shows all calls that wait.
        false
    }

    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, PromptAnswer> {
        async move { self.answer(&question).await.unwrap_or(PromptAnswer::No) }.boxed()
    }

    fn remember<'a>(
        &'a self,
        rule: &'a NewRule,
        place: GrantPlace,
    ) -> BoxFuture<'a, Result<(), String>> {
        async move { self.write_rule(rule, place) }.boxed()
    }
}

/// A call in the list of those that wait; dropping it removes the call.
struct Registered<'t> {
    terminal: &'t Terminal,
    id: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.terminal
            .waiting()
            .retain(|waiting| waiting.id != self.id);
    }
}

impl Shown {
    fn new(id: u64, call: Arc<AskedCall>) -> Self {
        Self {
            id,
            call,
            is_complete: false,
            is_folded: true,
            width: 0,
        }
    }
}

impl AskedCall {
    /// Whether the arguments can be edited. Secrets are masked in the prompt, and would not be in an editor.
    fn can_edit(&self) -> bool {
        self.arguments.is_some() && self.view.entries.iter().all(|entry| !entry.is_masked)
    }

    /// The tool, its server, and whether the server's hints about it count.
    fn title(&self) -> Line {
        let mut title = vec![
            (style::WARNING, "call ".to_owned()),
            (style::NAME, self.view.tool.clone()),
        ];
        if let Some(server) = &self.view.server {
            title.push((Style::new(), " of server ".to_owned()));
            title.push((style::NAME, server.clone()));
        }
        title.push((Style::new(), "?".to_owned()));
        if self.view.server.is_some() {
            let hints = if self.has_trusted_hints {
                "  its hints are trusted"
            } else {
                "  its hints are not trusted"
            };
            title.push((style::QUIET, hints.to_owned()));
        }
        title
    }
}

/// Lets the user change the arguments; `None` if nothing was changed.
async fn edited(
    dialog: &mut Dialog<'_>,
    call: &AskedCall,
) -> std::io::Result<Option<PromptAnswer>> {
    let Some(arguments) = &call.arguments else {
        return Ok(None);
    };
    let keys = "  enter checks the changed call and shows it again, esc goes back";
    dialog.say(vec![(style::QUIET, keys.to_owned())]);
    let before = json_text::indented(arguments);
    let prompt = vec![(style::HINT, "  › ".to_owned())];
    let Entered::Line(text) = dialog.line(&prompt, &before).await? else {
        return Ok(None);
    };
    Ok((text != before).then_some(PromptAnswer::Edited(text)))
}

/// Asks why not; `None` if the user goes back.
async fn reason(dialog: &mut Dialog<'_>) -> std::io::Result<Option<PromptAnswer>> {
    let prompt = vec![(style::HINT, "  tell the model › ".to_owned())];
    let Entered::Line(reason) = dialog.line(&prompt, "").await? else {
        return Ok(None);
    };
    Ok(Some(match reason.trim() {
        "" => PromptAnswer::No,
        reason => PromptAnswer::NoBecause(reason.to_owned()),
    }))
}

/// Colours the rows of a diff. Other previews are as they are: a list that starts with `-` is not removed.
fn painted(rows: &[String], is_diff: bool) -> Vec<Line> {
    const GUTTER: &str = "  │ ";
    let mut colors = DiffColors::new(Style::new());
    let paint = |row: &String| match row.strip_prefix(GUTTER).filter(|_| is_diff) {
        Some(line) => {
            let mut row = vec![(style::QUIET, GUTTER.to_owned())];
            row.extend(colors.line(line));
            row
        }
        None => vec![(Style::new(), row.clone())],
    };
    rows.iter().map(paint).collect()
}

/// Returns the arguments of a running call, one line each, with secrets masked and control characters escaped.
pub(crate) fn arguments(arguments: Option<&RawValue>) -> Vec<String> {
    let view = ConsentView::new("", None, arguments);
    let line = |entry: &switchboard::permissions::Entry| {
        let short: String = entry.text.chars().take(MAX_ARGUMENT_CHARS).collect();
        // Each argument gets one line; showing a line break as a symbol hides nothing.
        let short = short.trim_end().replace('\n', " ⏎ ").replace('\t', " ");
        format!("{}: {short}", entry.label)
    };
    let mut lines: Vec<String> = view.entries.iter().take(MAX_ARGUMENTS).map(line).collect();
    if view.entries.len() > MAX_ARGUMENTS {
        lines.push(format!("… and {} more", view.entries.len() - MAX_ARGUMENTS));
    }
    lines
}

fn safe(text: &str) -> String {
    visible(&neutralise(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn arguments_are_shown_without_secrets_and_tricks() {
        let check = |given: Value, expected: &[&str]| {
            let raw = serde_json::value::to_raw_value(&given).unwrap();
            assert_eq!(arguments(Some(&raw)), expected, "{given}");
        };
        check(json!({}), &[]);
        check(json!({"message": "hi", "n": 5}), &["message: hi", "n: 5"]);
        check(json!({"api_token": "abc"}), &["api_token: ********"]);
        check(json!({"run": "cd a\nls\n"}), &["run: cd a ⏎ ls"]);
        check(json!({"command": "cd a\nls\n"}), &["command: cd a ⏎ ls"]);
        check(
            json!({"x": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}),
            &["x: ********"],
        );
        check(json!({"o": {"password": "p"}}), &["o.password: ********"]);
        check(
            json!({"a": "\u{1b}[31mred\u{202e}"}),
            &["a: \\u{1b}[31mred\\u{202e}"],
        );
        let many: serde_json::Map<_, _> = (0..20).map(|n| (format!("k{n:02}"), json!(n))).collect();
        assert_eq!(
            arguments(Some(&serde_json::value::to_raw_value(&many).unwrap()))
                .last()
                .unwrap(),
            "… and 12 more"
        );
    }
}

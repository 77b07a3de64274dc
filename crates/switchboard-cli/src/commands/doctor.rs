//! `switchboard doctor`: diagnoses the connection to every server, and suggests fixes.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use switchboard_config::sort;

use anstyle::Style;
use serde_json::{Value, json};
use switchboard::catalog::{CatalogServer, SetAsideReason};
use switchboard::internal::catalog::text::CUT_MARK;
use switchboard::internal::desired::WithheldServer;
use switchboard::internal::doctor::{
    Diagnosis, DoctorOptions, Facts, Finding, Health, Outcome as StepOutcome, Repair, Severity,
    StepReport, diagnose, diagnose_all,
};
use switchboard::internal::remembered;
use switchboard::status::{Refusal, ServerState};
use switchboard::{HostSettings, ServerName};
use switchboard_config::diagnostic::{self, Diagnostic};
use switchboard_config::entry::Transport;
use switchboard_config::resolve::Config;
use switchboard_config::text::visible;

use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::live::{self, spinner};
use crate::printer::{Printer, Verbosity, paint, style};
use crate::servers::Servers;
use crate::session::{self, CommandHost};
use crate::startup::counted;
use crate::state::exit_of;
use crate::terminal;

/// Lines of stderr shown without `--verbose`.
const STDERR_LINES: usize = 10;

pub(crate) fn run(wanted: Option<&str>, repair: bool, context: &Context) -> Outcome {
    let servers = Servers::load(context, wanted)?;
    session::run_listing(context, &servers, async |session| {
        let (patients, absent, repairs) = examine(session, repair, context).await;
        let printer = &context.printer;
        let shown = if printer.json {
            let each = patients.iter();
            printer.json(&each.map(|patient| to_json(patient, &repairs)).collect())
        } else {
            let text = to_text(&patients, printer);
            printer.data(match terminal::width() {
                Some(columns) => terminal::wrapped(&text, columns),
                None => text,
            })
        };
        match shown {
            // A closed pipe does not change the exit code.
            Err(failure) if !failure.silent => return Err(failure),
            _ => {}
        }
        let all_mistakes = servers.config.diagnostics.iter();
        let mistakes = all_mistakes.filter(|mistake| is_error(mistake)).count();
        if mistakes > 0 && wanted.is_none() {
            let mistakes = counted(mistakes, "mistake");
            printer.note(format!(
                "{mistakes} in the configuration; `switchboard config check` shows them"
            ));
        }
        let absent = absent.filter(|_| wanted.is_some());
        Ok(absent.unwrap_or_else(|| exit(&patients, wanted.is_none() && mistakes > 0)))
    })
}

/// Examines the servers that can be started, and adds those that cannot. For a named server that is not examined, also
/// returns the exit code of a command that needs it.
async fn examine(
    session: &CommandHost<'_>,
    repair: bool,
    context: &Context,
) -> (Vec<Diagnosis>, Option<Exit>, Vec<Repaired>) {
    let options = DoctorOptions {
        settings: HostSettings::from(&session.servers.config.settings),
        home: Some(context.environment.home.clone()),
        handler: Arc::clone(session.host.handler()),
    };
    let desired = session.servers.desired(context, &session.audit);
    let specs = desired.servers;
    let examination = diagnose_all(&specs, &options);
    let mut patients = shown(&context.printer, specs.len(), examination).await;
    let mut repairs = Vec::new();
    if repair {
        repairs = run_repairs(&patients, &context.printer);
        for done in repairs.iter().filter(|repaired| repaired.error.is_none()) {
            let Some(spec) = specs.iter().find(|spec| spec.name == done.server) else {
                continue;
            };
            let again = shown(&context.printer, 1, diagnose(spec, &options)).await;
            patients.retain(|patient| patient.server != again.server);
            patients.push(again);
        }
        if repairs.is_empty() {
            context.printer.note("nothing to repair");
        }
    }
    set_pinned_aside(&mut patients, session);
    let config = &session.servers.config;
    let absent = desired.withheld.iter();
    patients.extend(absent.map(|server| withheld(server, config)));
    sort::by(&mut patients, |one, other| one.server.cmp(&other.server));
    let absent = desired.withheld.first();
    let absent = absent.map(|server| exit_of(&server.state));
    (patients, absent, repairs)
}

/// An attempted repair.
struct Repaired {
    server: ServerName,
    folder: String,
    error: Option<String>,
}

/// Runs every suggested repair, and prints what each removes.
fn run_repairs(patients: &[Diagnosis], printer: &Printer) -> Vec<Repaired> {
    let mut run: Vec<Repaired> = Vec::new();
    for patient in patients {
        for repair in &patient.repairs {
            let folder = repair.folder().display().to_string();
            // Two servers may use the same package.
            let earlier = run.iter().find(|repaired| repaired.folder == folder);
            let error = match earlier {
                Some(repaired) => repaired.error.clone(),
                None => removed(repair, printer),
            };
            run.push(Repaired {
                server: patient.server.clone(),
                folder,
                error,
            });
        }
    }
    run
}

/// Removes a folder and prints the outcome; returns the error.
fn removed(repair: &Repair, printer: &Printer) -> Option<String> {
    let folder = repair.folder().display().to_string();
    let folder = visible(&folder);
    let error = repair.run().err().map(|error| error.to_string());
    match &error {
        None => printer.note(format!("removed {folder}")),
        Some(error) => printer.note(format!("cannot remove {folder}: {error}")),
    }
    error
}

/// Counts tools pending approval as set aside, as every other command does. The examination itself does not compare
/// with pins, because it must not write state.
fn set_pinned_aside(patients: &mut [Diagnosis], session: &CommandHost<'_>) {
    let (outlines, lists) = session.servers.remembered(session.context);
    let catalog = remembered::catalog(&outlines, &lists);
    for patient in patients {
        let Some(facts) = &mut patient.facts else {
            continue;
        };
        let aside = catalog.server(patient.server.as_str());
        let aside = aside.into_iter().flat_map(CatalogServer::aside);
        let is_pinned = |reason: &SetAsideReason| {
            matches!(
                reason,
                SetAsideReason::Changed { .. } | SetAsideReason::PinsUnreadable { .. }
            )
        };
        let count = aside.filter(|aside| is_pinned(&aside.reason)).count();
        let count = count.min(facts.count.offered);
        if count == 0 {
            continue;
        }
        facts.count.offered -= count;
        facts.count.set_aside += count;
        facts.tools = facts.count.offered;
        let name = visible(patient.server.as_str());
        patient.findings.push(Finding {
            code: "pins-differ",
            severity: Severity::Note,
            what: format!(
                "{} set aside until you approve the change",
                counted(count, "tool")
            ),
            why: "their definitions differ from their pins".to_owned(),
            remedy: format!("`switchboard pins diff {name}`"),
        });
    }
}

/// A server that may not be started. Only an invalid entry counts as a fault.
fn withheld(held: &WithheldServer, config: &Config) -> Diagnosis {
    let server = held.name.clone();
    if let ServerState::Refused(Refusal::Unusable(error)) = &held.state {
        return Diagnosis::of_connector(server, error);
    }
    let (verdict, severity) = match exit_of(&held.state) {
        Exit::Configuration => (Health::Misconfigured, Severity::Error),
        Exit::Unreachable => (Health::Unreachable, Severity::Error),
        _ => (Health::NotExamined, Severity::Note),
    };
    let mistakes = config.diagnostics.iter().filter(|mistake| {
        is_error(mistake) && mistake.server.as_deref() == Some(held.name.as_str())
    });
    let mut findings: Vec<Finding> = mistakes.map(mistake_in_entry).collect();
    if verdict != Health::Misconfigured || findings.is_empty() {
        findings = vec![Finding {
            code: held.state.word(),
            severity,
            what: held.state.reason().unwrap_or_default(),
            why: "the server was not started".to_owned(),
            remedy: held
                .state
                .remedy(&held.name)
                .map_or_else(String::new, |remedy| remedy.to_string()),
        }];
    }
    Diagnosis::without_steps(server, verdict, findings)
}

fn mistake_in_entry(mistake: &Diagnostic) -> Finding {
    let hint = mistake.hint.as_deref();
    Finding {
        code: mistake.code,
        severity: Severity::Error,
        what: mistake.message.clone(),
        why: format!("at {}; the server was not started", mistake.place),
        remedy: hint
            .unwrap_or("`switchboard config check` shows the line")
            .to_owned(),
    }
}

fn is_error(mistake: &Diagnostic) -> bool {
    mistake.severity == diagnostic::Severity::Error
}

fn exit(patients: &[Diagnosis], has_mistakes: bool) -> Exit {
    let any = |verdict| patients.iter().any(|patient| patient.verdict == verdict);
    if has_mistakes || any(Health::Misconfigured) {
        Exit::Configuration
    } else if any(Health::Unreachable) {
        Exit::Unreachable
    } else if any(Health::NeedsLogin) || any(Health::TokenRejected) {
        Exit::NeedsLogin
    } else {
        Exit::Done
    }
}

fn to_text(patients: &[Diagnosis], printer: &Printer) -> String {
    let blocks: Vec<String> = patients
        .iter()
        .map(|patient| block(patient, printer))
        .collect();
    let mut text = blocks.join("\n");
    if patients.len() > 1 {
        let well = patients
            .iter()
            .filter(|patient| patient.verdict <= Health::Troubled)
            .count();
        let summary = format!(
            "{}, {} with faults",
            counted(patients.len(), "server"),
            patients.len() - well
        );
        let _ = writeln!(text, "\n{}", paint(style::QUIET, summary));
    }
    text
}

fn block(patient: &Diagnosis, printer: &Printer) -> String {
    let mut text = headline(patient);
    for report in &patient.steps {
        let _ = writeln!(text, "    {}", step(report, &patient.findings));
    }
    for finding in &patient.findings {
        text.push_str(&finding_text(finding));
    }
    let is_curious = printer.verbosity > Verbosity::Normal;
    if patient.verdict > Health::Troubled || is_curious {
        text.push_str(&stderr_text(&patient.stderr, is_curious));
    }
    text
}

/// The last lines of the server's standard error, or all captured lines.
fn stderr_text(lines: &[String], all: bool) -> String {
    let shown = if all { lines.len() } else { STDERR_LINES };
    let hidden = lines.len().saturating_sub(shown);
    let mut text = String::new();
    if !lines.is_empty() {
        let _ = writeln!(text, "  {}", paint(style::QUIET, "its standard error:"));
    }
    for line in lines.iter().skip(hidden) {
        let _ = writeln!(text, "    {} {}", paint(style::QUIET, "│"), visible(line));
    }
    text
}

fn headline(patient: &Diagnosis) -> String {
    let (mark, phrase, color) = match patient.verdict {
        Health::Healthy => ("✓", "healthy", style::GOOD),
        Health::NotExamined => ("–", "was not examined", style::QUIET),
        Health::Troubled => ("!", "works with warnings", style::WARNING),
        Health::NeedsLogin => ("✗", "requires a login", style::WARNING),
        Health::TokenRejected => ("✗", "rejects its token", style::ERROR),
        Health::Unreachable => ("✗", "cannot be used", style::ERROR),
        Health::Misconfigured => ("✗", "is misconfigured", style::ERROR),
    };
    let name = visible(patient.server.as_str());
    let mut line = format!(
        "{} {}  {}",
        paint(color, mark),
        paint(style::NAME, name),
        paint(color, phrase)
    );
    if let Some(facts) = &patient.facts {
        let _ = write!(line, "  {}", paint(style::QUIET, summary(facts)));
    }
    line.push('\n');
    line
}

/// The server's name, version and protocol, on one line.
fn summary(facts: &Facts) -> String {
    let mut parts = Vec::new();
    if let Some(name) = &facts.name {
        let version = facts.version.as_deref().unwrap_or_default();
        parts.push(visible(format!("{name} {version}").trim()).into_owned());
    }
    parts.push(format!(
        "{} over {}",
        facts.revision.as_str(),
        facts.transport.name()
    ));
    parts.push(format!("{}, {} tokens", facts.count, facts.tokens.0));
    if let Some(prompts) = facts.prompts {
        parts.push(counted(prompts, "prompt"));
    }
    if let Some(resources) = facts.resources {
        parts.push(counted(resources, "resource"));
    }
    parts.join(", ")
}

fn step(report: &StepReport, findings: &[Finding]) -> String {
    let (mark, note, color) = match &report.outcome {
        StepOutcome::Done => ("✓", String::new(), style::GOOD),
        StepOutcome::NotSpoken => (
            "–",
            "not supported; tried another way".to_owned(),
            style::QUIET,
        ),
        // Omit a reason that a finding already states.
        StepOutcome::Failed(why) if findings.iter().any(|finding| states(finding, why)) => {
            ("✗", "failed".to_owned(), style::ERROR)
        }
        StepOutcome::Failed(why) => ("✗", visible(why).into_owned(), style::ERROR),
    };
    let line = format!(
        "{} {:<18} {:>9}  {}",
        paint(color, mark),
        report.step.name(),
        time(report.duration),
        note
    );
    line.trim_end().to_owned()
}

/// Whether a finding has this reason, whole or cut.
fn states(finding: &Finding, why: &str) -> bool {
    let cut = finding.why.strip_suffix(CUT_MARK);
    finding.why == why || cut.is_some_and(|start| why.starts_with(start))
}

fn finding_text(finding: &Finding) -> String {
    let color: Style = match finding.severity {
        Severity::Error => style::ERROR,
        Severity::Warning => style::WARNING,
        Severity::Note => style::QUIET,
    };
    let mut text = format!(
        "  {} {}\n",
        paint(color, format!("{}:", finding.severity.word())),
        visible(&finding.what)
    );
    let _ = writeln!(text, "    because {}", visible(&finding.why));
    if !finding.remedy.is_empty() {
        let _ = writeln!(
            text,
            "    {} {}",
            paint(style::HINT, "remedy:"),
            visible(&finding.remedy)
        );
    }
    text
}

fn time(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1_000.0;
    if milliseconds < 10.0 {
        format!("{milliseconds:.1} ms")
    } else if milliseconds < 1_000.0 {
        format!("{milliseconds:.0} ms")
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

fn to_json(patient: &Diagnosis, repairs: &[Repaired]) -> Value {
    let run = repairs
        .iter()
        .filter(|repaired| repaired.server == patient.server)
        .map(|repaired| {
            json!({
                "remove": repaired.folder,
                "done": repaired.error.is_none(),
                "error": repaired.error,
            })
        });
    let mut repairs: Vec<Value> = run.collect();
    if repairs.is_empty() {
        let offered = patient.repairs.iter();
        let offered = offered.map(|repair| repair.folder().display().to_string());
        repairs
            .extend(offered.map(|folder| json!({"remove": folder, "done": false, "error": null})));
    }
    let steps = patient.steps.iter().map(|report| {
        let (outcome, error) = match &report.outcome {
            StepOutcome::Done => ("done", None),
            StepOutcome::NotSpoken => ("not-spoken", None),
            StepOutcome::Failed(why) => ("failed", Some(why)),
        };
        json!({
            "step": report.step.name(),
            "outcome": outcome,
            "milliseconds": (report.duration.as_secs_f64() * 10_000.0).round() / 10.0,
            "error": error,
        })
    });
    let findings = patient.findings.iter().map(|finding| {
        json!({
            "code": finding.code,
            "severity": finding.severity.word(),
            "what": finding.what,
            "why": finding.why,
            "remedy": finding.remedy,
        })
    });
    json!({
        "server": patient.server.as_str(),
        "transport": patient.transport.map(Transport::name),
        "verdict": patient.verdict.word(),
        "steps": steps.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
        "repairs": repairs,
        "facts": patient.facts.as_ref().map(facts_json),
        "stderr": patient.stderr,
    })
}

fn facts_json(facts: &Facts) -> Value {
    let lints = facts
        .lints
        .iter()
        .map(|lint| json!({"tool": lint.tool, "finding": lint.finding.to_string()}));
    let aside = facts
        .set_aside
        .iter()
        .map(|aside| json!({"tool": aside.name, "reason": aside.reason.to_string()}));
    json!({
        "name": facts.name,
        "version": facts.version,
        "revision": facts.revision.as_str(),
        "transport": facts.transport.name(),
        "capabilities": facts.capabilities,
        "tools": facts.tools,
        "prompts": facts.prompts,
        "resources": facts.resources,
        "tokens": facts.tokens.0,
        "setAside": aside.collect::<Vec<_>>(),
        "schemaLints": lints.collect::<Vec<_>>(),
    })
}

/// Awaits the examination, with a live status line.
async fn shown<T>(printer: &Printer, count: usize, work: impl Future<Output = T>) -> T {
    live::with_line(printer, work, |elapsed, turn| {
        let servers = counted(count, "server");
        let text = format!("examining {servers}  {} s", elapsed.as_secs());
        vec![
            (style::HINT, format!("{} ", spinner(turn))),
            (Style::new(), text),
        ]
    })
    .await
}

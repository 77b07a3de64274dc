//! Examines a server: connects, lists its tools, probes it and closes the connection.

use std::sync::Arc;
use std::time::Duration;
use switchboard_config::sort;

use switchboard_config::entry::Transport;
use switchboard_config::redact::Redactor;
use switchboard_protocol::Era;
use switchboard_protocol::types::capabilities::ServerCapabilities;
use switchboard_protocol::types::prompt::ListPromptsResult;
use switchboard_protocol::types::resource::ListResourcesResult;
use switchboard_protocol::types::wire;
use tokio::time::timeout;

use super::causes::{self, Failed, Symptoms};
use super::habits::{self, Habits};
use super::heard::Heard;
use super::npx::Installed;
use super::steps::{Outcome, Step, Steps};
use super::variables::Variables;
use super::{Diagnosis, DoctorOptions, Facts, Finding, Health, Repair, Severity, ToolLint};
use crate::catalog::{CatalogTool, Provenance, Reach, ServerCatalog, ServerTools, SetAside};
use crate::host::server_tools;
use crate::peer::{
    self, ListKind, OpenError, OpenErrorKind, OpenOptions, OpenStep, PageLimits, Pages, Peer,
    RequestError,
};
use crate::spec::ServerSpec;
use crate::transport::{Destination, TransportErrorKind};

/// Lines of stderr that are searched and shown.
const STDERR_KEPT: usize = 40;
/// The timeout of lists other than tools.
const EXTRA_LIST: Duration = Duration::from_secs(10);
/// The maximum number of schema findings listed individually.
const MAX_LINTS: usize = 200;

pub(super) async fn examine(spec: &ServerSpec, options: &DoctorOptions) -> Diagnosis {
    let examination = Examination {
        spec,
        options,
        heard: Arc::default(),
        steps: Steps::new(spec.connector.transport()),
        destination: spec.connector.destination(),
    };
    let diagnosis = match timeout(spec.startup_timeout, examination.reach()).await {
        Ok(Ok(reached)) => examination.look_around(reached).await,
        Ok(Err(failed)) => examination.failed(&failed),
        Err(_) => examination.failed(&Failed::Deadline(spec.startup_timeout)),
    };
    redacted(diagnosis, &spec.redactor)
}

/// Masks the server's secrets in the diagnosis, since its output may contain them.
fn redacted(mut diagnosis: Diagnosis, redactor: &Redactor) -> Diagnosis {
    let redact = |text: &mut String| *text = redactor.redact(text).into_owned();
    for finding in &mut diagnosis.findings {
        redact(&mut finding.what);
        redact(&mut finding.why);
        redact(&mut finding.remedy);
    }
    diagnosis.stderr.iter_mut().for_each(redact);
    for step in &mut diagnosis.steps {
        step.redact(redactor);
    }
    diagnosis
}

struct Examination<'a> {
    spec: &'a ServerSpec,
    options: &'a DoctorOptions,
    heard: Arc<Heard>,
    steps: Steps,
    destination: Destination,
}

/// A server whose tools have been listed.
struct Reached {
    peer: Peer,
    tools: ServerTools,
    pages: Pages,
}

impl Examination<'_> {
    async fn reach(&self) -> Result<Reached, Failed> {
        let options = OpenOptions {
            // A cached revision could be the problem.
            known: None,
            limits: self.options.settings.limits,
            ..self.options.settings.open.clone()
        };
        let at = |step: OpenStep| {
            if step == OpenStep::Connect {
                self.heard.forget();
            }
            self.steps.opening(step);
        };
        let heard: Arc<dyn peer::Observer> = Arc::<Heard>::clone(&self.heard);
        let opened = peer::open(
            &self.spec.name,
            &*self.spec.connector,
            &options,
            heard,
            Arc::clone(&self.options.handler),
            &at,
        );
        let peer = opened
            .await
            .map_err(|OpenError { kind, .. }| Failed::Open(kind))?;
        self.steps.begin(Step::Tools);
        let deadline = self.options.settings.list_timeout;
        match peer
            .list(ListKind::Tools, PageLimits::default(), deadline)
            .await
        {
            Ok(pages) => Ok(Reached {
                tools: self.read(&peer, &pages),
                pages,
                peer,
            }),
            Err(error) => {
                peer.close().await;
                Err(Failed::Open(OpenErrorKind::Request(error)))
            }
        }
    }

    fn read(&self, peer: &Peer, pages: &Pages) -> ServerTools {
        let catalog = ServerCatalog {
            tools: pages.pages.clone(),
            ..ServerCatalog::default()
        };
        let facts = peer.facts();
        let reach = match (facts.transport, facts.revision.era()) {
            (Transport::Http, Era::Stateless) => Reach::StatelessHttp,
            _ => Reach::Other,
        };
        let ServerSpec { name, rules, .. } = self.spec;
        server_tools(name, rules, &catalog, reach, Provenance::Live)
    }

    /// Examines the server further after listing its tools.
    async fn look_around(&self, reached: Reached) -> Diagnosis {
        let Reached { peer, tools, pages } = reached;
        self.steps.end(Outcome::Done);
        let mut findings = Vec::new();
        let said = peer.facts().capabilities.as_ref();
        let mut prompts = None;
        if said.is_some_and(ServerCapabilities::offers_prompts) {
            let listed = self.list(&peer, Step::Prompts, &mut findings).await;
            prompts = listed.map(|pages| {
                count(&pages, |raw| {
                    let page: Option<ListPromptsResult<'_>> = wire::decode(raw).ok();
                    page.map_or(0, |page| page.prompts.items.len())
                })
            });
        }
        let mut resources = None;
        if said.is_some_and(ServerCapabilities::offers_resources) {
            let listed = self.list(&peer, Step::Resources, &mut findings).await;
            resources = listed.map(|pages| {
                count(&pages, |raw| {
                    let page: Option<ListResourcesResult<'_>> = wire::decode(raw).ok();
                    page.map_or(0, |page| page.resources.items.len())
                })
            });
        }
        self.probe(&peer, &mut findings).await;
        let ended = self.close(&peer).await;
        let noise = self.heard.noise();
        let habits = Habits {
            spec: self.spec,
            destination: &self.destination,
            steps: &self.steps.taken(),
            facts: peer.facts(),
            tools: &tools,
            cut: pages.cut.as_deref(),
            noise: &noise,
            patience: self.options.settings.open.discover_patience,
            ended,
        };
        findings.extend(habits::findings(&habits));
        let variables = Variables::of(&*self.spec.connector);
        findings.extend(variables.related(self.spec.name.as_str(), &self.about(None)));
        let facts = facts(&peer, &tools, prompts, resources);
        let troubled = |finding: &Finding| finding.severity != Severity::Note;
        let verdict = if findings.iter().any(troubled) {
            Health::Troubled
        } else {
            Health::Healthy
        };
        self.diagnosis(verdict, findings, Vec::new(), Some(facts))
    }

    async fn list(&self, peer: &Peer, step: Step, findings: &mut Vec<Finding>) -> Option<Pages> {
        let kind = match step {
            Step::Prompts => ListKind::Prompts,
            _ => ListKind::Resources,
        };
        self.steps.begin(step);
        let listed = peer.list(kind, PageLimits::default(), EXTRA_LIST).await;
        match listed {
            Ok(pages) => {
                self.steps.end(Outcome::Done);
                Some(pages)
            }
            Err(error) => {
                findings.push(causes::extra_list(step, &error));
                self.note_failure(&error);
                None
            }
        }
    }

    async fn probe(&self, peer: &Peer, findings: &mut Vec<Finding>) {
        self.steps.begin(Step::Probe);
        let deadline = self.options.settings.health_timeout;
        match peer.probe(deadline).await {
            Ok(()) => {
                self.steps.end(Outcome::Done);
            }
            Err(error) => {
                findings.push(causes::probe(&error));
                self.note_failure(&error);
            }
        }
    }

    async fn close(&self, peer: &Peer) -> Duration {
        self.steps.begin(Step::Close);
        peer.close().await;
        self.steps.end(Outcome::Done)
    }

    fn note_failure(&self, error: &RequestError) {
        self.steps.end(Outcome::Failed(error.to_string()));
    }

    fn failed(&self, failed: &Failed) -> Diagnosis {
        if failed.is_connecting() {
            self.steps.never_connected();
        }
        let step = self.steps.current().unwrap_or(Step::Connect);
        self.steps.end(Outcome::Failed(failed.to_string()));
        let stderr = self.heard.stderr(STDERR_KEPT);
        let noise = self.heard.noise();
        let installed = self.spec.connector.installed_package().map(Installed::look);
        let variables = Variables::of(&*self.spec.connector);
        let symptoms = Symptoms {
            server: self.spec.name.as_str(),
            step,
            failed,
            transport: self.spec.connector.transport(),
            destination: &self.destination,
            stderr: &stderr,
            noise: &noise,
            home: self.options.home.as_deref(),
            is_confined: self.spec.sandbox.policy.is_some(),
            installed: installed.as_ref(),
            variables: &variables,
        };
        let verdict = match failed {
            _ if symptoms.status() == Some(401) => {
                if self.destination.rejects_token_on_401() {
                    Health::TokenRejected
                } else {
                    Health::NeedsLogin
                }
            }
            Failed::Open(OpenErrorKind::Transport(error))
                if error.kind == TransportErrorKind::Invalid =>
            {
                Health::Misconfigured
            }
            _ => Health::Unreachable,
        };
        let mut findings = causes::explain(&symptoms);
        let is_broken = |finding: &Finding| finding.code == causes::NPX_CACHE_BROKEN;
        let repairs = match &installed {
            Some(installed) if findings.iter().any(is_broken) => {
                installed.repair().into_iter().collect()
            }
            _ => Vec::new(),
        };
        let is_local = self.spec.connector.transport() == Transport::Stdio;
        // A program that never ran cannot miss a variable.
        let ran = is_local && symptoms.has_run();
        if ran
            && !findings
                .iter()
                .any(|finding| finding.code == "variable-missing")
        {
            let about = self.about(installed.as_ref());
            findings.extend(variables.missed(self.spec.name.as_str(), &about));
        }
        self.diagnosis(verdict, findings, repairs, None)
    }

    /// All names of the server: entry, program and package.
    fn about(&self, installed: Option<&Installed>) -> String {
        let program = match &self.destination {
            Destination::Program(program) => program.rsplit('/').next().unwrap_or_default(),
            _ => "",
        };
        let package = installed.map(|installed| installed.package.package.as_str());
        format!(
            "{} {program} {}",
            self.spec.name,
            package.unwrap_or_default()
        )
    }

    fn diagnosis(
        &self,
        verdict: Health,
        mut findings: Vec<Finding>,
        repairs: Vec<Repair>,
        facts: Option<Facts>,
    ) -> Diagnosis {
        sort::by_key(&mut findings, |finding| finding.severity);
        Diagnosis {
            server: self.spec.name.clone(),
            transport: Some(self.spec.connector.transport()),
            verdict,
            steps: self.steps.taken(),
            findings,
            repairs,
            facts,
            stderr: self.heard.stderr(STDERR_KEPT),
        }
    }
}

fn facts(
    peer: &Peer,
    tools: &ServerTools,
    prompts: Option<usize>,
    resources: Option<usize>,
) -> Facts {
    let said = peer.facts();
    let implementation = said.implementation.as_ref();
    let lints = tools.tools().iter().flat_map(|tool| {
        tool.schema_findings().iter().map(|finding| ToolLint {
            tool: tool.reference().tool.as_str().to_owned(),
            finding: finding.clone(),
        })
    });
    Facts {
        transport: said.transport,
        revision: said.revision,
        name: implementation.map(|info| info.name.clone().into_owned()),
        version: implementation.and_then(|info| Some(info.version.clone()?.into_owned())),
        capabilities: said
            .capabilities
            .as_ref()
            .map_or_else(Vec::new, capabilities),
        tools: tools.tools().len(),
        count: tools.count(),
        prompts,
        resources,
        tokens: tools.tools().iter().map(CatalogTool::tokens).sum(),
        set_aside: tools.aside().iter().map(SetAside::clone).collect(),
        lints: lints.take(MAX_LINTS).collect(),
    }
}

fn capabilities(said: &ServerCapabilities<'_>) -> Vec<&'static str> {
    let named = [
        ("tools", said.offers_tools()),
        ("prompts", said.offers_prompts()),
        ("resources", said.offers_resources()),
        ("completions", said.completions.is_some()),
        ("logging", said.logging.is_some()),
        ("tasks", said.tasks.is_some()),
        ("extensions", said.extensions.iter().next().is_some()),
    ];
    let offered = named.into_iter().filter(|(_, offered)| *offered);
    offered.map(|(name, _)| name).collect()
}

fn count(pages: &Pages, items: impl Fn(&serde_json::value::RawValue) -> usize) -> usize {
    pages.pages.iter().map(|page| items(page.raw())).sum()
}

//! Tests of the gateway: clients and servers of both eras, in all combinations.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod accidents;
mod bridge;
mod client;
mod health;
mod isolation;
mod load;
mod offers;
mod passing;
mod profiles;
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use switchboard::internal::audit::Audit;
use switchboard::internal::load::LoadLimits;
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::permissions::{Engine, PermissionGate, Policy};
use switchboard::{Host, HostOptions, HostSettings};
use switchboard_protocol::Revision;
use switchboard_server::gateway::{Gateway, GatewayOptions, GatewayQuestions};

use upstream::Upstream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Stateful,
    Stateless,
}

/// Clients and servers of both eras.
pub(crate) const CELLS: [(Era, Era); 4] = [
    (Era::Stateful, Era::Stateful),
    (Era::Stateful, Era::Stateless),
    (Era::Stateless, Era::Stateful),
    (Era::Stateless, Era::Stateless),
];

pub(crate) struct World {
    pub(crate) gateway: Gateway,
    pub(crate) host: Host,
    pub(crate) upstream: Arc<Upstream>,
}

impl World {
    pub(crate) fn new(servers: Era) -> Self {
        Self::with(servers, &["desk"], GatewayOptions::default())
    }

    /// Servers with these names, which share their state.
    pub(crate) fn with(servers: Era, names: &[&str], options: GatewayOptions) -> Self {
        Self::under(Policy::gateway(), servers, names, options)
    }

    /// With an audit log.
    pub(crate) fn recording(names: &[&str], audit: Audit) -> Self {
        let (upstream, specs) = Self::specs(names);
        let gated = |gate: PermissionGate| gate.recording(audit);
        let options = GatewayOptions::default();
        Self::build(
            upstream,
            specs,
            Policy::gateway(),
            Era::Stateful,
            options,
            gated,
        )
    }

    /// One server with these limits.
    pub(crate) fn limited(limits: LoadLimits) -> Self {
        let (upstream, specs) = Self::specs(&["desk"]);
        let limited = specs.into_iter().map(|spec| spec.with_limits(limits));
        let options = GatewayOptions::default();
        let policy = Policy::gateway();
        Self::of(upstream, limited.collect(), policy, Era::Stateful, options)
    }

    /// With another policy.
    pub(crate) fn under(
        policy: Policy,
        servers: Era,
        names: &[&str],
        options: GatewayOptions,
    ) -> Self {
        let (upstream, specs) = Self::specs(names);
        Self::of(upstream, specs, policy, servers, options)
    }

    fn specs(names: &[&str]) -> (Arc<Upstream>, Vec<ServerSpec>) {
        let upstream = Arc::new(Upstream::default());
        let specs: Vec<ServerSpec> = names
            .iter()
            .map(|name| {
                let connector = Arc::new(InProcessConnector::new(upstream.clone()));
                ServerSpec::new(*name, connector, ConnectionKey::of(&[name.as_bytes()]))
            })
            .collect();
        (upstream, specs)
    }

    /// Any servers of an era.
    pub(crate) fn of(
        upstream: Arc<Upstream>,
        specs: Vec<ServerSpec>,
        policy: Policy,
        servers: Era,
        options: GatewayOptions,
    ) -> Self {
        Self::build(upstream, specs, policy, servers, options, |gate| gate)
    }

    fn build(
        upstream: Arc<Upstream>,
        specs: Vec<ServerSpec>,
        policy: Policy,
        servers: Era,
        options: GatewayOptions,
        gated: impl FnOnce(PermissionGate) -> PermissionGate,
    ) -> Self {
        let questions = GatewayQuestions::default();
        let engine = Engine::without_rules(policy);
        let gate = gated(PermissionGate::new(engine).asking(Arc::new(questions.clone())));
        let mut settings = HostSettings::default();
        let era = match servers {
            Era::Stateful => switchboard_protocol::Era::Stateful,
            Era::Stateless => switchboard_protocol::Era::Stateless,
        };
        settings.open.supported = Revision::ALL
            .into_iter()
            .filter(|revision| revision.era() == era)
            .collect();
        let host = Host::with_options(HostOptions {
            settings,
            gate: Arc::new(gate),
            handler: Arc::new(questions.clone()),
            desired: specs.into(),
            ..HostOptions::default()
        });
        Self {
            gateway: Gateway::new(host.clone(), questions, options),
            host,
            upstream,
        }
    }
}

/// Fails the test if the future takes too long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    let Ok(output) = tokio::time::timeout(Duration::from_secs(30), future).await else {
        panic!("nothing happens");
    };
    output
}

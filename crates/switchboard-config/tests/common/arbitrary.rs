//! Proptest strategies for server entries.

use std::time::Duration;

use proptest::prelude::*;
use switchboard_config::entry::{
    LimitsEntry, OAuthEntry, Permission, ServerEntry, Sharing, ToolEntry, Transport,
};
use switchboard_config::secret::Secret;

/// A text in our own syntax, in the spelling that an import writes.
fn any_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => "[a-zA-Z0-9 ./:@=_\\-]{1,8}",
        2 => "[A-Z]{1,3}".prop_map(|name| format!("${{{name}}}")),
        1 => ("[A-Z]{1,3}", "[a-z ]{0,4}").prop_map(|(name, default)| format!("${{{name}:-{default}}}")),
        1 => prop::sample::select(vec![
            "${home}", "${workspaceFolder}", "$${", "$", "$$${", "${env:home}", "$X", " {env:X}", " {", "}", "\\", "\\$",
            "`", "\"", "'", "ü", "#", "%", "${X:-${Y}}", "$${{ secrets.X }}", "~", "*", "|",
        ])
        .prop_map(String::from),
    ];
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.concat())
}

fn sometimes<T: std::fmt::Debug>(
    strategy: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::weighted(0.15, strategy)
}

fn few<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    sometimes(prop::collection::vec(strategy, 1..3)).prop_map(Option::unwrap_or_default)
}

fn any_map(name: &'static str) -> impl Strategy<Value = Vec<(String, Secret)>> {
    prop::option::weighted(0.4, prop::collection::btree_map(name, any_text(), 1..3)).prop_map(
        |map| {
            map.unwrap_or_default()
                .into_iter()
                .map(|(name, text)| (name, Secret::new(text)))
                .collect()
        },
    )
}

fn any_deadline() -> impl Strategy<Value = Option<Duration>> {
    let whole = (1_u64..100_000).prop_map(Duration::from_secs);
    sometimes(prop_oneof![3 => whole, 1 => (1_u64..100_000).prop_map(Duration::from_millis)])
}

fn any_oauth() -> impl Strategy<Value = OAuthEntry> {
    let texts = (
        any_text(),
        sometimes(any_text()),
        sometimes(any_text()),
        sometimes(any_text()),
    );
    let others = (
        few("[a-z:]{1,6}"),
        sometimes(1_u16..),
        sometimes(any_text()),
        sometimes(any_text()),
    );
    (texts, others).prop_map(
        |(
            (client_id, secret, issuer, metadata_url),
            (scopes, callback_port, resource, redirect_uri),
        )| {
            OAuthEntry {
                client_id: Some(client_id),
                client_secret: secret.map(Secret::new),
                scopes,
                issuer,
                metadata_url,
                callback_port,
                resource,
                redirect_uri,
                ..OAuthEntry::default()
            }
        },
    )
}

fn any_endpoint() -> impl Strategy<Value = ServerEntry> {
    let local = (
        any_text(),
        few(any_text()),
        any_map("[A-Z]{1,3}"),
        few("[A-Z]{1,3}"),
        sometimes(any_text()),
    );
    let local = local.prop_map(|(command, args, env, env_vars, cwd)| ServerEntry {
        command: Some(format!("x{command}")),
        args,
        env,
        env_vars,
        cwd,
        ..ServerEntry::default()
    });
    let remote = (
        any_text(),
        any_map("[A-Z][a-z-]{0,4}"),
        few(any_text()),
        sometimes("[A-Z]{1,3}"),
        sometimes(any_oauth()),
        sometimes("/[a-z]{1,3}\\.pem"),
    );
    let remote = (remote, prop::bool::weighted(0.3)).prop_map(
        |((url, headers, headers_helper, bearer, oauth, ca_file), is_sse)| ServerEntry {
            transport: is_sse.then_some(Transport::Sse),
            url: Some(format!("https://a.example/{url}")),
            headers,
            headers_helper,
            bearer_token_env_var: bearer,
            oauth,
            ca_file,
            ..ServerEntry::default()
        },
    );
    prop_oneof![local, remote]
}

pub(crate) fn any_entry() -> impl Strategy<Value = ServerEntry> {
    let switches = (
        sometimes(Just(false)),
        sometimes(Just(true)),
        sometimes(any::<bool>()),
    );
    let tools = (few("[a-z_]{1,6}"), few("[a-z_]{1,6}"), few("[a-z]{1,4}"));
    (
        any_endpoint(),
        switches,
        any_deadline(),
        any_deadline(),
        tools,
    )
        .prop_map(
            |(
                endpoint,
                (enabled, required, shared),
                startup_timeout,
                tool_timeout,
                (enabled_tools, disabled_tools, asked),
            )| {
                let ask = ToolEntry {
                    permission: Some(Permission::Ask),
                    ..ToolEntry::default()
                };
                let mut asked: Vec<_> = asked.into_iter().map(|tool| (tool, ask.clone())).collect();
                asked.dedup_by(|one, other| one.0 == other.0);
                ServerEntry {
                    enabled,
                    required,
                    shared: shared.map(|is_shared| {
                        if is_shared {
                            Sharing::Always
                        } else {
                            Sharing::Never
                        }
                    }),
                    startup_timeout,
                    tool_timeout,
                    enabled_tools,
                    disabled_tools,
                    tools: asked,
                    limits: startup_timeout.map(|pause| LimitsEntry {
                        concurrent_calls: Some(pause.as_secs() + 1),
                        pause: Some(pause),
                        ..LimitsEntry::default()
                    }),
                    ..endpoint
                }
            },
        )
}

//! Subscriptions of a client, in both eras.
//!
//! In the stateful era a client is notified of every list change and subscribes to single resources; in the stateless
//! one each `subscriptions/listen` has its own filter. This module tracks subscriptions; it does not send.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use switchboard_protocol::types::RawObject;
use switchboard_protocol::types::meta::NotificationMeta;
use switchboard_protocol::types::subscription::SubscriptionFilter;
use switchboard_protocol::{RequestId, encode, trusted, types};

use super::Sink;
use super::changes::Change;

/// Maximum number of resources per client, over all its subscriptions.
pub(super) const MAX_URIS: usize = 10_000;

/// Subscriptions of one client.
#[derive(Default)]
pub(super) struct Subscriptions {
    /// Single resources (stateful era).
    resources: HashSet<Box<str>>,
    /// Open `subscriptions/listen` requests.
    listeners: HashMap<RequestId<'static>, Listening>,
}

/// One `subscriptions/listen`.
struct Listening {
    sink: Arc<dyn Sink>,
    wanted: Wanted,
    /// Changes that arrived before the acknowledgement was sent, which must come first.
    held: Option<Vec<Change>>,
}

/// Filter of one `subscriptions/listen`.
struct Wanted {
    tools: bool,
    prompts: bool,
    resources: bool,
    uris: HashSet<Box<str>>,
}

/// A notification and its destination.
pub(super) type Addressed = (Arc<dyn Sink>, Bytes);

impl Subscriptions {
    /// Subscribes to a resource; `false` if there are too many.
    pub(super) fn subscribe(&mut self, uri: &str) -> bool {
        if self.uris() >= MAX_URIS && !self.resources.contains(uri) {
            return false;
        }
        self.resources.insert(uri.into());
        true
    }

    pub(super) fn unsubscribe(&mut self, uri: &str) {
        self.resources.remove(uri);
    }

    /// Adds a listener and returns the accepted part of its filter. Nothing is sent to it before
    /// [`acknowledged`](Self::acknowledged).
    pub(super) fn listen(
        &mut self,
        id: RequestId<'static>,
        filter: &SubscriptionFilter<'_>,
        sink: Arc<dyn Sink>,
    ) -> SubscriptionFilter<'static> {
        let room = MAX_URIS.saturating_sub(self.uris());
        let uris: Vec<&str> = filter
            .resource_subscriptions
            .iter()
            .take(room)
            .map(|uri| &**uri)
            .collect();
        let mut honoured = SubscriptionFilter::new();
        honoured.tools_list_changed = filter.tools_list_changed.filter(|wanted| *wanted);
        honoured.prompts_list_changed = filter.prompts_list_changed.filter(|wanted| *wanted);
        honoured.resources_list_changed = filter.resources_list_changed.filter(|wanted| *wanted);
        if !uris.is_empty() {
            honoured.resource_subscriptions =
                uris.iter().map(|uri| String::from(*uri).into()).collect();
        }
        let wanted = Wanted {
            tools: honoured.tools_list_changed.is_some(),
            prompts: honoured.prompts_list_changed.is_some(),
            resources: honoured.resources_list_changed.is_some(),
            uris: uris.into_iter().map(Box::from).collect(),
        };
        let listening = Listening {
            sink,
            wanted,
            held: Some(Vec::new()),
        };
        self.listeners.insert(id, listening);
        honoured
    }

    /// Returns the changes held back until the acknowledgement was sent.
    pub(super) fn acknowledged(&mut self, id: &RequestId<'static>) -> Vec<Addressed> {
        let Some(listening) = self.listeners.get_mut(id) else {
            return Vec::new();
        };
        let held = listening.held.take().unwrap_or_default();
        held.iter()
            .filter_map(|change| listening.tell(id, change))
            .collect()
    }

    pub(super) fn end(&mut self, id: &RequestId<'static>) {
        self.listeners.remove(id);
    }

    /// The notifications for a change. `stateful` is the sink of a stateful-era client.
    pub(super) fn told(
        &mut self,
        change: &Change,
        stateful: Option<&Arc<dyn Sink>>,
    ) -> Vec<Addressed> {
        let mut notifications: Vec<Addressed> = stateful
            .filter(|_| match change {
                Change::Resource(uri) => self.resources.contains(&**uri),
                Change::Tools
                | Change::Prompts
                | Change::Resources
                | Change::Other { .. }
                | Change::Log { .. } => true,
            })
            .and_then(|sink| Some((Arc::clone(sink), notification(change, None)?)))
            .into_iter()
            .collect();
        for (id, listening) in &mut self.listeners {
            if !listening.wanted.wants(change) {
                continue;
            }
            if let Some(held) = &mut listening.held {
                if !held.contains(change) {
                    held.push(change.clone());
                }
            } else {
                notifications.extend(listening.tell(id, change));
            }
        }
        notifications
    }

    fn uris(&self) -> usize {
        let listening: usize = self
            .listeners
            .values()
            .map(|listening| listening.wanted.uris.len())
            .sum();
        self.resources.len() + listening
    }
}

impl Listening {
    fn tell(&self, id: &RequestId<'_>, change: &Change) -> Option<Addressed> {
        Some((Arc::clone(&self.sink), notification(change, Some(id))?))
    }
}

impl Wanted {
    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.contains(&**uri),
            // In the stateless era, everything else belongs to a request.
            Change::Other { .. } | Change::Log { .. } => false,
        }
    }
}

/// The `_meta` that associates a notification with its subscription.
pub(super) fn subscription_meta(id: &RequestId<'_>) -> RawObject<'static> {
    let mut meta = NotificationMeta::new();
    meta.subscription_id = Some(id.clone().into_owned());
    types::Raw::from_serialize(&meta)
        .ok()
        .and_then(|raw| raw.try_into().ok())
        .unwrap_or_default()
}

fn notification(change: &Change, subscription: Option<&RequestId<'_>>) -> Option<Bytes> {
    let mut params = types::resource::ResourceUpdatedNotificationParams::new("".into());
    params.meta = subscription.map(subscription_meta);
    let text = match change {
        Change::Resource(uri) => {
            params.uri = String::from(&**uri).into();
            Some(types::encode(&params))
        }
        Change::Log { params, .. } => Some(params.to_string()),
        Change::Other { params, .. } => params.as_deref().map(str::to_owned),
        Change::Tools | Change::Prompts | Change::Resources => {
            let mut list = types::notification::NotificationParams::new();
            list.meta = params.meta;
            list.meta.is_some().then(|| types::encode(&list))
        }
    };
    let mut frame = Vec::new();
    let params = text.as_deref().and_then(trusted);
    encode::notification(&mut frame, change.method(), params).ok()?;
    Some(frame.into())
}

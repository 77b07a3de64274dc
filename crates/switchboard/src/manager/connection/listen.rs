//! Subscribes to a server's change notifications, in the form of its era.

use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, pending};
use switchboard_protocol::types::subscription::{
    SubscriptionFilter, SubscriptionsListenRequestParams,
};
use switchboard_protocol::types::wire::List;
use switchboard_protocol::{Era, Method};
use tokio::time::sleep;

use super::Connection;
use crate::peer::{Peer, RequestError, RequestOptions};

/// Lifetime of one subscription: effectively unlimited.
const LISTEN: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Connection {
    /// Subscribes to changes for as long as the future lives.
    pub(super) fn listen(
        &self,
        peer: &Peer,
        resources: &[String],
    ) -> BoxFuture<'static, Result<(), RequestError>> {
        let peer = peer.clone();
        match peer.revision().era() {
            Era::Stateful => {
                let resources = resources.to_vec();
                let deadline = self.settings.list_timeout;
                async move {
                    subscribe_to_each(&peer, &resources, deadline).await;
                    pending().await
                }
                .boxed()
            }
            Era::Stateless => {
                let Some(filter) = filter(&peer, resources) else {
                    return pending().boxed();
                };
                async move {
                    let params = SubscriptionsListenRequestParams::new(filter);
                    let options = RequestOptions::within(LISTEN);
                    peer.ask(Method::SubscriptionsListen, &params, &options)
                        .await
                        .map(|_| ())
                }
                .boxed()
            }
        }
    }

    pub(super) fn listen_later(
        &self,
        peer: &Peer,
        resources: &[String],
        attempt: u32,
    ) -> BoxFuture<'static, Result<(), RequestError>> {
        let listening = self.listen(peer, resources);
        let wait = self.settings.backoff.before_attempt(attempt);
        async move {
            sleep(wait).await;
            listening.await
        }
        .boxed()
    }
}

/// The filter to subscribe with in the stateless era; `None` if the server announces no changes.
fn filter(peer: &Peer, resources: &[String]) -> Option<SubscriptionFilter<'static>> {
    let capabilities = peer.facts().capabilities.as_ref()?;
    let mut filter = SubscriptionFilter::default();
    let tells = |flag: Option<bool>| flag == Some(true);
    let tools = capabilities
        .tools
        .as_ref()
        .and_then(|list| list.list_changed);
    let prompts = capabilities
        .prompts
        .as_ref()
        .and_then(|list| list.list_changed);
    let listed = capabilities
        .resources
        .as_ref()
        .and_then(|list| list.list_changed);
    filter.tools_list_changed = tells(tools).then_some(true);
    filter.prompts_list_changed = tells(prompts).then_some(true);
    filter.resources_list_changed = tells(listed).then_some(true);
    filter.resource_subscriptions = resources
        .iter()
        .map(|uri| uri.clone().into())
        .collect::<List<'_, _>>();
    let wants = tells(tools) || tells(prompts) || tells(listed) || !resources.is_empty();
    wants.then_some(filter)
}

/// Subscribes to resources one by one (stateful era). A refused one does not affect the others.
async fn subscribe_to_each(peer: &Peer, resources: &[String], deadline: Duration) {
    use switchboard_protocol::types::resource::ResourceRequestParams;
    for uri in resources {
        let params = ResourceRequestParams::new(uri.clone().into());
        let options = RequestOptions::within(deadline);
        if let Err(error) = peer
            .ask(Method::ResourcesSubscribe, &params, &options)
            .await
        {
            tracing::warn!(server = %peer.server(), uri, %error, "subscription refused");
        }
    }
}

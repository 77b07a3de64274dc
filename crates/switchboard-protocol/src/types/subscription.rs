//! `subscriptions/listen`, the stateless era's one stream of notifications.

use std::borrow::Cow;

use super::result::ResultType;
use super::wire::{List, RawObject};
use crate::macros::wire_struct;

wire_struct! {
    /// What `subscriptions/listen` asks.
    pub struct SubscriptionsListenRequestParams<'a> {
        required {
            /// What to be told of.
            notifications("notifications"): SubscriptionFilter<'a>,
        }
        optional {
            /// Protocol metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What notifications are wanted, or will come.
    pub struct SubscriptionFilter<'a> {
        optional {
            /// Changes of the tool list.
            tools_list_changed("toolsListChanged"): bool,
            /// Changes of the prompt list.
            prompts_list_changed("promptsListChanged"): bool,
            /// Changes of the resource list.
            resources_list_changed("resourcesListChanged"): bool,
        }
        collections {
            /// Changes of these resources.
            resource_subscriptions("resourceSubscriptions"): List<'a, Cow<'a, str>>,
            /// Changes of these tasks (tasks extension).
            task_ids("taskIds"): List<'a, Cow<'a, str>>,
        }
    }
}

wire_struct! {
    /// What `notifications/subscriptions/acknowledged` says, the first message of the stream.
    pub struct SubscriptionsAcknowledgedNotificationParams<'a> {
        required {
            /// What the server will tell of.
            notifications("notifications"): SubscriptionFilter<'a>,
        }
        optional {
            /// Protocol metadata, with the subscription's id.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// What `subscriptions/listen` answers when the server ends the stream.
    pub struct SubscriptionsListenResult<'a> {
        optional {
            /// Complete, where it is said.
            result_type("resultType"): ResultType<'a>,
            /// Protocol metadata, with the subscription's id. The revision requires it; the response's own id
            /// tells the same.
            meta("_meta"): RawObject<'a>,
        }
    }
}

//! `subscriptions/listen`, the notification stream of the stateless era.

use std::borrow::Cow;

use super::result::ResultType;
use super::wire::{List, RawObject};
use crate::macros::wire_struct;

wire_struct! {
    /// Parameters of `subscriptions/listen`.
    pub struct SubscriptionsListenRequestParams<'a> {
        required {
            /// The requested notifications.
            notifications("notifications"): SubscriptionFilter<'a>,
        }
        optional {
            /// Protocol and custom metadata.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// The notifications of a subscription.
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
    /// Parameters of `notifications/subscriptions/acknowledged`, the first message of the stream.
    pub struct SubscriptionsAcknowledgedNotificationParams<'a> {
        required {
            /// The notifications that the server will send.
            notifications("notifications"): SubscriptionFilter<'a>,
        }
        optional {
            /// Metadata, with the subscription's id.
            meta("_meta"): RawObject<'a>,
        }
    }
}

wire_struct! {
    /// Result of `subscriptions/listen`, sent when the server ends the stream.
    pub struct SubscriptionsListenResult<'a> {
        optional {
            /// `complete`, if stated (stateless era).
            result_type("resultType"): ResultType<'a>,
            /// Metadata, with the subscription's id. Required by the specification; the response's own id is the same.
            meta("_meta"): RawObject<'a>,
        }
    }
}

//! What the protocol's own errors carry as `data`. The error around it is [`ErrorObject`](crate::ErrorObject).

use std::borrow::Cow;

use super::capabilities::ClientCapabilities;
use super::elicitation::ElicitRequestUrlParams;
use super::wire::List;
use crate::macros::wire_struct;

wire_struct! {
    /// The data of −32022: the revision asked for is not one the server speaks.
    pub struct UnsupportedProtocolVersionData<'a> {
        required {
            /// The revisions the server speaks.
            supported("supported"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// The revision asked for. The revision requires it; whoever asked knows it.
            requested("requested"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// The data of −32021: the request needs something the client did not say it can do.
    pub struct MissingRequiredClientCapabilityData<'a> {
        required {
            /// What it needs.
            required_capabilities("requiredCapabilities"): ClientCapabilities<'a>,
        }
    }
}

wire_struct! {
    /// The data of −32042: pages the user must visit first (2025-11-25).
    pub struct UrlElicitationRequiredData<'a> {
        required {
            /// The pages.
            elicitations("elicitations"): List<'a, ElicitRequestUrlParams<'a>>,
        }
    }
}

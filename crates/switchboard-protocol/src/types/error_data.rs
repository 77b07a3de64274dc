//! The `data` of the protocol's own errors; the error itself is [`ErrorObject`](crate::ErrorObject).

use std::borrow::Cow;

use super::capabilities::ClientCapabilities;
use super::elicitation::ElicitRequestUrlParams;
use super::wire::List;
use crate::macros::wire_struct;

wire_struct! {
    /// The data of −32022: the requested revision is not supported.
    pub struct UnsupportedProtocolVersionData<'a> {
        required {
            /// The revisions the server supports.
            supported("supported"): List<'a, Cow<'a, str>>,
        }
        optional {
            /// The requested revision. Required by the specification, but known to the client.
            requested("requested"): Cow<'a, str>,
        }
    }
}

wire_struct! {
    /// The data of −32021: the request needs an undeclared client capability.
    pub struct MissingRequiredClientCapabilityData<'a> {
        required {
            /// The missing capabilities of the client.
            required_capabilities("requiredCapabilities"): ClientCapabilities<'a>,
        }
    }
}

wire_struct! {
    /// The data of −32042: URLs that the user must open first (2025-11-25).
    pub struct UrlElicitationRequiredData<'a> {
        required {
            /// The URLs to open.
            elicitations("elicitations"): List<'a, ElicitRequestUrlParams<'a>>,
        }
    }
}

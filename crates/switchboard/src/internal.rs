//! Items for the other crates of this workspace, not for programs that embed the host.
//!
//! Used by `switchboard-agent`, `switchboard-cli`, `switchboard-server`, `switchboard-test` and this crate's own tests.
//! No stability is promised: any of it can change or disappear in any version. It contains only re-exports, in modules
//! named after those that define the items.

pub mod audit {
    pub use crate::audit::{Audit, AuditSettings, Filter, Found, LOG, What, read, record_blocking};
}
pub mod auth {
    pub use crate::auth::{
        AuthSettings, Authorizer, Callback, Credentials, FetchErrorKind, Fetcher, Grant, Login,
        LoginError, LoginErrorKind, LoginStart, Network, OAuth, ProtectedServer, Refusal, Renewals,
        SecretSource, Target, Verdict, is_logged_in, logout, signing_keys,
    };
    pub mod interactive {
        pub use crate::auth::interactive::{Attempt, BeginError, hint};
        pub mod browser {
            pub use crate::auth::interactive::browser::{Opening, is_at_hand, open};
        }
        pub mod callback {
            pub use crate::auth::interactive::callback::CallbackAddress;
        }
        pub mod logins {
            pub use crate::auth::interactive::logins::{BackgroundLogins, LoginTarget, Logins};
        }
        pub mod paste {
            pub use crate::auth::interactive::paste::PasteError;
        }
    }
    pub mod vault {
        pub use crate::auth::vault::{MemoryVault, Vault, VaultError, VaultKey, VaultLock};
        pub mod keyring {
            pub use switchboard_keyring::{Keyring, KeyringError};
        }
        pub mod sealed {
            pub use crate::auth::vault::sealed::SealedVault;
        }
    }
}
pub mod call {
    pub use crate::call::{CallContext, ToolSubset};
    pub mod arguments {
        pub use crate::call::arguments::{ArgumentCheck, Checked};
        pub mod coerce {
            pub use crate::call::arguments::coerce::{CoerceProblem, coerce};
        }
    }
    pub mod local {
        pub use crate::call::local::LocalTools;
    }
    pub mod result {
        pub use crate::call::result::text_of;
    }
    pub mod shape {
        pub use crate::call::shape::{Block, Media, ShapeOptions, Shaped, shape, without_content};
    }
    pub mod spill {
        pub use crate::call::spill::{SpillFolder, SpillLimits};
    }
}
/// Connections that several hosts share.
pub mod sharing {
    pub use crate::sharing::SharedConnections;
}

pub mod caller {
    pub use crate::caller::{AskedBy, Caller, OrderedMembers, TASKS_EXTENSION, asked_by};
}
pub mod catalog {
    pub use crate::catalog::persist::ServerCatalog;
    pub use crate::catalog::rules::ToolRules;
    pub use crate::catalog::server::{ListLimits, Reach, ServerTools};
    pub use crate::catalog::snapshot::{NOT_PINNED_HINT, PINS_UNREADABLE_HINT};
    pub mod exposed {
        pub use crate::catalog::exposed::{PREFIX, exposed_name};
    }
    pub mod impersonation {
        pub use crate::catalog::impersonation::KnownServers;
    }
    pub mod schema {
        pub use crate::catalog::schema::{Examined, examine, lint};
    }
    pub mod suspicion {
        pub use crate::catalog::suspicion::of_text;
    }
    pub mod text {
        pub use crate::catalog::text::{CUT_MARK, MAX_DESCRIPTION, cut, neutralise};
    }
}
pub mod configured {
    pub use crate::configured::{ConfiguredHost, bash_sandbox, lacks_bash_sandbox};
}
pub mod connectors {
    pub use crate::connectors::{ConnectorError, Connectors, project_files};
}
pub mod desired {
    pub use crate::desired::{Desired, ServerChange, ServerSource, WithheldServer};
}
pub mod doctor {
    pub use crate::doctor::{
        Diagnosis, DoctorOptions, Facts, Finding, Health, Outcome, Repair, Severity, Step,
        StepReport, diagnose, diagnose_all,
    };
}
pub mod files {
    pub use crate::files::{
        FileError, Grep, GrepOptions, IgnoreRules, Line, LineRange, LineText, Listing, ReadEnd,
        Walk, beginning, check_regular, filter, is_binary, open_regular, pattern, read_lines,
        read_whole,
    };
}
pub mod hooks {
    pub use crate::hooks::{
        CommandHook, Hook, HookAnswer, HookDecision, HookError, HookInput, Registration,
    };
}
pub mod load {
    pub use crate::load::{BreakerState, LoadLimits, LoadStatus, ServerLoad};
}
pub mod own_variables {
    pub use crate::own_variables::is_own_secret;
}
pub mod peer {
    pub use crate::peer::{Notice, Observer, PageLimits, Peer, open};
}
pub mod permissions {
    pub use crate::permissions::NameGlob;
    pub use crate::permissions::explain::{Explanation, Loss};
    pub use crate::permissions::gate::Wanted;
    pub use crate::permissions::grants::GrantSummary;
    pub use crate::permissions::restrictions::Restrictions;
    pub mod consent {
        pub use crate::permissions::consent::sanitized;
    }
}
pub mod person {
    pub use crate::person::working_time;
}
pub mod pins {
    pub mod review {
        pub use crate::pins::review::INSTRUCTIONS;
    }
}
pub mod places {
    pub use crate::places::{
        LOCK_FOLDER, LOGINS_FOLDER, MANAGED_FILE, Managed, Places, PlacesError, SPILL_FOLDER,
        STORE_FILE,
    };
}
pub mod profile {
    pub use crate::profile::Profile;
}
pub mod remembered {
    pub use crate::remembered::{
        LastKnown, Outline, Remembered, catalog, last_known, lists, logged_in, resources,
    };
}
pub mod roots {
    pub use crate::roots::Roots;
}
pub mod sandbox {
    pub use crate::sandbox::{Policy, SandboxState, is_available};
}
pub mod service {
    pub use crate::service::conversation::{Conversation, MAX_IN_FLIGHT};
    pub use crate::service::frame::{ClientFrame, ClientMessage, ClientRequest};
    pub use crate::service::sink::{Answered, Purpose, Sink};
}
pub mod spec {
    pub use crate::spec::{ConnectionKey, ServerIdentity, ServerSpec, Start};
}
pub mod supervisor {
    pub use crate::supervisor::{ARGUMENT, run};
}
pub mod transport {
    pub use crate::transport::patience::patiently;
    pub mod http {
        pub use crate::transport::http::{
            HeadersHelper, HttpClient, HttpSettings, LegacyConnector, ProxySettings, RemoteServer,
            StreamableConnector,
        };
        pub mod sse {
            pub use crate::transport::http::sse::{Decoded, Decoder};
        }
    }
    pub mod in_process {
        pub use crate::transport::in_process::InProcessConnector;
    }
    pub mod stdio {
        pub use crate::transport::stdio::{
            Grace, Program, ProgramEnd, StdioConnector, StdioLimits, SupervisorCommand,
        };
        pub mod frames {
            pub use crate::transport::stdio::frames::{Frame, Frames};
        }
    }
    pub mod websocket {
        pub use crate::transport::websocket::WebSocketConnector;
    }
}
pub mod watch {
    pub use crate::watch::{FileSource, FileWatcher, on_thread};
}
pub mod workspace {
    pub use crate::workspace::{NAME, catalog};
}

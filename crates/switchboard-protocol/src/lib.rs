//! switchboard-protocol

//! switchboard-config

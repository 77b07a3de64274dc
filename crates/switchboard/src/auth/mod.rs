//! Authorization: how the host proves to a remote server that it may speak with it.
//!
//! | where | what |
//! |---|---|
//! | [`vault`] | where secrets are kept, and the lock that lets one process at a time renew them |

pub mod vault;

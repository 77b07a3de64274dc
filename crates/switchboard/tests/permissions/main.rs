//! Permissions as a host has them: rules from files of all scopes, decided for calls of all kinds.

mod guard;
mod hooks;
mod machine;
mod properties;
mod table;

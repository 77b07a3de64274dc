//! switchboard-test

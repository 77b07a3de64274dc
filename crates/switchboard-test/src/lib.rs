//! Support for the tests and benchmarks of the other crates, and a dependency of nothing else.
//!
//! | where | what |
//! |---|---|
//! | [`shared`] | the protocol's schemas and examples, where they lie beside the repository |

pub mod shared;

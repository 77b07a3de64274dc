//! One call, from the arguments somebody gives to the answer somebody gets.
//!
//! | where | what |
//! |---|---|
//! | [`arguments`] | checked against the tool's schema, or made from a command line |
//! | [`shape`] | a result as the model gets it |
//! | [`spill`] | the files that hold what is too large for a model |

pub mod arguments;
pub mod shape;
pub mod spill;

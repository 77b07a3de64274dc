//! YAML, for import only.

use super::{Sink, empty_table};
use crate::tree::Node;

pub(super) fn parse<'a>(text: &'a str, sink: &mut Sink<'_, '_>) -> Option<Node<'a>> {
    let _ = sink;
    Some(empty_table(text))
}

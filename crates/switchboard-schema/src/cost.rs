//! Computes the maximum cost of validation against a schema, before the schema is compiled.
//!
//! A schema is a graph: some keywords apply another schema to the *same* value (`allOf`, `$ref`), others to a part of
//! it (`properties`, `items`). A cycle of the first kind never terminates. Branching of the first kind, repeated
//! through a reference, doubles the work with each level of the arguments: forty levels take a day. So the work on one
//! path is computed for each depth of the arguments, and the depth at which it exceeds the limits is the maximum.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::NotChecked;

/// Maximum number of schemas in one document.
const MAX_NODES: usize = 20_000;

/// Maximum number of schemas applied on the path to one value.
const MAX_VISITS: u64 = 50_000;

/// Maximum number of schemas on the stack; each takes a few frames.
const MAX_NESTING: u64 = 256;

/// Maximum number of references, which compilation follows recursively.
const MAX_REFERENCES: usize = 500;

/// Depth limit of the JSON parser.
const DEEPEST: usize = 128;

/// Maximum nesting depth of arguments at which validation stays cheap.
pub(crate) fn max_depth(schema: &Value) -> Result<usize, NotChecked> {
    let graph = Graph::of(schema)?;
    let order = graph.order()?;
    let mut previous: Vec<Work> = Vec::new();
    // Values inside the innermost brackets are one level deeper.
    for levels in 1..=DEEPEST + 1 {
        let mut works = vec![Work::default(); graph.nodes.len()];
        for &index in &order {
            let Some(node) = graph.nodes.get(index) else {
                continue;
            };
            let work = node.work(&works, &previous);
            if let Some(slot) = works.get_mut(index) {
                *slot = work;
            }
        }
        let root = works.first().copied().unwrap_or_default();
        if root.visits > MAX_VISITS || root.nesting > MAX_NESTING {
            // This level is too expensive, and one more is for the values inside the innermost brackets.
            return match levels - 1 {
                0 | 1 => Err(NotChecked::TooCostly),
                cheap => Ok(cheap - 1),
            };
        }
        if works == previous {
            break;
        }
        previous = works;
    }
    Ok(DEEPEST)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Work {
    visits: u64,
    nesting: u64,
}

impl Work {
    fn and(self, other: Self) -> Self {
        Self {
            visits: self.visits.saturating_add(other.visits),
            nesting: self.nesting.max(other.nesting),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            visits: self.visits.max(other.visits),
            nesting: self.nesting.max(other.nesting),
        }
    }
}

#[derive(Debug, Default)]
struct Node {
    /// Schemas applied to the same value.
    same: Vec<usize>,
    /// Schemas that all apply to every part.
    parts: Vec<usize>,
    /// Schemas that each apply to a different part.
    one_of_parts: Vec<usize>,
}

impl Node {
    /// Computes the work on a value from that of other schemas on the same value and on its parts.
    fn work(&self, same: &[Work], parts: &[Work]) -> Work {
        let at = |works: &[Work], index: usize| works.get(index).copied().unwrap_or_default();
        let here = self
            .same
            .iter()
            .fold(Work::default(), |sum, index| sum.and(at(same, *index)));
        let each = self
            .parts
            .iter()
            .fold(Work::default(), |sum, index| sum.and(at(parts, *index)));
        let one = self
            .one_of_parts
            .iter()
            .fold(Work::default(), |most, index| most.or(at(parts, *index)));
        let total = here.and(each).and(one);
        Work {
            visits: total.visits.saturating_add(1),
            nesting: total.nesting.saturating_add(1),
        }
    }
}

struct Graph {
    nodes: Vec<Node>,
}

/// Collects the nodes, keyed by the address of each schema.
struct Builder<'v> {
    document: &'v Value,
    base: Option<&'v str>,
    found: HashMap<*const Value, usize>,
    pending: Vec<(usize, &'v Value)>,
    nodes: Vec<Node>,
    references: usize,
}

impl Graph {
    fn of(document: &Value) -> Result<Self, NotChecked> {
        let base = document.get("$id").or_else(|| document.get("id"));
        let mut builder = Builder {
            document,
            base: base
                .and_then(Value::as_str)
                .map(|id| id.trim_end_matches('#')),
            found: HashMap::new(),
            pending: Vec::new(),
            nodes: Vec::new(),
            references: 0,
        };
        builder.node(document)?;
        while let Some((index, schema)) = builder.pending.pop() {
            if let Value::Object(schema) = schema {
                let node = builder.edges(schema, index == 0)?;
                if let Some(slot) = builder.nodes.get_mut(index) {
                    *slot = node;
                }
            }
        }
        Ok(Self {
            nodes: builder.nodes,
        })
    }

    /// Topological order: every schema comes after those that it applies to the same value.
    fn order(&self) -> Result<Vec<usize>, NotChecked> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for start in 0..self.nodes.len() {
            let mut stack = vec![(start, 0)];
            while let Some((index, next)) = stack.pop() {
                let (Some(node), Some(mark)) = (self.nodes.get(index), marks.get_mut(index)) else {
                    continue;
                };
                match (*mark, next) {
                    (Mark::Done, _) => continue,
                    (Mark::Open, 0) => return Err(NotChecked::TooCostly),
                    _ => *mark = Mark::Open,
                }
                if let Some(child) = node.same.get(next) {
                    stack.push((index, next + 1));
                    stack.push((*child, 0));
                } else {
                    *mark = Mark::Done;
                    order.push(index);
                }
            }
        }
        Ok(order)
    }
}

impl<'v> Builder<'v> {
    fn node(&mut self, schema: &'v Value) -> Result<usize, NotChecked> {
        if let Some(index) = self.found.get(&std::ptr::from_ref(schema)) {
            return Ok(*index);
        }
        let index = self.nodes.len();
        if index >= MAX_NODES {
            return Err(NotChecked::TooCostly);
        }
        self.nodes.push(Node::default());
        self.found.insert(std::ptr::from_ref(schema), index);
        self.pending.push((index, schema));
        Ok(index)
    }

    fn edges(&mut self, schema: &'v Map<String, Value>, is_root: bool) -> Result<Node, NotChecked> {
        let mut node = Node::default();
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("$ref", Value::String(target)) => {
                    self.references += 1;
                    if self.references > MAX_REFERENCES {
                        return Err(NotChecked::TooCostly);
                    }
                    let target = self.resolve(target)?;
                    node.same.push(self.node(target)?);
                }
                // The targets of these depend on the dynamic scope.
                ("$dynamicRef" | "$recursiveRef", _) => {
                    return Err(not_followed(&value.to_string()));
                }
                // A nested `$id` changes the base of local references.
                ("$id" | "id", Value::String(id)) if !is_root && !id.starts_with('#') => {
                    return Err(not_followed(id));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    self.add_all(schemas, &mut node.same)?;
                }
                ("not" | "if" | "then" | "else" | "propertyNames", schema) => {
                    node.same.push(self.node(schema)?);
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    self.add_all(schemas.values(), &mut node.same)?;
                }
                ("properties", Value::Object(schemas)) => {
                    self.add_all(schemas.values(), &mut node.one_of_parts)?;
                }
                ("prefixItems" | "items", Value::Array(schemas)) => {
                    self.add_all(schemas, &mut node.one_of_parts)?;
                }
                ("patternProperties", Value::Object(schemas)) => {
                    self.add_all(schemas.values(), &mut node.parts)?;
                }
                (
                    "items"
                    | "additionalItems"
                    | "additionalProperties"
                    | "unevaluatedItems"
                    | "unevaluatedProperties"
                    | "contains",
                    schema,
                ) => node.parts.push(self.node(schema)?),
                // Free unless referenced; their references count for compilation.
                ("$defs" | "definitions", Value::Object(schemas)) => {
                    for schema in schemas.values() {
                        self.node(schema)?;
                    }
                }
                _ => {}
            }
        }
        Ok(node)
    }

    fn add_all(
        &mut self,
        schemas: impl IntoIterator<Item = &'v Value>,
        to: &mut Vec<usize>,
    ) -> Result<(), NotChecked> {
        for schema in schemas {
            to.push(self.node(schema)?);
        }
        Ok(())
    }

    fn resolve(&self, target: &str) -> Result<&'v Value, NotChecked> {
        let local = match self.base {
            Some(base) => target.strip_prefix(base).unwrap_or(target),
            None => target,
        };
        let pointer = local
            .strip_prefix('#')
            .ok_or_else(|| not_followed(target))?;
        self.document
            .pointer(pointer)
            .ok_or_else(|| not_followed(target))
    }
}

fn not_followed(target: &str) -> NotChecked {
    NotChecked::Reference(target.chars().take(120).collect())
}

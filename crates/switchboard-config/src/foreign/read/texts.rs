//! Converts texts from the tool's variable syntax into ours.

use super::super::variables::{
    Foreign, Piece, Style, is_exact, merged, parse, render, variable_name,
};
use super::{EntryReader, text};
use crate::entry::Field;
use crate::tree::{Node, Span};

impl EntryReader<'_, '_, '_> {
    /// Converts a text to our own variable syntax.
    pub(super) fn translated(
        &mut self,
        field: Field,
        key: &str,
        node: &Node<'_>,
    ) -> Option<Node<'static>> {
        let original = self.reader.text(key, node)?;
        let mut pieces = parse(self.dialect.style_of(field), &original);
        for piece in &mut pieces {
            match piece {
                Piece::Foreign(what) => {
                    let what = what.clone();
                    *piece = self.stand_in(key, node.span, &what);
                }
                Piece::Variable { name, .. } => {
                    if let Some(value) = self.known.get(name) {
                        *piece = Piece::Text(value.clone());
                    }
                }
                Piece::Text(literal)
                    if parse(Style::Ours, literal)
                        .iter()
                        .any(|piece| !matches!(piece, Piece::Text(_))) =>
                {
                    let message = format!(
                        "`{key}` looks like a variable, which {} does not expand there; it stays literal text",
                        self.dialect.tool
                    );
                    self.reader.warning(
                        "kept-as-text",
                        node.span,
                        message,
                        "write ${…} in the imported entry to have it expanded",
                    );
                }
                _ => {}
            }
        }
        let pieces = merged(pieces);
        if !is_exact(Style::Ours, &pieces) {
            let message = format!("`{key}` cannot be written exactly in our syntax of variables");
            self.reader.warning(
                "not-translated",
                node.span,
                message,
                "check the imported value",
            );
        }
        Some(text(render(Style::Ours, &pieces), node.span))
    }

    /// A placeholder variable for a value that only the tool can compute. Until it is set, the server is disabled for
    /// that reason.
    fn stand_in(&mut self, key: &str, span: Span, what: &Foreign) -> Piece {
        let tool = self.dialect.tool;
        if let Foreign::Input(id) = what {
            let input = self.inputs.get(id);
            let name = input.map_or_else(|| variable_name(id), |input| input.variable.clone());
            let default = input.and_then(|input| input.default.clone());
            let default = default.map(|default| merged(vec![Piece::Text(default)]));
            let message = format!(
                "`{key}` is prompted for by {tool} as \"{id}\"; here it is the variable {name}"
            );
            self.reader.warning(
                "stand-in",
                span,
                message,
                format!("set {name} in the environment"),
            );
            return Piece::Variable { name, default };
        }
        let owner = key.rsplit_once('.').map_or(key, |(_, last)| last);
        let base = if key
            .split('.')
            .next()
            .is_some_and(|head| head.starts_with("env"))
        {
            variable_name(owner)
        } else {
            variable_name(&format!("{}-{owner}", self.server))
        };
        let name = self.stand_ins.unique(&base);
        let what = match what {
            Foreign::Command => "the output of a command, which is not run",
            Foreign::File => "the content of a file",
            _ => "something only that tool knows",
        };
        let message = format!("`{key}` holds {what}; the variable {name} takes its place");
        self.reader.warning(
            "stand-in",
            span,
            message,
            format!("set {name} in the environment"),
        );
        Piece::Variable {
            name,
            default: None,
        }
    }
}

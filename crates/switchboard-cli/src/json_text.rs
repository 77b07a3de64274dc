//! Pretty-prints JSON text without parsing it into values: preserves order, number spelling and duplicate keys.

/// Deeper levels get no further indentation, so that the output stays linear in the input.
const MAX_INDENT_DEPTH: usize = 32;

/// Indents the text by two spaces per level. It must be valid JSON.
pub(crate) fn indented(json: &str) -> String {
    let mut laid_out = String::with_capacity(json.len() + json.len() / 4);
    let mut depth: usize = 0;
    let mut rest = json.trim();
    while let Some(character) = rest.chars().next() {
        match character {
            '"' => {
                let (string, after) = rest.split_at(string_length(rest));
                laid_out.push_str(string);
                rest = after;
                continue;
            }
            '{' | '[' => {
                let inside = rest[1..].trim_start();
                laid_out.push(character);
                if let Some(closing) = inside.chars().next().filter(|next| "}]".contains(*next)) {
                    laid_out.push(closing);
                    rest = &inside[1..];
                    continue;
                }
                depth += 1;
                break_line(&mut laid_out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut laid_out, depth);
                laid_out.push(character);
            }
            ',' => {
                laid_out.push(',');
                break_line(&mut laid_out, depth);
            }
            ':' => laid_out.push_str(": "),
            ' ' | '\t' | '\n' | '\r' => {}
            other => laid_out.push(other),
        }
        rest = &rest[character.len_utf8()..];
    }
    laid_out
}

fn break_line(text: &mut String, depth: usize) {
    text.push('\n');
    for _ in 0..depth.min(MAX_INDENT_DEPTH) {
        text.push_str("  ");
    }
}

/// The length of the string literal at the start of `text`.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (position, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return position + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(indented(json), expected, "{json}");
    }

    #[test]
    fn values_are_laid_out_as_serde_json_does_it() {
        let value = serde_json::json!({"a": [1, 2, {"b": "x, \"y\": {"}], "c": {}, "d": [], "e": null, "ü\\": "ö\\\""});
        check(
            &value.to_string(),
            &serde_json::to_string_pretty(&value).unwrap(),
        );
        check(" 1 ", "1");
        check("\"a b\"", "\"a b\"");
    }

    #[test]
    fn order_numbers_and_duplicates_stay() {
        check(
            "{ \"b\" :1.0e400,\"a\":18446744073709551616 , \"b\": [ ] }",
            "{\n  \"b\": 1.0e400,\n  \"a\": 18446744073709551616,\n  \"b\": []\n}",
        );
    }

    #[test]
    fn deep_nesting_stays_linear_in_size() {
        let deep = "[".repeat(10_000) + "1" + &"]".repeat(10_000);
        assert!(indented(&deep).len() < 100 * deep.len());
    }
}

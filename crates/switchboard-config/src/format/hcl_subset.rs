//! Rejects unsupported HCL syntax before parsing.
//!
//! Operators, indexes and attribute access are not supported, and the parser backtracks on them: a few hundred hostile
//! bytes can keep it busy for hours. So they are rejected by a character scan, which also finds the exact position.

/// Offset of the first operator, index or attribute access outside strings and comments.
pub(super) fn first_operator(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let at = |position: usize| bytes.get(position).copied().unwrap_or_default();
    let mut position = 0;
    // The last character that is neither white space nor part of a comment.
    let mut previous = b'\n';
    while position < bytes.len() {
        let byte = at(position);
        let next = match (byte, at(position + 1)) {
            (b'"', _) => end_of_string(bytes, position + 1),
            (b'#', _) | (b'/', b'/') => end_of_line(bytes, position),
            (b'/', b'*') => find(bytes, position + 2, b"*/"),
            (b'<', b'<') => end_of_heredoc(text, position + 2),
            (b'+', _) if matches!(previous, b'e' | b'E') => position + 1,
            (b'%' | b'?' | b'&' | b'|' | b'!' | b'*' | b'/' | b'+' | b'<' | b'>', _) => {
                return Some(position);
            }
            (b'=', b'=') => return Some(position),
            (b'[', _) if ends_a_value(previous) => return Some(position),
            (b'.', _) if ends_a_value(previous) && !previous.is_ascii_digit() => {
                return Some(position);
            }
            _ => position + 1,
        };
        if !byte.is_ascii_whitespace() || byte == b'\n' {
            previous = byte;
        }
        position = next;
    }
    None
}

/// Whether a value may end with this character, so that the next token would belong to it.
fn ends_a_value(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || byte >= 0x80
        || matches!(byte, b'_' | b'-' | b'"' | b')' | b']' | b'}')
}

/// Offset after the closing quote; a string ends at the line end at the latest.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut position = start;
    while let Some(byte) = bytes.get(position) {
        match byte {
            b'"' => return position + 1,
            b'\n' => return position,
            b'\\' => position += 2,
            _ => position += 1,
        }
    }
    bytes.len()
}

fn end_of_line(bytes: &[u8], start: usize) -> usize {
    find(bytes, start, b"\n").saturating_sub(1).max(start + 1)
}

/// Offset after the next occurrence of a text, or the end.
fn find(bytes: &[u8], start: usize, wanted: &[u8]) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let found = rest
        .windows(wanted.len())
        .position(|window| window == wanted);
    found.map_or(bytes.len(), |found| start + found + wanted.len())
}

/// Offset after the closing line of a heredoc whose marker starts at `start`.
fn end_of_heredoc(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let mark = rest
        .strip_prefix('-')
        .unwrap_or(rest)
        .lines()
        .next()
        .unwrap_or_default()
        .trim();
    let mut position = start;
    for line in rest.split_inclusive('\n') {
        position += line.len();
        if position > start + line.len() && line.trim() == mark {
            // Keep the line end, which ends the attribute.
            return position - (line.len() - line.trim_end_matches(['\n', '\r']).len());
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_use_of_hcl_passes() {
        for text in [
            "",
            "a = \"x % y [0] ? ! && || * . \\\" %\"\n",
            "# a % b\n// c ? d\n/* e ! f\n[ */ a = 1.5\n",
            "a = [1, -2, 1e+5, 1.5E-3]\nb = [[1], [2]]\n",
            "mcp_servers \"x\" {\n  env = { A = env(\"B\"), \"C\" = null }\n  args = [\n    \"-y\",\n    \"p\", # why\n  ]\n}\n",
            "a = <<EOT\nx % y [ ? \"\nEOT\nb = 1\n",
            "a = <<-EOT\n    x && y\n    EOT\nb = [1]\n",
            "größe = [1]\n",
        ] {
            assert_eq!(first_operator(text), None, "{text}");
        }
    }

    #[test]
    fn what_we_do_not_evaluate_is_found_where_it_stands() {
        for (before, rest) in [
            ("a = b ", "% c"),
            ("a = b", "[0]"),
            ("a = b ", "[0]"),
            ("a = [1]", "[0]"),
            ("a = f(1)", "[0]"),
            ("a = b", ".c"),
            ("a = 1 ", "+ 2"),
            ("a = b ", "? c : d"),
            ("a = ", "!b"),
            ("a = b ", "== c"),
            ("a = <<EOT\n x\nEOT\nb = c ", "* d"),
            ("a = \"open\nb = c ", "& d"),
            ("a = { for k, v in x : k =", "> v }"),
        ] {
            let text = format!("{before}{rest}\n");
            assert_eq!(first_operator(&text), Some(before.len()), "{text}");
        }
    }
}

use anstream::adapter::strip_str;

use super::*;
use crate::printer::paint;

const SAMPLE: &str = "# Title\n\nA paragraph with **bold**, *italic*, `code` and a [link](https://a.example/x).\nIt goes on here.\n\n- one\n- two with a longer text that has to be wrapped somewhere\n  - nested **deep**\n  - again\n- three\n\n1. first\n2. second\n\n   more of second\n\n3. third\n\n> quoted text\n> and more\n\n```rust\nfn main() {\n\n    println!(\"**not bold**\");\n}\n```\n\n| name | count |\n|:-----|------:|\n| a    | 1 |\n| long name | 23 |\n\n---\n\nLast <b>words</b> &amp; <https://b.example>";

fn look(width: usize, styled: bool) -> Look {
    Look { width, styled }
}

fn joined(rows: &[Line]) -> String {
    let row = |row: &Line| {
        let pieces = row.iter().map(|(style, text)| paint(*style, text));
        pieces.collect::<String>()
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    rows.join("\n")
}

fn rendered(text: &str, look: Look) -> String {
    let mut markdown = Markdown::new(look);
    let mut rows = markdown.push(text);
    rows.extend(markdown.finish());
    joined(&rows)
}

fn plain(text: &str, width: usize) -> String {
    strip_str(&rendered(text, look(width, false))).to_string()
}

#[test]
fn text_is_laid_out() {
    insta::assert_snapshot!("plain", plain(SAMPLE, 60));
    let styled = rendered(SAMPLE, look(60, true)).replace('\u{1b}', "␛");
    insta::assert_snapshot!("styled", styled);
}

#[test]
fn any_split_gives_the_same_rows() {
    for (width, styled) in [(20, true), (37, false), (80, true), (200, false)] {
        let expected = rendered(SAMPLE, look(width, styled));
        for step in [1, 2, 7, 31] {
            let mut markdown = Markdown::new(look(width, styled));
            let mut rows = Vec::new();
            let mut rest = SAMPLE;
            while !rest.is_empty() {
                let at = (step..rest.len()).find(|at| rest.is_char_boundary(*at));
                let at = at.unwrap_or(rest.len());
                let (chunk, after) = rest.split_at(at);
                // Final rows plus the preview equal the text rendered so far.
                let mut shown = rows.clone();
                shown.extend(markdown.preview());
                let before = &SAMPLE[..SAMPLE.len() - rest.len()];
                assert_eq!(
                    joined(&shown),
                    rendered(before, look(width, styled)),
                    "{before}"
                );
                rows.extend(markdown.push(chunk));
                rest = after;
            }
            rows.extend(markdown.finish());
            assert_eq!(joined(&rows), expected, "in steps of {step} at {width}");
        }
    }
}

#[test]
fn rows_are_no_wider_than_the_terminal() {
    for width in [20, 33, 80] {
        for row in plain(SAMPLE, width).lines() {
            // Code is not wrapped, so that it can be copied.
            if !row.contains("println") {
                assert!(unicode_width::UnicodeWidthStr::width(row) <= width, "{row}");
            }
        }
    }
}

#[test]
fn unclosed_markup_is_text() {
    let check = |text: &str, expected: &str| assert_eq!(plain(text, 40), expected, "{text}");
    check("a ** b", "a ** b");
    check("snake_case_name", "snake_case_name");
    check("```\nopen", "  open");
    check("- ", "•");
    check("1) x", "1. x");
    check("a\nb\n\n\n\nc", "a b\n\nc");
    check("```x``` in one line", "`x` in one line");
    check(
        "text\n- item\n```\ncode\n```\nafter",
        "text\n• item\n  code\nafter",
    );
    check("- a\n\n  b\n- c", "• a\n\n  b\n• c");
    check("\n\nfirst", "first");
    check("| a | b |", "| a | b |");
    check("[a](https://a.example)", "a (https://a.example)");
}

#[test]
fn a_table_that_is_too_wide_has_wrapped_cells_or_is_shown_row_by_row() {
    let table =
        "| name | about |\n|---|---|\n| alpha | a long text that does not fit |\n| beta | b |\n";
    let rule = "─".repeat(23);
    let expected = format!(
        "name   about\n─────  {rule}\nalpha  a long text that does\n       not fit\nbeta   b"
    );
    assert_eq!(plain(table, 30), expected);
    // Columns would be too narrow.
    let narrow = "| name | about |\n|---|---|\n| alphabetical | a long text |\n";
    let expected = "name: alphabetical\nabout: a long text";
    assert_eq!(plain(narrow, 20), expected);
    // A word is not broken.
    let table = format!(
        "| a | b |\n|---|---|\n| {} | {} |\n",
        "x".repeat(20),
        "y ".repeat(20)
    );
    assert!(plain(&table, 30).starts_with("a: xxx"));
}

#[test]
fn control_characters_are_neutralised() {
    for text in [
        "a\u{1b}]0;title\u{7}b",
        "a&#27;[2Jb",
        "`a\u{1b}[2Jb`",
        "```\n\u{1b}[2J\n```",
        "[a\u{202e}](https://x.example/&#x1b;[2J)",
        "| a\u{1b}[2J |\n|---|\n| \u{9b}x |",
        "- a\n\n      \u{1b}[2J",
        "a\u{8}b\rc",
    ] {
        for step in [1, 3, 100] {
            let mut markdown = Markdown::new(look(40, false));
            let mut rows = Vec::new();
            let characters: Vec<char> = text.chars().collect();
            for chunk in characters.chunks(step) {
                rows.extend(markdown.push(&chunk.iter().collect::<String>()));
            }
            rows.extend(markdown.finish());
            for (_, text) in rows.iter().flatten() {
                let is_bad = |character: char| {
                    character.is_control() || switchboard_config::text::is_invisible(character)
                };
                assert!(!text.contains(is_bad), "{text:?}");
            }
        }
    }
}

#[test]
fn overlong_units_are_rendered_early() {
    let mut markdown = Markdown::new(look(80, true));
    let word = "word ".repeat(20_000);
    let rows = markdown.push(&word);
    assert!(rows.len() > 500, "{}", rows.len());
    let mut lines = Markdown::new(look(80, true));
    let rows = lines.push(&"line\n".repeat(40_000));
    assert!(rows.len() > 500, "{}", rows.len());
}

#[test]
fn deeply_nested_text_is_rendered() {
    for piece in ["> ", "- ", "*", "[", "![", "**_", "<", "1. "] {
        let shown = rendered(&format!("{}end", piece.repeat(3_000)), look(40, false));
        // If the margins leave no room, each letter gets its own row.
        let shown = strip_str(&shown).to_string();
        let letters: String = shown.chars().filter(char::is_ascii_alphabetic).collect();
        assert!(letters.ends_with("end"), "{piece}");
    }
}

//! Splits and joins command lines with POSIX shell quoting, without expansion.

use std::borrow::Cow;

/// Splits a line into words; `None` if a quote is not closed.
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '\'' => break,
                        inner => word.push(inner),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next()? {
                        '"' => break,
                        '\\' => match characters.next()? {
                            '\n' => {}
                            escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        inner => word.push(inner),
                    }
                }
            }
            '\\' => match characters.next() {
                Some('\n') => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => word.get_or_insert_default().push('\\'),
            },
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Some(words)
}

/// Quotes a word if necessary.
pub fn quote(word: &str) -> Cow<'_, str> {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"@%+=:,./_-".contains(&byte) || byte >= 0x80;
    if !word.is_empty() && word.bytes().all(plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// Joins words so that [`split`] restores them.
pub fn join<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let quoted: Vec<String> = words
        .into_iter()
        .map(|word| quote(word.as_ref()).into_owned())
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        let check = |line: &str, words: Option<&[&str]>| {
            let words =
                words.map(|words| words.iter().map(ToString::to_string).collect::<Vec<_>>());
            assert_eq!(split(line), words, "{line:?}");
        };
        check("", Some(&[]));
        check("  a  b\tc\n", Some(&["a", "b", "c"]));
        check("'a b' \"c \\\" d\" e\\ f", Some(&["a b", "c \" d", "e f"]));
        check("a'b'\"c\" '' \"\"", Some(&["abc", "", ""]));
        check("\"\\$x \\n\"", Some(&["$x \\n"]));
        check("a \\\nb", Some(&["a", "b"]));
        check("'open", None);
        check("\"open", None);
    }

    #[test]
    fn joined_words_split_into_themselves() {
        let words = [
            "plain",
            "two words",
            "it's",
            "",
            "$HOME",
            "a\nb",
            "ä/ö",
            "\\",
            "\"q\"",
        ];
        assert_eq!(split(&join(words)), Some(words.map(String::from).to_vec()));
    }
}

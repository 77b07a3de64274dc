//! Parser for `WWW-Authenticate` challenges.
//!
//! One value can hold several challenges, and a comma separates both challenges and their parameters. A word followed
//! by `=` is a parameter; any other word starts the next challenge.

/// The `Bearer` and `DPoP` parameters of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Challenge {
    /// The server requires `DPoP`-bound tokens.
    pub(super) wants_dpop: bool,
    /// Error code, for example `invalid_token`.
    pub(super) error: Option<String>,
    /// Required scopes.
    pub(super) scopes: Vec<String>,
    /// URL of the protected resource metadata, possibly relative.
    pub(super) resource_metadata: Option<String>,
}

/// Longer values are ignored.
const MAX_VALUE: usize = 16 * 1024;

impl Challenge {
    /// Merges the `Bearer` and `DPoP` challenges.
    pub(super) fn of(values: &[String]) -> Self {
        let mut challenge = Self::default();
        for value in values.iter().filter(|value| value.len() <= MAX_VALUE) {
            let mut scheme = String::new();
            for item in items(value) {
                match item {
                    Item::Scheme(name) => {
                        scheme = name.to_ascii_lowercase();
                        challenge.wants_dpop |= scheme == "dpop";
                    }
                    Item::Parameter(name, value) if scheme == "bearer" || scheme == "dpop" => {
                        challenge.take(&name.to_ascii_lowercase(), value);
                    }
                    Item::Parameter(..) => {}
                }
            }
        }
        challenge
    }

    pub(super) fn wants_more_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// The first value of each parameter wins.
    fn take(&mut self, name: &str, value: String) {
        match name {
            "error" => {
                self.error.get_or_insert(value);
            }
            "resource_metadata" => {
                self.resource_metadata.get_or_insert(value);
            }
            "scope" if self.scopes.is_empty() => self.scopes = words(&value),
            _ => {}
        }
    }
}

/// Whether more scopes could resolve a refusal with these challenges.
pub(crate) fn wants_more_scope(values: &[String]) -> bool {
    Challenge::of(values).wants_more_scope()
}

/// Splits a space-separated list and drops duplicates.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_ascii_whitespace() {
        if !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// Concatenates both lists without duplicates.
pub(super) fn union(first: &[String], second: &[String]) -> Vec<String> {
    let mut all = first.to_vec();
    for word in second {
        if !all.contains(word) {
            all.push(word.clone());
        }
    }
    all
}

enum Item<'v> {
    Scheme(&'v str),
    Parameter(&'v str, String),
}

fn items(value: &str) -> Vec<Item<'_>> {
    let is_separator = |letter: char| letter == ',' || letter.is_ascii_whitespace();
    let mut items = Vec::new();
    let mut rest = value.trim_start_matches(is_separator);
    while !rest.is_empty() {
        let end = rest
            .find(|letter| is_separator(letter) || letter == '=')
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let (item, after) = match after.trim_start().strip_prefix('=') {
            // The padding of a token68 credential (`Negotiate abc==`) has no name before the `=`.
            Some(after) if !word.is_empty() => {
                let (text, after) = parameter_value(after.trim_start());
                (Item::Parameter(word, text), after)
            }
            Some(after) => (Item::Parameter("", String::new()), after),
            None => (Item::Scheme(word), after),
        };
        items.push(item);
        rest = after.trim_start_matches(is_separator);
    }
    items
}

/// Parses a quoted or unquoted value; returns it and the rest.
fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text
            .find(|letter: char| letter == ',' || letter.is_ascii_whitespace())
            .unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return (value.to_owned(), after);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '"' => return (value, quoted.get(index + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lack_of_scopes_is_repaired_by_more() {
        for (value, expected) in [
            ("Bearer error=insufficient_scope", true),
            ("Bearer error=invalid_token", false),
            ("Bearer", false),
        ] {
            assert_eq!(wants_more_scope(&[value.to_owned()]), expected, "{value}");
        }
        assert!(!wants_more_scope(&[]));
    }

    #[test]
    fn challenges_are_read_whatever_stands_around_them() {
        let check = |values: &[&str], expected: Challenge| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            assert_eq!(Challenge::of(&values), expected, "{values:?}");
        };
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        check(&[], Challenge::default());
        check(&["Bearer"], Challenge::default());
        check(
            &[
                r#"Bearer error="invalid_token", scope="a b a", resource_metadata="https://x/y?z=1,2""#,
            ],
            Challenge {
                error: Some("invalid_token".to_owned()),
                scopes: list(&["a", "b"]),
                resource_metadata: Some("https://x/y?z=1,2".to_owned()),
                ..Challenge::default()
            },
        );
        check(
            &[
                r#"Basic realm="bearer scope=\"no\"", BEARER Scope = files:read ,error=insufficient_scope"#,
            ],
            Challenge {
                error: Some("insufficient_scope".to_owned()),
                scopes: list(&["files:read"]),
                ..Challenge::default()
            },
        );
        // What other schemes say is not for us.
        check(
            &[
                r#"Digest scope="no", resource_metadata="https://evil/", error="insufficient_scope""#,
            ],
            Challenge::default(),
        );
        check(
            &[r#"Bearer , =scope=s, error="a\"b\\c""#],
            Challenge {
                error: Some(r#"a"b\c"#.to_owned()),
                scopes: list(&["s"]),
                ..Challenge::default()
            },
        );
        check(
            &[
                "Negotiate abc==",
                r#"DPoP error="use_dpop_nonce""#,
                r#"Bearer scope="s""#,
            ],
            Challenge {
                wants_dpop: true,
                error: Some("use_dpop_nonce".to_owned()),
                scopes: list(&["s"]),
                ..Challenge::default()
            },
        );
        check(
            &[
                r#"Bearer scope="open"#,
                r#"Bearer scope="\"#,
                "=,=\"",
                "é=\"ü",
            ],
            Challenge {
                scopes: list(&["open"]),
                ..Challenge::default()
            },
        );
    }
    #[test]
    fn a_value_is_read_up_to_a_length() {
        let scopes = |length: usize| {
            let padding = "x".repeat(length - "Bearer scope=a, pad=".len());
            Challenge::of(&[format!("Bearer scope=a, pad={padding}")]).scopes
        };
        assert_eq!(scopes(16 * 1024), ["a"]);
        assert!(scopes(16 * 1024 + 1).is_empty());
    }
}

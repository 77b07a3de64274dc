//! Globs over names: `*`, `?`, `[a-z]`, `[!a]`, `{one,two}` and `\` as escape.
//!
//! Thousands of rules may be compiled at start-up, so this avoids regular expressions: a pattern is a list of pieces,
//! and matching is a single pass with backtracking to the last star only.
//! It is not `globset`, which is for paths: there `**/` also matches nothing, and `?` and case go by bytes, not characters.

/// The maximum number of alternatives that braces may expand to.
const MAX_ALTERNATIVES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    alternatives: Vec<Vec<Piece>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    Ignored,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    One(char),
    Any,
    Star,
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Glob {
    /// Compiles a pattern; `None` if it is invalid or expands to too many alternatives.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        let characters: Vec<char> = pattern.chars().collect();
        let mut parser = Parser {
            characters: &characters,
            position: 0,
        };
        let alternatives = parser.sequence(0)?;
        (parser.position == characters.len()).then_some(Self { alternatives })
    }

    /// Whether the whole name matches.
    pub(super) fn matches(&self, name: &str, case: Case) -> bool {
        self.alternatives
            .iter()
            .any(|pieces| matches(pieces, name, case))
    }

    /// The name itself, if the pattern has no wildcards.
    pub(super) fn literal(&self) -> Option<String> {
        let [pieces] = self.alternatives.as_slice() else {
            return None;
        };
        let character = |piece: &Piece| match piece {
            Piece::One(character) => Some(*character),
            _ => None,
        };
        pieces.iter().map(character).collect()
    }
}

struct Parser<'a> {
    characters: &'a [char],
    position: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.characters.get(self.position).copied();
        self.position += usize::from(next.is_some());
        next
    }

    /// Parses up to the end or, within braces, up to the next comma or closing brace.
    fn sequence(&mut self, depth: usize) -> Option<Vec<Vec<Piece>>> {
        let mut alternatives = vec![Vec::new()];
        while let Some(character) = self.characters.get(self.position).copied() {
            if depth > 0 && matches!(character, ',' | '}') {
                return Some(alternatives);
            }
            self.position += 1;
            let piece = match character {
                '*' => Piece::Star,
                '?' => Piece::Any,
                '[' => self.class()?,
                '{' => {
                    let inner = self.braces(depth + 1)?;
                    if alternatives.len() * inner.len() > MAX_ALTERNATIVES {
                        return None;
                    }
                    let joined = |before: &Vec<Piece>| {
                        let joined = |after: &Vec<Piece>| [&before[..], after].concat();
                        inner.iter().map(joined).collect::<Vec<_>>()
                    };
                    alternatives = alternatives.iter().flat_map(joined).collect();
                    continue;
                }
                '}' => return None,
                '\\' => Piece::One(self.next()?),
                other => Piece::One(other),
            };
            for pieces in &mut alternatives {
                pieces.push(piece.clone());
            }
        }
        (depth == 0).then_some(alternatives)
    }

    fn braces(&mut self, depth: usize) -> Option<Vec<Vec<Piece>>> {
        // Limits recursion: deeply nested braces are not useful.
        if depth > 4 {
            return None;
        }
        let mut all = Vec::new();
        loop {
            all.extend(self.sequence(depth)?);
            if all.len() > MAX_ALTERNATIVES {
                return None;
            }
            if self.next()? == '}' {
                return Some(all);
            }
        }
    }

    fn class(&mut self) -> Option<Piece> {
        let mut negated = false;
        if matches!(self.characters.get(self.position), Some('!' | '^')) {
            negated = true;
            self.position += 1;
        }
        let mut ranges = Vec::new();
        loop {
            let first = self.next()?;
            // A leading `]` is a member of the class.
            if first == ']' && !ranges.is_empty() {
                return Some(Piece::Class { negated, ranges });
            }
            let is_range = self.characters.get(self.position) == Some(&'-')
                && self
                    .characters
                    .get(self.position + 1)
                    .is_some_and(|end| *end != ']');
            let last = if is_range {
                self.position += 1;
                self.next()?
            } else {
                first
            };
            if last < first {
                return None;
            }
            ranges.push((first, last));
        }
    }
}

fn matches(pieces: &[Piece], name: &str, case: Case) -> bool {
    let (mut piece, mut rest) = (0, name);
    // The position to resume from when the last star has to match one more character.
    let mut star: Option<(usize, &str)> = None;
    loop {
        let first = rest.chars().next();
        match (pieces.get(piece), first) {
            (Some(Piece::Star), _) => {
                star = Some((piece + 1, rest));
                piece += 1;
                continue;
            }
            (Some(expected), Some(character)) if expected.fits(character, case) => {
                piece += 1;
                rest = rest.get(character.len_utf8()..).unwrap_or_default();
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        let Some((after, from)) = star else {
            return false;
        };
        let Some(skipped) = from.chars().next() else {
            return false;
        };
        let from = from.get(skipped.len_utf8()..).unwrap_or_default();
        star = Some((after, from));
        (piece, rest) = (after, from);
    }
}

impl Piece {
    fn fits(&self, character: char, case: Case) -> bool {
        match self {
            Self::One(expected) => {
                *expected == character
                    || (case == Case::Ignored
                        && expected.to_lowercase().eq(character.to_lowercase()))
            }
            Self::Any => true,
            Self::Star => false,
            Self::Class { negated, ranges } => {
                let within = |character: char| {
                    let holds = |range: &(char, char)| (range.0..=range.1).contains(&character);
                    ranges.iter().any(holds)
                };
                let is_member = within(character)
                    || (case == Case::Ignored
                        && (character.to_lowercase().any(within)
                            || character.to_uppercase().any(within)));
                is_member != *negated
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, name: &str, exact: bool, ignored: bool) {
        let glob = Glob::new(pattern).expect(pattern);
        let found = (
            glob.matches(name, Case::Exact),
            glob.matches(name, Case::Ignored),
        );
        assert_eq!(found, (exact, ignored), "{pattern} on {name}");
    }

    #[test]
    fn globs_match_whole_names() {
        check("", "", true, true);
        check("a", "ab", false, false);
        check("A", "a", false, true);
        check("*", "", true, true);
        check("a*", "abc", true, true);
        check("*a*b*", "xxaxxbxx", true, true);
        check("*a*b", "xxaxxbxx", false, false);
        check("a*b*c", "abbbc", true, true);
        check("**", "anything", true, true);
        check("?", "ü", true, true);
        check("Ü*", "über", false, true);
        check("[a-c]x", "bx", true, true);
        check("[!a-c]x", "bx", false, false);
        check("[]a]", "]", true, true);
        check("[a-]", "-", true, true);
        check("{get,list}_*", "list_x", true, true);
        check("{get,list}_*", "put_x", false, false);
        check("{a,b{c,d}}", "bd", true, true);
        check("\\*", "*", true, true);
        check("a,b", "a,b", true, true);
        check("[!a-c]x", "!x", true, true);
        check("[a-c]", "B", false, true);
        check("[A-C]", "b", false, true);
        check("[!a-c]", "B", true, false);
        check("\\*", "x", false, false);
    }

    #[test]
    fn what_is_no_glob_is_refused() {
        let many = "{a,b}".repeat(20);
        for pattern in ["[", "[a", "{a", "a}", "\\", "[z-a]", "{{{{{a}}}}}", &many] {
            assert_eq!(Glob::new(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn braces_stand_for_so_many_names_and_no_more() {
        let list = |count: usize| {
            let names: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
            format!("{{{}}}", names.join(","))
        };
        let pairs = |count: usize| "{a,b}".repeat(count);
        for (pattern, is_glob) in [
            ("{{{{a}}}}".to_owned(), true),
            ("{{{{{a}}}}}".to_owned(), false),
            (list(256), true),
            (list(257), false),
            (pairs(8), true),
            (pairs(9), false),
            (list(16) + &list(16), true),
            (list(16) + &list(17), false),
        ] {
            assert_eq!(Glob::new(&pattern).is_some(), is_glob, "{pattern}");
        }
    }

    #[test]
    fn a_hostile_name_costs_no_more_than_its_length_allows() {
        let glob = Glob::new("*a*a*a*a*a*a*a*b").expect("a glob");
        assert!(!glob.matches(&"a".repeat(5000), Case::Exact));
    }

    #[test]
    fn a_name_without_wildcards_is_literal() {
        let literal = |pattern| Glob::new(pattern).expect("a glob").literal();
        assert_eq!(literal("a\\*b"), Some("a*b".to_owned()));
        assert_eq!(literal("a*"), None);
        assert_eq!(literal("{a,b}"), None);
    }
}

//! Folds a text into the normalized forms that patterns are matched against.
//!
//! Hidden instructions may use confusable characters, full-width letters, accents, invisible characters, digits for
//! letters, or spaced-out letters. Folding converts to lower case, resolves compatibility forms and accents of Latin
//! letters, and drops invisible characters and stray marks. Texts with confusables, digits in words or spaced-out
//! letters get additional forms. Each form takes one pass and is at most slightly longer than the text.

use std::borrow::Cow;
use std::ops::Range;

use switchboard_config::text::is_invisible;
use unicode_normalization::UnicodeNormalization as _;

/// One normalized form of a text.
pub(super) struct Form<'t> {
    pub(super) text: Cow<'t, str>,
    /// Maps each byte to its position in the original.
    origins: Origins,
}

enum Origins {
    Same,
    Mapped(Vec<u32>),
    Unknown,
}

impl Form<'_> {
    /// Maps a match to its range in the original; `None` if unknown.
    pub(super) fn place(&self, found: Range<usize>) -> Option<Range<usize>> {
        match &self.origins {
            Origins::Same => Some(found),
            Origins::Unknown => None,
            Origins::Mapped(origins) => {
                let at = |index: usize| origins.get(index).map(|at| *at as usize);
                Some(at(found.start)?..at(found.end)?)
            }
        }
    }
}

/// Returns all forms of a text, the plain one first.
pub(super) fn forms(text: &str) -> Vec<Form<'_>> {
    let plain = plain(text);
    let mut forms = Vec::new();
    if !text.is_ascii()
        && let Some(look_alike) = without_look_alikes(&plain)
    {
        forms.push(look_alike);
    }
    let derived = |text: Option<String>, origins| {
        text.map(|text| Form {
            text: Cow::Owned(text),
            origins,
        })
    };
    let same = if matches!(plain.origins, Origins::Same) {
        Origins::Same
    } else {
        Origins::Unknown
    };
    let latest = forms.last().unwrap_or(&plain);
    let lettered = derived(digits_as_letters(&latest.text), same);
    let joined = derived(letters_joined(&latest.text), Origins::Unknown);
    forms.extend(lettered);
    forms.extend(joined);
    forms.insert(0, plain);
    forms
}

/// Splits a name into words: `readFile`, `read_file` and `read-file` give the same result.
pub(super) fn words(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut was_lower = false;
    for character in name.chars() {
        if matches!(character, '_' | '-' | '.') {
            words.push(' ');
        } else {
            if was_lower && character.is_uppercase() {
                words.push(' ');
            }
            words.push(character);
        }
        was_lower = character.is_lowercase();
    }
    words
}

fn plain(text: &str) -> Form<'_> {
    if text.is_ascii() {
        let mut folded = text.to_ascii_lowercase();
        let bytes = text.as_bytes();
        // Only these characters change more than their case.
        let ends: Vec<usize> = memchr::memchr2_iter(b'.', b'\n', bytes).collect();
        if !ends.is_empty() {
            let mut changed = folded.into_bytes();
            for at in ends {
                if let Some(byte) = changed.get_mut(at) {
                    *byte = ascii(bytes, at);
                }
            }
            // Replacing ASCII by ASCII keeps valid UTF-8.
            folded = String::from_utf8(changed).unwrap_or_default();
        }
        return Form {
            text: Cow::Owned(folded),
            origins: Origins::Same,
        };
    }
    let mut folded = String::with_capacity(text.len());
    let mut origins = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut push = |character: char, at: usize| {
        folded.push(character);
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        origins.extend(std::iter::repeat_n(at, character.len_utf8()));
    };
    for (at, character) in text.char_indices() {
        match character {
            _ if character.is_ascii() => push(char::from(ascii(bytes, at)), at),
            // Sentence terminators of other scripts.
            '。' | '।' | '۔' | '\u{2028}' | '\u{2029}' => push('\n', at),
            '’' | '‘' | '´' => push('\'', at),
            '\u{a0}' => push(' ', at),
            _ if is_invisible(character) || character.is_control() || is_stray_mark(character) => {}
            _ => {
                for part in std::iter::once(character).nfkc() {
                    let part = base_letter(part);
                    if !is_stray_mark(part) {
                        part.to_lowercase().for_each(|lower| push(lower, at));
                    }
                }
            }
        }
    }
    origins.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
    Form {
        text: Cow::Owned(folded),
        origins: Origins::Mapped(origins),
    }
}

/// Folds an ASCII character: lower case, sentence ends as line breaks, wrapped lines joined.
fn ascii(bytes: &[u8], at: usize) -> u8 {
    let Some(&byte) = bytes.get(at) else {
        return b' ';
    };
    match byte {
        b'.' if bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace)
            && !is_abbreviated(bytes, at) =>
        {
            b'\n'
        }
        b'\n' if is_wrapped(bytes, at) => b' ',
        _ => byte.to_ascii_lowercase(),
    }
}

/// "e.g." and "i.e." do not end a sentence.
fn is_abbreviated(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(3).and_then(|start| bytes.get(start..at));
    before.is_some_and(|before| matches!(before, b"e.g" | b"i.e" | b"E.g" | b"I.e"))
}

/// Whether a line break only wraps a sentence: the next line continues in lower case.
fn is_wrapped(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    if matches!(before, None | Some(b'\n' | b'.' | b':' | b'!' | b'?')) {
        return false;
    }
    // Indents are short; the bound keeps this linear.
    let ahead = bytes.get(at + 1..).unwrap_or_default().iter().take(40);
    let next = ahead.copied().find(|byte| !matches!(byte, b' ' | b'\t'));
    next.is_some_and(|next| next.is_ascii_lowercase() || matches!(next, b'(' | b','))
}

/// Combining marks that remain after composition, as in struck-through words.
fn is_stray_mark(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36F}' | '\u{1AB0}'..='\u{1AFF}' | '\u{1DC0}'..='\u{1DFF}' | '\u{20D0}'..='\u{20FF}')
}

/// Removes the accent of a Latin letter.
fn base_letter(character: char) -> char {
    match character {
        'ł' | 'Ł' => 'l',
        'ı' => 'i',
        'ø' | 'Ø' => 'o',
        'đ' | 'Đ' => 'd',
        'ß' => 's',
        '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' => {
            std::iter::once(character).nfd().next().unwrap_or(character)
        }
        _ => character,
    }
}

/// Replaces confusable letters of other scripts by Latin ones; `None` if there are none.
fn without_look_alikes<'f>(form: &Form<'_>) -> Option<Form<'f>> {
    let Origins::Mapped(before) = &form.origins else {
        return None;
    };
    let mut folded = String::with_capacity(form.text.len());
    let mut origins = Vec::with_capacity(form.text.len());
    let mut is_changed = false;
    for (at, character) in form.text.char_indices() {
        let letter = look_alike(character);
        is_changed |= letter != character;
        folded.push(letter);
        let origin = before.get(at).copied().unwrap_or_default();
        origins.extend(std::iter::repeat_n(origin, letter.len_utf8()));
    }
    origins.extend(before.last());
    is_changed.then_some(Form {
        text: Cow::Owned(folded),
        origins: Origins::Mapped(origins),
    })
}

fn look_alike(character: char) -> char {
    let may_look_alike = matches!(character,
        '\u{180}'..='\u{58F}' | '\u{13A0}'..='\u{13FF}' | '\u{1C80}'..='\u{1CBF}' | '\u{1D00}'..='\u{1DBF}'
        | '\u{2C00}'..='\u{2DFF}' | '\u{A640}'..='\u{A7FF}' | '\u{AB30}'..='\u{ABBF}');
    if !may_look_alike {
        return character;
    }
    let mut buffer = [0; 4];
    let mut skeleton = unicode_security::skeleton(character.encode_utf8(&mut buffer));
    match (skeleton.next(), skeleton.next()) {
        (Some(letter), None) if letter.is_ascii_alphabetic() => letter.to_ascii_lowercase(),
        _ => character,
    }
}

/// Reads digits and symbols within words as letters, if several words contain them.
fn digits_as_letters(text: &str) -> Option<String> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "@$".contains(character);
    let mut odd_words = 0;
    let mut read = String::with_capacity(text.len());
    for word in text.split_inclusive(|character: char| !is_part(character)) {
        let has_letter = word.bytes().any(|byte| byte.is_ascii_lowercase());
        let has_digit = word.bytes().any(|byte| b"013457@$".contains(&byte));
        if !(has_letter && has_digit) {
            read.push_str(word);
            continue;
        }
        odd_words += 1;
        read.extend(word.chars().map(|character| match character {
            '0' => 'o',
            '1' => 'i',
            '3' => 'e',
            '4' | '@' => 'a',
            '5' | '$' => 's',
            '7' => 't',
            other => other,
        }));
    }
    (odd_words >= ODD_WORDS).then_some(read)
}

/// Minimum number of words with digits; fewer are probably names and versions.
const ODD_WORDS: usize = 3;

/// Joins spaced-out letters, if there are enough of them.
fn letters_joined(text: &str) -> Option<String> {
    let is_letter = |word: &str| word.len() == 1 && word.as_bytes()[0].is_ascii_lowercase();
    let letters = text.split([' ', '\n', '\t']).filter(|word| is_letter(word));
    if letters.count() < LONE_LETTERS {
        return None;
    }
    let mut joined = String::with_capacity(text.len());
    let mut after_letter = false;
    for word in text.split(' ') {
        // Two spaces in a row separate words of spaced-out letters.
        if word.is_empty() {
            after_letter = false;
            continue;
        }
        let lone = is_letter(word);
        if !(joined.is_empty() || (after_letter && lone)) {
            joined.push(' ');
        }
        joined.push_str(word);
        after_letter = lone;
    }
    Some(joined)
}

const LONE_LETTERS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let forms = forms(text);
        let read: Vec<&str> = forms.iter().map(|form| &*form.text).collect();
        assert!(read.contains(&expected), "{text}: {read:?}");
    }

    #[test]
    fn what_is_written_oddly_is_read_plainly() {
        check("Plain TEXT. Next one", "plain text\n next one");
        check("wrapped\n    here", "wrapped     here");
        check("Item:\n- one", "item:\n- one");
        check("Ｉｇｎｏｒｅ ｔｈｉｓ", "ignore this");
        check("Ignоrе аll рrеviоus", "ignore all previous");
        check("i\u{336}g\u{336}n\u{336}ore", "ignore");
        check("ig\u{200b}no\u{ad}re", "ignore");
        check("Précédentes Größe ąłı", "precedentes grose ali");
        check("1gn0r3 4ll pr3v10us", "ignore all previous");
        check("i g n o r e  a l l  r u l e s", "ignore all rules");
        check("忽略。下一", "忽略\n下一");
        check("Игнорируй ВСЁ", "игнорируй всё");
    }

    #[test]
    fn a_match_is_found_again_in_the_original() {
        let text = "ёё Ｉｇｎｏｒｅ аll";
        for form in forms(text) {
            if let Some(at) = form.text.find("ignore") {
                let place = form.place(at..at + "ignore".len());
                assert_eq!(
                    place.and_then(|place| text.get(place)),
                    Some("Ｉｇｎｏｒｅ")
                );
            }
        }
    }
}

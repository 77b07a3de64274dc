//! Stems of English words, by the Porter2 rules, so that `creates`, `created` and `creating` are one word.
//!
//! Owns one function. It works in place on lower-case ASCII letters and leaves anything else alone. It is here, and
//! not a dependency, because it is one language out of the twenty that such a crate brings, and because it is on the
//! way of every word that is indexed or asked for: it allocates nothing.

/// Words whose stem does not follow from the rules.
const EXCEPTIONS: &[(&[u8], &[u8])] = &[
    (b"andes", b"andes"),
    (b"atlas", b"atlas"),
    (b"bias", b"bias"),
    (b"cosmos", b"cosmos"),
    (b"dying", b"die"),
    (b"early", b"earli"),
    (b"gently", b"gentl"),
    (b"howe", b"howe"),
    (b"idly", b"idl"),
    (b"lying", b"lie"),
    (b"news", b"news"),
    (b"only", b"onli"),
    (b"singly", b"singl"),
    (b"skies", b"sky"),
    (b"skis", b"ski"),
    (b"sky", b"sky"),
    (b"tying", b"tie"),
    (b"ugly", b"ugli"),
];

/// Words that are finished once a plural has been taken off.
const FINISHED: &[&[u8]] = &[
    b"canning", b"earring", b"exceed", b"herring", b"inning", b"outing", b"proceed", b"succeed",
];

/// Beginnings that are never cut into, so that `university` and `universal` stay apart.
const PREFIXES: &[&[u8]] = &[
    b"arsen", b"commun", b"emerg", b"gener", b"inter", b"later", b"organ", b"past", b"univers",
];

/// What is replaced where it lies in the first region.
const STEP_2: &[(&[u8], &[u8])] = &[
    (b"ization", b"ize"),
    (b"ational", b"ate"),
    (b"ousness", b"ous"),
    (b"iveness", b"ive"),
    (b"fulness", b"ful"),
    (b"tional", b"tion"),
    (b"biliti", b"ble"),
    (b"lessli", b"less"),
    (b"entli", b"ent"),
    (b"ation", b"ate"),
    (b"alism", b"al"),
    (b"aliti", b"al"),
    (b"fulli", b"ful"),
    (b"ousli", b"ous"),
    (b"iviti", b"ive"),
    (b"enci", b"ence"),
    (b"anci", b"ance"),
    (b"abli", b"able"),
    (b"izer", b"ize"),
    (b"ator", b"ate"),
    (b"alli", b"al"),
    (b"bli", b"ble"),
];

/// The same, for what is left.
const STEP_3: &[(&[u8], &[u8])] = &[
    (b"ational", b"ate"),
    (b"tional", b"tion"),
    (b"alize", b"al"),
    (b"icate", b"ic"),
    (b"iciti", b"ic"),
    (b"ical", b"ic"),
    (b"ness", b""),
    (b"ful", b""),
];

/// What is taken off where it lies in the second region.
const STEP_4: &[&[u8]] = &[
    b"ement", b"ance", b"ence", b"able", b"ible", b"ment", b"ant", b"ent", b"ism", b"ate", b"iti",
    b"ous", b"ive", b"ize", b"al", b"er", b"ic",
];

/// Replaces a word by its stem.
pub(super) fn stem(word: &mut Vec<u8>) {
    if word.len() <= 2 || !word.iter().all(u8::is_ascii_lowercase) {
        return;
    }
    if let Some((_, stem)) = EXCEPTIONS.iter().find(|(exception, _)| exception == word) {
        word.clear();
        word.extend_from_slice(stem);
        return;
    }
    mark_consonant_y(word);
    let regions = Regions::of(word);
    plural(word);
    if !FINISHED.contains(&word.as_slice()) {
        past_and_progressive(word, regions);
        // In a word of two letters it stays, as in `by`.
        if let [_, .., before, last @ (b'y' | b'Y')] = word.as_mut_slice()
            && !is_vowel(*before)
        {
            *last = b'i';
        }
        derived(word, regions);
        last_letters(word, regions);
    }
    word.make_ascii_lowercase();
}

/// Where the regions of a word begin, in which endings may be taken off.
#[derive(Clone, Copy)]
struct Regions {
    first: usize,
    second: usize,
}

impl Regions {
    fn of(word: &[u8]) -> Self {
        let prefix = PREFIXES.iter().find(|prefix| word.starts_with(prefix));
        let first = prefix.map_or_else(|| after_first_syllable(word, 0), |prefix| prefix.len());
        Self {
            first,
            second: after_first_syllable(word, first),
        }
    }
}

/// The place after the first consonant that follows a vowel.
fn after_first_syllable(word: &[u8], from: usize) -> usize {
    let rest = word.get(from..).unwrap_or_default();
    rest.windows(2)
        .position(|pair| matches!(pair, [vowel, other] if is_vowel(*vowel) && !is_vowel(*other)))
        .map_or(word.len(), |position| from + position + 2)
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

fn has_vowel(word: &[u8]) -> bool {
    word.iter().any(|letter| is_vowel(*letter))
}

/// A `y` at the start or after a vowel is a consonant, and written large meanwhile.
fn mark_consonant_y(word: &mut [u8]) {
    let mut after_vowel = true;
    for letter in word {
        if *letter == b'y' && after_vowel {
            *letter = b'Y';
        }
        after_vowel = is_vowel(*letter);
    }
}

/// Whether the word ends in a short syllable.
fn ends_short(word: &[u8]) -> bool {
    match word {
        [.., before, vowel, last] => {
            !is_vowel(*before)
                && is_vowel(*vowel)
                && !is_vowel(*last)
                && !matches!(last, b'w' | b'x' | b'Y')
        }
        [vowel, last] => is_vowel(*vowel) && !is_vowel(*last),
        _ => false,
    }
}

/// The start of an ending, if the word has it.
fn ending(word: &[u8], suffix: &[u8]) -> Option<usize> {
    word.ends_with(suffix).then(|| word.len() - suffix.len())
}

fn replace(word: &mut Vec<u8>, from: usize, by: &[u8]) {
    word.truncate(from);
    word.extend_from_slice(by);
}

fn plural(word: &mut Vec<u8>) {
    if let Some(start) = ending(word, b"sses") {
        replace(word, start, b"ss");
    } else if let Some(start) = ending(word, b"ied").or_else(|| ending(word, b"ies")) {
        let by: &[u8] = if start > 1 { b"i" } else { b"ie" };
        replace(word, start, by);
    } else if word.ends_with(b"us") || word.ends_with(b"ss") {
    } else if let Some(start) = ending(word, b"s")
        && word.get(..start.saturating_sub(1)).is_some_and(has_vowel)
    {
        word.truncate(start);
    }
}

fn past_and_progressive(word: &mut Vec<u8>, regions: Regions) {
    if let Some(start) = ending(word, b"eedly").or_else(|| ending(word, b"eed")) {
        if start >= regions.first {
            replace(word, start, b"ee");
        }
        return;
    }
    let start = [&b"ingly"[..], b"edly", b"ing", b"ed"]
        .into_iter()
        .find_map(|suffix| ending(word, suffix));
    let Some(start) = start.filter(|start| word.get(..*start).is_some_and(has_vowel)) else {
        return;
    };
    word.truncate(start);
    let is_double = matches!(
        word.as_slice(),
        [.., left, right] if left == right
            && matches!(right, b'b' | b'd' | b'f' | b'g' | b'm' | b'n' | b'p' | b'r' | b't')
    );
    if word.ends_with(b"at") || word.ends_with(b"bl") || word.ends_with(b"iz") {
        word.push(b'e');
    } else if is_double {
        // `add`, `egg` and `off` keep both letters.
        if !matches!(word.as_slice(), [b'a' | b'e' | b'o', _, _]) {
            word.pop();
        }
    } else if regions.first >= word.len() && ends_short(word) {
        word.push(b'e');
    }
}

fn derived(word: &mut Vec<u8>, regions: Regions) {
    if let Some((suffix, by)) = STEP_2.iter().find(|(suffix, _)| word.ends_with(suffix)) {
        let start = word.len() - suffix.len();
        if start >= regions.first {
            replace(word, start, by);
        }
    } else if let Some(start) = ending(word, b"ogi") {
        if start >= regions.first && word.get(..start).is_some_and(|stem| stem.ends_with(b"l")) {
            replace(word, start, b"og");
        }
    } else if let Some(start) = ending(word, b"li") {
        let letter = start.checked_sub(1).and_then(|before| word.get(before));
        let is_valid = letter.is_some_and(|letter| b"cdeghkmnrt".contains(letter));
        if start >= regions.first && is_valid {
            word.truncate(start);
        }
    }

    if let Some((suffix, by)) = STEP_3.iter().find(|(suffix, _)| word.ends_with(suffix)) {
        let start = word.len() - suffix.len();
        if start >= regions.first {
            replace(word, start, by);
        }
    } else if let Some(start) = ending(word, b"ative")
        && start >= regions.second
    {
        word.truncate(start);
    }

    if let Some(suffix) = STEP_4.iter().find(|suffix| word.ends_with(suffix)) {
        let start = word.len() - suffix.len();
        if start >= regions.second {
            word.truncate(start);
        }
    } else if let Some(start) = ending(word, b"ion") {
        let stem = word.get(..start).unwrap_or_default();
        if start >= regions.second && (stem.ends_with(b"s") || stem.ends_with(b"t")) {
            word.truncate(start);
        }
    }
}

fn last_letters(word: &mut Vec<u8>, regions: Regions) {
    if let Some(start) = ending(word, b"e") {
        let stem = word.get(..start).unwrap_or_default();
        if start >= regions.second || (start >= regions.first && !ends_short(stem)) {
            word.truncate(start);
        }
    } else if let Some(start) = ending(word, b"ll")
        && start + 1 >= regions.second
    {
        word.truncate(start + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[track_caller]
    fn check(expected: &str, words: &[&str]) {
        for word in words {
            let mut bytes = word.as_bytes().to_vec();
            stem(&mut bytes);
            assert_eq!(String::from_utf8(bytes).as_deref(), Ok(expected), "{word}");
        }
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        check("creat", &["create", "creates", "created", "creating"]);
        check("repositori", &["repository", "repositories"]);
        check("analyz", &["analyze", "analyzes", "analyzed", "analyzing"]);
        check("file", &["file", "files", "filing"]);
        check("copi", &["copy", "copies", "copied"]);
        check("run", &["run", "runs", "running"]);
        check("hope", &["hope", "hoped", "hoping"]);
        check("hop", &["hop", "hopped", "hopping"]);
        check("add", &["add", "adds", "added", "adding"]);
        check("address", &["address", "addresses"]);
        check("nation", &["national", "nation"]);
        check("general", &["general", "generally"]);
        check("generat", &["generate", "generates", "generator"]);
        check("communiti", &["community"]);
        check("news", &["news"]);
        check("say", &["say", "says"]);
        check("tie", &["tie", "ties", "tied", "tying"]);
        check("agre", &["agree", "agreed"]);
        check("proceed", &["proceed", "proceeded"]);
    }

    #[test]
    fn what_is_no_english_word_stays_as_it_is() {
        for word in ["", "a", "is", "mp3", "12306", "straße", "新闻"] {
            check(word, &[word]);
        }
        check("yyyyy", &["yyyyy"]);
    }
}

//! Any text as an argument, a script, an address, a part of a file, a message: masking ends, keeps what it does not mask
//! (also when it masks again), and hides nothing from a person that could start a command.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_config::mask;
use switchboard_config::redact::Redactor;
use switchboard_config::secret::{MASK, Secret};

fn is_kept(text: &str, shown: &str) -> bool {
    let mut parts = shown.split(MASK);
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

fn active(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|each| matches!(each, ';' | '&' | '|' | '`' | '(' | ')' | '<' | '>' | '\n' | ' '))
}

fuzz_target!(|text: &str| {
    // So that every asterisk in what is shown comes from a mask.
    if text.contains('*') {
        return;
    }
    let ways: [fn(&str) -> String; 5] = [
        |text| mask::argument(text).into_owned(),
        |text| mask::message(text).into_owned(),
        |text| mask::url(text).into_owned(),
        mask::text,
        |text| mask::arguments(&text.split('\n').map(String::from).collect::<Vec<_>>()).join("\n"),
    ];
    for way in ways {
        let shown = way(text);
        assert!(is_kept(text, &shown), "{text:?} {shown:?}");
        let again = way(&shown);
        assert!(is_kept(&shown, &again), "{text:?} {shown:?} {again:?}");
    }
    assert!(active(&mask::argument(text)).eq(active(text)), "{text:?}");
    // A value that is known is shown nowhere.
    if let Some((secret, rest)) = text.split_once('\n') {
        let redactor = Redactor::default();
        redactor.learn(&Secret::new(secret));
        let shown = redactor.redact(rest);
        let is_known = secret.trim().len() >= 8 && secret.trim() != MASK && !secret.contains(['$', '*']);
        assert!(!is_known || !shown.contains(secret.trim()), "{text:?} {shown:?}");
    }
});

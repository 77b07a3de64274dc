//! Any text as a command line: both readings end, and every plain command is among the commands that may run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_config::shell;

fuzz_target!(|data: &[u8]| {
    let Ok(line) = std::str::from_utf8(data) else { return };
    let parts = shell::parts(line);
    for part in &parts.commands {
        let _ = part.texts().count();
    }
    if let Some(prefix) = shell::offered_prefix(line) {
        let plain = shell::plain(line).expect("only plain lines have a beginning that is offered");
        assert!(plain.single().is_some_and(|command| command.begins_with(&prefix)));
        assert!(!shell::may_run_others(&prefix[0]));
    }
    let Some(plain) = shell::plain(line) else { return };
    // What a program that runs others is given is read as a line too, and need not be one.
    let mut words = plain.commands.iter().flat_map(|command| &command.words);
    let runs_others = words.any(|word| shell::may_run_others(&word.text));
    assert!(parts.is_whole || runs_others, "{line:?}: {parts:?}");
    for command in &plain.commands {
        let words = || command.words.iter().map(|word| &word.text);
        let is_same = |part: &shell::Part| part.words.iter().map(|word| &word.text).eq(words());
        assert!(parts.commands.iter().any(is_same), "{command:?} in {parts:?}");
    }
});

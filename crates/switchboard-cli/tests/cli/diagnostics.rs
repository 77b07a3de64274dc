//! The program's own diagnostics: off by default, and never mixed with data.

use crate::support::TestContext;

#[test]
fn diagnostics_go_to_standard_error_if_enabled() {
    let context = TestContext::new();
    let plain = context.line("tools --json");
    assert_eq!((plain.code, plain.stderr.as_str()), (0, ""));
    let check = |filter: &str, is_shown: bool| {
        let run = context.logged(filter, "tools --json");
        assert_eq!((run.code, &run.stdout), (0, &plain.stdout), "{filter}");
        let states = |line: &str| {
            line.contains(
                "DEBUG switchboard::manager: a server has changed its state server=workspace",
            )
        };
        assert_eq!(
            run.stderr.lines().any(states),
            is_shown,
            "{filter}: {}",
            run.stderr
        );
        // No lines of libraries.
        let is_own = |line: &str| {
            line.split_whitespace()
                .nth(2)
                .is_some_and(|part| part.starts_with("switchboard"))
        };
        assert!(run.stderr.lines().all(is_own), "{filter}: {}", run.stderr);
    };
    check("debug", true);
    check("trace", true);
    check("switchboard::manager=debug", true);
    check("debug,switchboard::manager=off", false);
    check("warn", false);
    check("off", false);
    check("", false);
}

#[test]
fn an_invalid_filter_is_reported() {
    let context = TestContext::new();
    let run = context.logged("loud\u{1b}[31m", "version");
    assert_eq!(run.code, 0);
    assert_eq!(
        run.stderr,
        "warning: ignoring unknown directive `loud\\u{1b}[31m` in SWITCHBOARD_LOG\n  hint: error, warn, info, debug, trace or off, or \
         switchboard::manager=debug for one part\n"
    );
}

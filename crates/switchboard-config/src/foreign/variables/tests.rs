//! Tests of every variable syntax, in both directions.

use super::*;

#[test]
fn each_syntax_is_translated_into_ours() {
    let check = |style: Style, text: &str, expected: &str| {
        assert_eq!(
            render(Style::Ours, &parse(style, text)),
            expected,
            "{style:?} {text}"
        );
    };
    let claude = Style::Braces {
        project: Some("CLAUDE_PROJECT_DIR"),
    };
    check(Style::Literal, "${A} $B {env:C}", "$${A} $B {env:C}");
    check(claude, "x${A}y${B:-d e}", "x${A}y${B:-d e}");
    check(claude, "${A-b} ${env:C} $D ${", "$${A-b} $${env:C} $D $${");
    check(
        claude,
        "${CLAUDE_PROJECT_DIR:-.}/x ${CLAUDE_PROJECT_DIR}",
        "${workspaceFolder}/x ${workspaceFolder}",
    );
    check(
        claude,
        "${CLAUDE_PROJECT_DIR:-/tmp}",
        "${CLAUDE_PROJECT_DIR:-/tmp}",
    );
    check(claude, "${home}", "${env:home}");
    check(
        Style::Colon(Colon::Editor),
        "${env:A} ${B} ${workspaceFolder}${/}x",
        "${A} $${B} ${workspaceFolder}/x",
    );
    check(
        Style::Colon(Colon::Editor),
        "${userHome}/.env",
        "${home}/.env",
    );
    check(
        Style::Colon(Colon::Plain),
        "${env:A} ${workspaceFolder} ${input:x}",
        "${A} $${workspaceFolder} $${input:x}",
    );
    check(
        Style::Dollar,
        "$A ${B} $5 a$ ${C:-d}",
        "${A} ${B} $5 a$ ${C:-d}",
    );
    check(Style::Spaced, "$A ${ B } ${C:-d}", "${A} ${B} $${C:-d}");
    check(
        Style::Shell,
        r"\$A $B ${C:?no} ${D:-$E} \\ \n",
        r"$A ${B} ${C} ${D:-${E}} \ \n",
    );
    check(Style::Curly, "{env:A} {B} ${C}", "${A} {B} $${C}");
    check(
        Style::Secrets,
        "${{ secrets.A }} ${{secrets.o/p/B}} ${C}",
        "${A} ${B} $${C}",
    );
}

#[test]
fn our_syntax_is_translated_into_each() {
    let check = |style: Style, text: &str, expected: &str, exact: bool| {
        let pieces = parse(Style::Ours, text);
        assert_eq!(render(style, &pieces), expected, "{style:?} {text}");
        assert_eq!(is_exact(style, &pieces), exact, "{style:?} {text}");
    };
    let kiro = Style::Braces { project: None };
    check(Style::Literal, "$${A} b", "${A} b", true);
    check(Style::Literal, "${A}", "${A}", false);
    check(kiro, "${A} ${B:-c} ${home}", "${A} ${B:-c} ${HOME}", false);
    check(kiro, "${A:-${B}}", "${A:-${B}}", false);
    check(kiro, "$${A}", "${A}", false);
    check(
        Style::Colon(Colon::Editor),
        "${A}${home}${workspaceFolder}",
        "${env:A}${userHome}${workspaceFolder}",
        true,
    );
    check(Style::Colon(Colon::Editor), "${A:-b}", "${env:A}", false);
    check(Style::Dollar, "${A} $B", "${A} $B", false);
    check(Style::Shell, r"$A ${B} \ `x`", r"\$A ${B} \ \`x\`", true);
    check(Style::Curly, "${A} {env:B}", "{env:A} {env:B}", false);
    check(
        Style::Secrets,
        "Bearer ${A}",
        "Bearer ${{ secrets.A }}",
        true,
    );
}

#[test]
fn what_only_the_tool_knows_is_never_text() {
    let check = |style: Style, text: &str, expected: &[Piece]| {
        assert_eq!(parse(style, text), expected, "{style:?} {text}");
    };
    let foreign = |what: Foreign| Piece::Foreign(what);
    let text = |text: &str| Piece::Text(text.into());
    check(
        Style::Shell,
        "a $(cat $(x)) b",
        &[text("a "), foreign(Foreign::Command), text(" b")],
    );
    check(Style::Shell, "$(rm -rf", &[foreign(Foreign::Command)]);
    check(Style::Shell, "$(echo $(id))", &[foreign(Foreign::Command)]);
    check(Style::Shell, "`id`", &[foreign(Foreign::Command)]);
    check(Style::Shell, "${A:-$(id)}", &[foreign(Foreign::Other)]);
    check(Style::Shell, "${A%%x}", &[foreign(Foreign::Other)]);
    check(Style::Curly, "{file:~/t}", &[foreign(Foreign::File)]);
    check(
        Style::Colon(Colon::Editor),
        "${input:a-b}",
        &[foreign(Foreign::Input("a-b".into()))],
    );
    check(
        Style::Colon(Colon::Files),
        "${file:/t}",
        &[foreign(Foreign::File)],
    );
    check(
        Style::Colon(Colon::Plain),
        "${env:A(x)}",
        &[foreign(Foreign::Other)],
    );
}

#[test]
fn long_texts_cost_little() {
    for style in [
        Style::Ours,
        Style::Braces { project: None },
        Style::Colon(Colon::Editor),
        Style::Dollar,
        Style::Shell,
        Style::Curly,
        Style::Secrets,
    ] {
        for part in ["${", "${A:-", "{env:", "${{ secrets.", "$${", "`", "\\"] {
            let text = part.repeat(5_000);
            let pieces = parse(style, &text);
            assert!(!pieces.is_empty(), "{style:?} {part}");
        }
    }
}

#[test]
fn variables_are_named_after_what_they_replace() {
    assert_eq!(variable_name("github-token"), "GITHUB_TOKEN");
    assert_eq!(variable_name("a.b  c"), "A_B_C");
    assert_eq!(variable_name("1st"), "_1ST");
    assert_eq!(variable_name("§"), "VALUE");
}

#[test]
fn no_two_things_share_a_variable() {
    let mut names = Names::default();
    let given = ["A", "A_2", "A", "A", "B"].map(|base| names.unique(base));
    assert_eq!(given, ["A", "A_2", "A_3", "A_4", "B"]);
}

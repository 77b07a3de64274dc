//! Translates permission rules in the notation of Claude Code, `Bash(git status:*)`, into our own.
//!
//! A rule without an equivalent is an error that shows the nearest rule; it never becomes a rule that cannot match.
//! `allow` rules are translated narrowly, `ask` and `deny` rules broadly.

use super::rules::{ArgumentCondition, ArgumentTest};
use crate::entry::Permission;
use crate::shell;
use crate::words;

#[derive(Debug, PartialEq)]
pub(super) struct Translated {
    pub(super) tool: &'static str,
    pub(super) conditions: Vec<ArgumentCondition>,
}

/// A rule without an equivalent: the error, and a hint with the rule to write instead.
#[derive(Debug, PartialEq)]
pub(super) struct Untranslated {
    pub(super) message: String,
    pub(super) hint: String,
    /// The built-in tool that the rule applies to, if any.
    pub(super) tool: Option<&'static str>,
}

/// Splits `Tool(what)`; `None` for a pattern without parentheses.
pub(super) fn split(pattern: &str) -> Option<(&str, &str)> {
    let (tool, what) = pattern.split_once('(')?;
    Some((tool.trim(), what.strip_suffix(')').unwrap_or(what).trim()))
}

/// Translates `Tool(what)`.
pub(super) fn translate(
    tool: &str,
    what: &str,
    action: Permission,
) -> Result<Vec<Translated>, Untranslated> {
    match tool {
        "Bash" => command(what, action).map(|rule| vec![rule]),
        "Read" | "Edit" | "Write" | "Glob" | "Grep" => path(tool, what, action),
        "WebFetch" | "WebSearch" => Err(Untranslated {
            message: format!(
                "rule \"{tool}({what})\" matches no tool: there is no built-in {tool}"
            ),
            hint: format!(
                "for a server's tool write tool = \"mcp__server__fetch\" and arguments = {{ url = {{ host = {} }} }}",
                quoted(what.strip_prefix("domain:").unwrap_or("example.com"))
            ),
            tool: None,
        }),
        _ => Err(Untranslated {
            message: format!(
                "rule \"{tool}({what})\" matches no tool: parentheses are not part of a name"
            ),
            hint: format!(
                "write tool = {} and put the condition into arguments = {{ NAME = {} }}",
                quoted(tool),
                quoted(what)
            ),
            tool: None,
        }),
    }
}

fn command(what: &str, action: Permission) -> Result<Translated, Untranslated> {
    let rule = |conditions| Translated {
        tool: "Bash",
        conditions,
    };
    if matches!(what, "*" | ":*") {
        return Ok(rule(Vec::new()));
    }
    let prefix = what.strip_suffix(":*").or_else(|| what.strip_suffix(" *"));
    let text = prefix.unwrap_or(what).trim();
    let is_glob = text.contains(['*', '?', '[']);
    let words = match prefix {
        None if action == Permission::Allow && !is_glob && !text.is_empty() => {
            return Ok(rule(vec![condition("command", ArgumentTest::Equals, text)]));
        }
        // Denying a command includes further arguments and its use next to other commands.
        _ => shell::literal_words(text).filter(|_| !is_glob),
    };
    let Some(prefix) = words else {
        let end = if prefix.is_some() { "( .*)?" } else { "" };
        let pattern = format!("^{}{end}$", glob(text, ".*", "."));
        return Err(Untranslated {
            message: format!(
                "rule \"Bash({what})\" has no equivalent: `{text}` is not the beginning of one command"
            ),
            hint: format!(
                "write tool = \"Bash\" with command = \"git status\", or arguments = {{ command = {{ matches = {} }} }}",
                quoted(&pattern)
            ),
            tool: Some("Bash"),
        });
    };
    let prefix = words::join(&prefix);
    Ok(rule(vec![condition(
        "command",
        ArgumentTest::Command,
        &prefix,
    )]))
}

fn path(tool: &str, what: &str, action: Permission) -> Result<Vec<Translated>, Untranslated> {
    // Denied reads apply to every tool that reads files.
    let tools: &[(&'static str, &'static str)] = match (tool, action) {
        ("Read", Permission::Allow) => &[("Read", "file_path")],
        ("Read", _) => &[("Read", "file_path"), ("Grep", "path"), ("Glob", "path")],
        ("Edit" | "Write", Permission::Ask | Permission::Deny) => {
            &[("Edit", "file_path"), ("Write", "file_path")]
        }
        ("Edit", _) => &[("Edit", "file_path")],
        ("Write", _) => &[("Write", "file_path")],
        ("Glob", _) => &[("Glob", "path")],
        _ => &[("Grep", "path")],
    };
    let known = tools.first().map(|(tool, _)| *tool);
    let all = |test: Option<(ArgumentTest, &str)>| {
        let rule = |(tool, argument): &(&'static str, &'static str)| {
            let conditions = test.map(|(test, value)| condition(argument, test, value));
            Translated {
                tool,
                conditions: conditions.into_iter().collect(),
            }
        };
        tools.iter().map(rule).collect()
    };
    if matches!(what, "*" | "**" | "/**" | "./**") {
        return match (what, action) {
            ("./**", _) | ("**" | "*", Permission::Allow) => {
                Ok(all(Some((ArgumentTest::Under, "."))))
            }
            _ => Ok(all(None)),
        };
    }
    // `//x` is absolute, `/x` is relative to the project, where the settings are.
    let (folder, is_whole) = match what.strip_suffix("/**").or_else(|| what.strip_suffix("/*")) {
        Some(folder) => (folder, true),
        None => (what, false),
    };
    let is_glob = |text: &str| text.contains(['*', '?', '[', '{', '!']);
    if !is_glob(folder) && !folder.is_empty() {
        let is_one_level = is_whole && what.ends_with("/*") && action == Permission::Allow;
        if !is_one_level {
            let folder = match folder.strip_prefix("//") {
                Some(absolute) => format!("/{absolute}"),
                None => match folder.strip_prefix('/') {
                    Some(inner) => format!("./{inner}"),
                    None => folder.to_owned(),
                },
            };
            return Ok(all(Some((ArgumentTest::Under, &folder))));
        }
    }
    let bare = what
        .trim_start_matches("./")
        .trim_start_matches("~/")
        .trim_start_matches('/');
    if action != Permission::Allow && !bare.is_empty() && !bare.contains(['[', '{', '!']) {
        let pattern = format!("(?i)(^|/){}(/|$)", glob(bare, "[^/]*", "[^/]"));
        return Ok(all(Some((ArgumentTest::Matches, &pattern))));
    }
    Err(Untranslated {
        message: format!(
            "rule \"{tool}({what})\" has no equivalent: a glob cannot say which paths may be used"
        ),
        hint: format!(
            "write tool = {} with arguments = {{ {} = {{ under = \"src\" }} }}",
            quoted(tool),
            tools.first().map_or("file_path", |(_, argument)| argument)
        ),
        tool: known,
    })
}

fn condition(argument: &str, test: ArgumentTest, value: &str) -> ArgumentCondition {
    ArgumentCondition {
        argument: argument.to_owned(),
        test,
        value: value.to_owned(),
    }
}

/// Converts a glob to a regular expression, for a condition that users read; the one of `globset` is not meant to be read.
fn glob(pattern: &str, star: &str, one: &str) -> String {
    let mut shown = String::new();
    let mut rest = pattern;
    while let Some(character) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            shown.push_str("(.*/)?");
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("**") {
            shown.push_str(".*");
            rest = after;
            continue;
        }
        match character {
            '*' => shown.push_str(star),
            '?' => shown.push_str(one),
            '.' | '+' | '(' | ')' | '|' | '^' | '$' | '\\' | '[' | ']' | '{' | '}' => {
                shown.push('\\');
                shown.push(character);
            }
            other => shown.push(other),
        }
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    shown
}

/// Quotes a text as TOML, for a hint.
fn quoted(text: &str) -> String {
    if text.contains(['\'', '\n']) {
        format!("{text:?}")
    } else {
        format!("'{text}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules in short form: `tool argument test value`.
    fn shown(pattern: &str, action: Permission) -> Result<Vec<String>, String> {
        let (tool, what) = split(pattern).expect(pattern);
        let rules = translate(tool, what, action).map_err(|error| error.hint)?;
        let shown = rules.iter().map(|rule| match &*rule.conditions {
            [] => rule.tool.to_owned(),
            [condition] => {
                let (argument, test) = (&condition.argument, condition.test.name());
                format!("{} {argument} {test} {}", rule.tool, condition.value)
            }
            more => panic!("{more:?}"),
        });
        Ok(shown.collect())
    }

    #[test]
    fn rules_are_translated() {
        use Permission::{Allow, Deny};
        let check = |pattern: &str, action, expected: &[&str]| {
            assert_eq!(
                shown(pattern, action).as_deref(),
                Ok(&expected.iter().map(ToString::to_string).collect::<Vec<_>>()[..]),
                "{pattern}"
            );
        };
        check("Bash(rm:*)", Deny, &["Bash command command rm"]);
        check(
            "Bash(git status:*)",
            Allow,
            &["Bash command command git status"],
        );
        check("Bash(npm run *)", Allow, &["Bash command command npm run"]);
        check(
            "Bash(git status)",
            Allow,
            &["Bash command equals git status"],
        );
        check("Bash(git push)", Deny, &["Bash command command git push"]);
        check("Bash(*)", Deny, &["Bash"]);
        check(
            "Read(./secrets/**)",
            Deny,
            &[
                "Read file_path under ./secrets",
                "Grep path under ./secrets",
                "Glob path under ./secrets",
            ],
        );
        check(
            "Read(~/.ssh/**)",
            Deny,
            &[
                "Read file_path under ~/.ssh",
                "Grep path under ~/.ssh",
                "Glob path under ~/.ssh",
            ],
        );
        check(
            "Read(//etc/passwd)",
            Allow,
            &["Read file_path under /etc/passwd"],
        );
        check("Edit(/src/**)", Allow, &["Edit file_path under ./src"]);
        check(
            "Edit(src/**)",
            Deny,
            &["Edit file_path under src", "Write file_path under src"],
        );
        check("Glob(*)", Deny, &["Glob"]);
        check("Grep(**)", Allow, &["Grep path under ."]);
        check(
            "Write(**/.env)",
            Deny,
            &[
                r"Edit file_path matches (?i)(^|/)(.*/)?\.env(/|$)",
                r"Write file_path matches (?i)(^|/)(.*/)?\.env(/|$)",
            ],
        );
    }

    #[test]
    fn what_has_no_equivalent_is_shown_one() {
        use Permission::{Allow, Deny};
        for (pattern, action, expected) in [
            ("Bash(git * main)", Allow, r"matches = '^git .* main$'"),
            ("Bash(a; b:*)", Deny, "command = \"git status\""),
            ("Bash()", Allow, "command = \"git status\""),
            ("Bash(:*x)", Allow, "matches"),
            ("Read(**/*.rs)", Allow, "under = \"src\""),
            ("Edit(src/*)", Allow, "under = \"src\""),
            (
                "WebFetch(domain:example.com)",
                Allow,
                "host = 'example.com'",
            ),
            ("mcp__github__get(x)", Allow, "tool = 'mcp__github__get'"),
            ("Foo(bar", Deny, "tool = 'Foo'"),
        ] {
            let hint = shown(pattern, action).expect_err(pattern);
            assert!(hint.contains(expected), "{pattern}: {hint}");
        }
    }
}

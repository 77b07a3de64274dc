//! Malformed configurations: each error is reported with file, line and remedy, and affects nothing else.

use std::path::Path;

use crate::support::{EMBEDDED, TestContext, named};

/// An error in one file.
struct Case {
    about: &'static str,
    file: &'static str,
    text: &'static [u8],
    /// The exit code of `config check`.
    code: i32,
    /// `line:column` of the diagnostic.
    place: &'static str,
    /// A part of the message.
    says: &'static str,
    /// A part of the remedy.
    remedy: &'static str,
}

const USER_TOML: &str = "config/mcp.toml";
const USER_JSON: &str = "config/mcp.json";
const USER_HCL: &str = "config/mcp.hcl";
const MANAGED: &str = "managed.toml";

const ERROR: i32 = 3;
const WARNING: i32 = 0;

const fn case(
    about: &'static str,
    file: &'static str,
    text: &'static str,
    code: i32,
    place: &'static str,
    says: &'static str,
    remedy: &'static str,
) -> Case {
    Case {
        about,
        file,
        text: text.as_bytes(),
        code,
        place,
        says,
        remedy,
    }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Syntax.
    case("unclosed TOML array", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"y\"\n", ERROR, "", "", "hint:"),
    case("TOML without a value", USER_TOML, "[mcp_servers.a]\ncommand =\n", ERROR, "2:", "", "hint:"),
    case("TOML with a bare word", USER_TOML, "[mcp_servers.a]\ncommand = npx\n", ERROR, "2:", "", "hint:"),
    case("TOML table twice", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.a]\ncommand = \"y\"\n", ERROR, "3:", "", "hint:"),
    case("TOML key twice", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\ncommand = \"y\"\n", ERROR, "3:", "", "hint:"),
    case("unclosed JSON object", USER_JSON, "{\"mcpServers\": {\n \"a\": {\"command\": \"x\"}\n", ERROR, "", "", "hint:"),
    case("JSON with a stray word", USER_JSON, "{\"mcpServers\": {\n \"a\": nonsense\n}}", ERROR, "2:", "", "hint:"),
    case("JSON name twice", USER_JSON, "{\"mcpServers\": {\n\"a\": {\"command\": \"x\"},\n\"a\": {\"command\": \"y\"}}}", ERROR, "3:1", "twice", "remove or rename"),
    case("unclosed HCL block", USER_HCL, "mcp_servers \"a\" {\n  command = \"x\"\n", ERROR, "", "", "hint:"),
    case("HCL with an expression", USER_HCL, "mcp_servers \"a\" {\n  command = 1 + 1\n}\n", ERROR, "2:", "", "hint:"),
    // Types.
    case("command is a number", USER_TOML, "[mcp_servers.a]\ncommand = 7\n", ERROR, "2:11", "`command` must be a string, but is an integer", "put it in quotes"),
    case("args is a text", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nargs = \"y\"\n", ERROR, "3:8", "`args` must be a list of strings", "write [\"y\"]"),
    case("args has a number", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"y\", 7]\n", ERROR, "3:14", "`args[1]` must be a string", "put it in quotes"),
    case("env is a list", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nenv = [\"A=b\"]\n", ERROR, "3:7", "`env` must be a table of strings", "NAME = \"value\""),
    case("env value is a number", USER_JSON, "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"env\": {\"PORT\": 80}}}}", ERROR, "2:17", "`env.PORT` must be a string", "put it in quotes"),
    case("enabled is a text", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nenabled = \"yes\"\n", ERROR, "3:11", "`enabled` must be true or false", "without quotes"),
    case("a server is a text", USER_JSON, "{\"mcpServers\": {\n\"a\": \"npx\"}}", ERROR, "2:6", "`a` must be a table", "write \"a\": {"),
    case("servers are a text", USER_TOML, "mcp_servers = \"none\"\n", ERROR, "1:15", "must be a table", "write"),
    case("the file is a list", USER_JSON, "[1, 2]", ERROR, "1:1", "must hold a table, but holds an array", "start it with `{`"),
    case("a list of servers with no name", USER_TOML, "[[mcp_servers]]\ncommand = \"x\"\n", ERROR, "", "needs a `name`", "add name"),
    case("oauth is a list", USER_TOML, "[mcp_servers.a]\nurl = \"https://a.example\"\noauth = [1]\n", ERROR, "3:9", "`oauth` must be a table", "write oauth"),
    // Values.
    case("zero deadline", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\ntool_timeout_sec = 0\n", ERROR, "3:20", "above zero", "positive number"),
    case("negative deadline", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nstartup_timeout_sec = -1\n", ERROR, "3:23", "above zero", "positive number"),
    case("unknown transport", USER_TOML, "[mcp_servers.a]\ntransport = \"htpp\"\nurl = \"https://a.example\"\n", ERROR, "2:13", "`transport` cannot be \"htpp\"", "did you mean \"http\"?"),
    case("unknown sandbox", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nsandbox = \"strict\"\n", ERROR, "3:11", "`sandbox` cannot be", "off, own-files, workspace, read-only"),
    case("invalid header name", USER_TOML, "[mcp_servers.a]\nurl = \"https://a.example\"\nheaders = { \"bad name\" = \"x\" }\n", ERROR, "3:13", "invalid name \"bad name\"", "letters, digits and dashes"),
    case("line break in a header", USER_TOML, "[mcp_servers.a]\nurl = \"https://a.example\"\nheaders = { X = \"a\\nb\" }\n", ERROR, "3:13", "line break", "on one line"),
    case("NUL in a command", USER_JSON, "{\"mcpServers\": {\"a\": {\n\"command\": \"x\\u0000y\"}}}", ERROR, "2:12", "NUL", "remove it"),
    case("address without a scheme", USER_TOML, "[mcp_servers.a]\nurl = \"a.example/mcp\"\n", ERROR, "2:7", "`url` must start with", "whole address"),
    case("empty command", USER_TOML, "[mcp_servers.a]\ncommand = \"\"\n", ERROR, "2:11", "`command` must not be empty", "name the program"),
    case("port out of range", USER_TOML, "[mcp_servers.a]\nurl = \"https://a.example\"\noauth = { callback_port = 70000 }\n", ERROR, "3:27", "port from 1 to 65535", "port number"),
    case("empty server name", USER_JSON, "{\"mcpServers\": {\n\"\": {\"command\": \"x\"}}}", ERROR, "2:1", "is empty", "rename the server"),
    case("hidden character in a name", USER_JSON, "{\"mcpServers\": {\n\"a\\u202eb\": {\"command\": \"x\"}}}", ERROR, "2:1", "invisible character", "rename the server"),
    // Entries as a whole.
    case("neither command nor url", USER_TOML, "[mcp_servers.a]\nenabled = true\n", ERROR, "1:14", "neither `command` nor `url`", "add `command`"),
    case("both command and url", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nurl = \"https://a.example\"\n", ERROR, "3:7", "both `command` and `url`", "keep one"),
    case("stdio without a command", USER_TOML, "[mcp_servers.a]\ntransport = \"stdio\"\nurl = \"https://a.example\"\n", ERROR, "", "needs `command`", "add command"),
    case("one thing said twice", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nprogram = \"y\"\n", ERROR, "3:1", "repeats the key on line 2", "keep one"),
    // References.
    case("missing variable", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"${NOT_SET}\"]\n", ERROR, "3:10", "`NOT_SET` is not set", "set NOT_SET"),
    case("unclosed reference", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"${OPEN\"]\n", ERROR, "3:10", "not closed", "close it with `}`"),
    case("reference that is none", USER_TOML, "[mcp_servers.a]\nurl = \"https://a.example/${not a name}\"\n", ERROR, "2:26", "is not a variable", "write ${VAR}"),
    case("variable missing far below its key", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.a.env]\nA = \"1\"\nB = \"${NOT_SET}\"\n", ERROR, "5:6", "`NOT_SET` is not set", "set NOT_SET"),
    case("a variable leaves nothing", USER_TOML, "[mcp_servers.a]\ncommand = \"${NOT_SET:-}\"\n", ERROR, "2:11", "`command` must not be empty", "name the program"),
    case("no host", USER_TOML, "[mcp_servers.a]\nurl = \"https://\"\n", ERROR, "2:7", "empty host", "write the whole address"),
    // Other tables.
    case("unknown setting value", USER_TOML, "[settings]\nlocal_connections = 0\n", ERROR, "2:21", "whole number above zero", "such as 5"),
    case("unknown rule action", USER_TOML, "[[permissions.rules]]\ntool = \"mcp__a__*\"\naction = \"alow\"\n", ERROR, "3:10", "`action` cannot be \"alow\"", "did you mean \"allow\"?"),
    case("rule without a tool", USER_TOML, "[[permissions.rules]]\naction = \"allow\"\n", ERROR, "1:", "needs `tool`", "add tool"),
    case("hook without a command", USER_TOML, "[[hooks]]\nevent = \"PreToolUse\"\n", ERROR, "1:", "needs `command`", "add command"),
    case("bad pattern", USER_TOML, "[security]\nmcp_server_denylist = [\"[\"]\n", ERROR, "2:24", "invalid pattern", "write a glob"),
    case("provider that looks local", USER_TOML, "[cloud]\nurl = \"http://localhost.evil.example/\"\n", ERROR, "2:7", "must be an https address", "write https://"),
    case("provider without https", USER_TOML, "[cloud]\nurl = \"http://a.example/servers\"\n", ERROR, "2:7", "must be an https address", "write https://"),
    // Only odd.
    case("unknown key", USER_TOML, "[mcp_servers.a]\ncommand = \"x\"\nenabeld = true\n", WARNING, "3:1", "unknown key `enabeld`", "did you mean `enabled`?"),
    case("arguments in the command", USER_TOML, "[mcp_servers.a]\ncommand = \"npx -y x\"\n", WARNING, "2:11", "contains a space", "list the rest in `args`"),
    case("unknown table", USER_TOML, "[setings]\nx = 1\n", WARNING, "1:2", "unknown key `setings`", "did you mean `settings`?"),
    case("key without effect", USER_TOML, "[mcp_servers.a]\nurl = \"https://a.example\"\nargs = [\"x\"]\n", WARNING, "3:8", "no effect", "remove it"),
    case("approval in a file", USER_JSON, "{\"mcpServers\": {\"a\": {\"command\": \"x\",\n\"autoApprove\": [\"t\"]}}}", WARNING, "2:1", "cannot approve its own calls", "permissions.rules"),
    // The enterprise file.
    case("unknown enterprise mode", MANAGED, "mode = \"relaxed\"\n[mcp_servers.healthy]\ncommand = \"npx\"\n", ERROR, "1:8", "`mode` cannot be \"relaxed\"", "exclusive, merge"),
];

#[test]
fn each_mistake_is_named_and_stops_nothing_else() {
    assert!(CASES.len() >= 40);
    for case in CASES {
        let context = TestContext::new();
        context.write(case.file, case.text);
        healthy_beside(&context, case.file);
        check(&context, case.about, &context.path(case.file), case);
    }
}

/// Adds a valid server in another file, if the case allows one.
fn healthy_beside(context: &TestContext, file: &str) {
    let healthy = match file {
        USER_TOML => USER_JSON,
        MANAGED => return,
        _ => USER_TOML,
    };
    let text = if healthy == USER_JSON {
        "{\"mcpServers\": {\"healthy\": {\"command\": \"npx\"}}}"
    } else {
        "[mcp_servers.healthy]\ncommand = \"npx\"\n"
    };
    context.write(healthy, text);
}

fn check(context: &TestContext, about: &str, path: &Path, case: &Case) {
    let checked = context.run(&["config", "check"]);
    assert_eq!(checked.code, case.code, "{about}\n{}", checked.all());
    let place = format!("{}:{}", path.display(), case.place);
    for expected in [place.as_str(), case.says, case.remedy] {
        assert!(
            checked.stdout.contains(expected),
            "{about}: {expected:?}\n{}",
            checked.stdout
        );
    }
    let position = checked
        .stdout
        .split(&format!("{}:", path.display()))
        .nth(1)
        .unwrap();
    let numbers = position.lines().next().unwrap().split(':').take(2);
    assert!(
        numbers.clone().count() == 2
            && numbers
                .clone()
                .all(|number| number.parse::<usize>().is_ok()),
        "{about}\n{}",
        checked.stdout
    );

    let findings: serde_json::Value =
        serde_json::from_str(&context.run(&["config", "check", "--json"]).stdout).unwrap();
    let finding = &findings[0];
    assert_eq!(finding["file"], path.display().to_string(), "{about}");
    assert!(
        finding["line"].as_u64() >= Some(1) && finding["hint"].is_string(),
        "{about}\n{findings}"
    );

    let listed = context.run(&["mcp", "list", "--no-connect", "--json"]);
    assert_eq!(listed.code, 0, "{about}\n{}", listed.all());
    assert!(
        listed.stderr.contains("warning:"),
        "{about}\n{}",
        listed.stderr
    );
    assert!(
        listed.stderr.contains(&path.display().to_string()),
        "{about}\n{}",
        listed.stderr
    );
    let servers = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(
        named(&servers, "healthy")["state"],
        "ready",
        "{about}\n{servers}"
    );
    // Commands that change nothing first, then one that changes another file.
    for line in [
        "config show",
        "config path",
        "mcp get healthy",
        "trust list",
        "trust diff",
        "tools",
        "mcp import --dry-run --scope local",
        "mcp add --scope local added -- npx",
    ] {
        let run = context.line(line);
        // An exclusive enterprise file leaves the added entry without effect.
        assert_eq!(run.code, 0, "{about}: {line}\n{}", run.all());
        let warned =
            run.stderr.contains("warning:") && run.stderr.contains(&path.display().to_string());
        assert!(warned, "{about}: {line}\n{}", run.stderr);
    }
    for shown in [&checked.stdout, &listed.stderr] {
        assert!(
            !shown.contains(['\0', '\u{202e}']),
            "{about}: a hidden character was shown as it is"
        );
    }
}

/// Files that are not readable text, prepared by the test.
fn check_file(
    about: &'static str,
    file: &'static str,
    place: &'static str,
    says: &'static str,
    remedy: &'static str,
    make: impl FnOnce(&TestContext, &Path),
) {
    let context = TestContext::new();
    healthy_beside(&context, file);
    let path = context.path(file);
    make(&context, &path);
    check(
        &context,
        about,
        &path,
        &case(about, file, "", ERROR, place, says, remedy),
    );
}

#[test]
fn files_that_are_not_text_are_named_and_stop_nothing_else() {
    check_file(
        "not UTF-8",
        USER_JSON,
        "2:3",
        "not UTF-8",
        "save it as UTF-8",
        |_, path| {
            std::fs::write(path, b"{\n  \xff\xfe}").unwrap();
        },
    );
    check_file(
        "larger than 16 MiB",
        USER_JSON,
        "1:1",
        "at most 16777216",
        "split the file",
        |_, path| {
            let file = std::fs::File::create(path).unwrap();
            file.set_len(17 * 1024 * 1024).unwrap();
        },
    );
    check_file(
        "a folder in place of a file",
        USER_JSON,
        "1:1",
        "not a regular file",
        "move it",
        |_, path| {
            std::fs::create_dir(path).unwrap();
        },
    );
    check_file("nested too deep", USER_JSON, "", "", "hint:", |_, path| {
        let depth = 100_000;
        let text = format!(
            "{{\"mcpServers\": {}{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        );
        std::fs::write(path, text).unwrap();
    });
}

#[cfg(unix)]
#[test]
fn files_that_are_links_pipes_or_forbidden_are_named_and_stop_nothing_else() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    check_file(
        "loop of links",
        USER_JSON,
        "1:1",
        "loop",
        "replace the link",
        |_, path| {
            symlink(path, path).unwrap();
        },
    );
    check_file(
        "link to nothing",
        USER_JSON,
        "1:1",
        "does not exist",
        "check the file",
        |context, path| {
            symlink(context.path("nowhere.json"), path).unwrap();
        },
    );
    check_file(
        "project's link that leads out",
        "project/.mcp.json",
        "1:1",
        "outside of the project",
        "replace the link",
        |context, path| {
            context.write(
                "home/secrets.json",
                "{\"mcpServers\": {\"stolen\": {\"command\": \"x\"}}}",
            );
            symlink(context.path("home/secrets.json"), path).unwrap();
        },
    );
    check_file(
        "pipe",
        USER_JSON,
        "1:1",
        "not a regular file",
        "move it",
        |_, path| {
            let made = std::process::Command::new("mkfifo")
                .arg(path)
                .status()
                .unwrap();
            assert!(made.success());
        },
    );
    let probe = TestContext::new();
    probe.write("probe", "");
    std::fs::set_permissions(probe.path("probe"), PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::read(probe.path("probe")).is_ok() {
        let what = "files that may not be read, because this user may read every file";
        switchboard_test::skipped::skipped(what);
        return;
    }
    check_file(
        "no permission",
        USER_JSON,
        "1:1",
        "permission denied",
        "readable",
        |_, path| {
            std::fs::write(path, "{}").unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o000)).unwrap();
        },
    );
}

#[test]
fn empty_files_byte_order_marks_and_line_endings_are_valid() {
    for (file, text) in [
        (USER_TOML, ""),
        (USER_JSON, ""),
        (USER_JSON, "  \n"),
        (USER_HCL, ""),
        (USER_TOML, "\u{feff}[mcp_servers.a]\ncommand = \"x\"\n"),
        (
            USER_JSON,
            "\u{feff}{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}",
        ),
        (USER_TOML, "[mcp_servers.a]\r\ncommand = \"x\"\r\n"),
        (
            USER_JSON,
            "{ // a comment\r\n\"mcpServers\": {\"a\": {\"command\": \"x\",},},}\r\n",
        ),
        (
            USER_HCL,
            "mcp_servers \"a\" {\r\n  command = \"x\"\r\n}\r\n",
        ),
    ] {
        let context = TestContext::new();
        context.write(file, text);
        let run = context.run(&["config", "check"]);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{file}: {text:?}");
    }
}

#[test]
fn a_broken_enterprise_file_keeps_everything_else_out() {
    let context = TestContext::new();
    context.write(MANAGED, "mode = \"merge\"\n[mcp_servers\n");
    context.write(USER_TOML, "[mcp_servers.mine]\ncommand = \"npx\"\n");
    let run = context.line("mcp list --no-connect --json");
    assert_eq!(run.server_names(), EMBEDDED);
    assert_eq!(context.run(&["config", "check"]).code, 3);
}

#[test]
fn a_file_named_by_hand_must_exist() {
    let context = TestContext::new();
    let run = context.run(&["--config", "nowhere.toml", "config", "check"]);
    assert_eq!(run.code, 3);
    assert!(
        run.stdout.contains("check the path given to --config"),
        "{}",
        run.stdout
    );
}

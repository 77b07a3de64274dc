//! `doctor`: diagnosis of a server's environment, and repairs on request.

use serde_json::Value;

use crate::servers::{PYTHON, log, machine, script};
use crate::support::{Run, TestContext};

const PACKAGE: &str = "@modelcontextprotocol/server-everything";
/// The folder in which npm 10 installs the package.
const FOLDER: &str = "cache/_npx/5b2dd62b9d0bddd4";

/// Adds a program to the `PATH` of the tests.
fn program(context: &TestContext, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    context.write(&format!("bin/{name}"), script);
    let path = context.path(&format!("bin/{name}"));
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A machine with a server run by npx. Its npx fails with this message while the package's folder exists, and starts
/// the test server otherwise.
fn machine_with_npx(message: &str) -> TestContext {
    let context = machine(&[]);
    let folder = context.path(FOLDER);
    let script = format!(
        "#!/bin/sh\nif [ -e {:?} ]; then\n  echo \"{message}\" >&2\n  exit 1\nfi\nexec {:?} {:?} {:?}\n",
        folder.display().to_string(),
        *PYTHON,
        script().display().to_string(),
        log(&context, "everything").display().to_string(),
    );
    program(&context, "npx", &script);
    context.write(
        "config/mcp.toml",
        format!("[mcp_servers.everything]\ncommand = \"npx\"\nargs = [\"-y\", \"{PACKAGE}\"]\n"),
    );
    for (file, text) in [
        (
            "package.json",
            format!("{{\"dependencies\":{{\"{PACKAGE}\":\"^1\"}}}}"),
        ),
        (
            &*format!("node_modules/{PACKAGE}/package.json"),
            "{\"bin\":{\"mcp-server-everything\":\"dist/index.js\"}}".to_owned(),
        ),
        ("node_modules/.bin/mcp-server-everything", String::new()),
    ] {
        context.write(&format!("{FOLDER}/{file}"), text);
    }
    context.write("cache/_npx/0123456789abcdef/package.json", "{}");
    context
}

fn doctor(context: &TestContext, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let mut command = context.command();
    command
        .env("npm_config_cache", context.path("cache"))
        .envs(variables.iter().copied())
        .arg("doctor")
        .args(arguments);
    Run::of(&command.output().unwrap())
}

/// The only server in a run's JSON document.
fn patient(run: &Run) -> Value {
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(document.as_array().unwrap().len(), 1, "{document}");
    document[0].clone()
}

fn finding<'v>(patient: &'v Value, code: &str) -> &'v Value {
    let mut findings = patient["findings"].as_array().unwrap().iter();
    findings
        .find(|finding| finding["code"] == code)
        .unwrap_or(&Value::Null)
}

#[test]
fn a_broken_npx_install_is_recognized_and_repaired_on_request() {
    let context = machine_with_npx("npm error code ENOTEMPTY");
    let outside = context.path("outside");
    context.write("outside/file", "");
    std::os::unix::fs::symlink(&outside, context.path(&format!("{FOLDER}/link"))).unwrap();

    // Without --repair it is only reported.
    let run = doctor(&context, &[], &["--json"]);
    assert_eq!(run.code, 4, "{}", run.all());
    let server = patient(&run);
    let broken = finding(&server, "npx-cache-broken");
    let remedy = broken["remedy"].as_str().unwrap();
    let folder = context.path(FOLDER).display().to_string();
    assert!(remedy.contains("doctor everything --repair"), "{server}");
    assert!(remedy.contains(&folder), "{remedy}");
    assert!(
        broken["what"].as_str().unwrap().contains(PACKAGE),
        "{server}"
    );
    assert_eq!(
        server["repairs"],
        serde_json::json!([{"remove": folder, "done": false, "error": null}])
    );
    assert!(context.exists(FOLDER));

    let run = doctor(&context, &[], &["everything", "--repair"]);
    assert_eq!(run.code, 0, "{}", run.all());
    assert!(
        run.stderr.contains(&format!("removed {folder}")),
        "{}",
        run.all()
    );
    assert!(run.stdout.contains("✓ tools/list"), "{}", run.all());
    assert!(!context.exists(FOLDER));
    assert!(context.exists("cache/_npx/0123456789abcdef/package.json"));
    assert!(context.exists("outside/file"));

    // Nothing is removed if nothing is broken.
    let run = doctor(&context, &[], &["--repair", "--json"]);
    assert_eq!(run.code, 0, "{}", run.all());
    assert_eq!(patient(&run)["repairs"], serde_json::json!([]));
    assert!(run.stderr.contains("nothing to repair"), "{}", run.stderr);
}

#[test]
fn signs_of_a_broken_install_are_read_from_the_log_and_from_the_folder() {
    let leftover =
        format!("{FOLDER}/node_modules/@modelcontextprotocol/.server-everything-a1B2c3D4/x");
    let bin = format!("{FOLDER}/node_modules/.bin/mcp-server-everything");
    let npx_path = "Error: Cannot find module '/x/_npx/5b2dd62b9d0bddd4/node_modules/zod/index.js'";
    let no_program = "sh: 1: mcp-server-everything: not found";
    let no_token = "Error: EVERYTHING_URL is not set";
    for (message, damage, expected) in [
        (npx_path, None, "npx-cache-broken"),
        (no_program, Some("bin"), "npx-cache-broken"),
        (no_program, None, "inner-program-not-found"),
        ("gave up", Some("leftover"), "npx-cache-broken"),
        ("gave up", None, "exited-early"),
        (no_token, Some("leftover"), "variable-missing"),
        (
            "Error: Cannot find module './own.js'",
            None,
            "module-missing",
        ),
    ] {
        let context = machine_with_npx(message);
        match damage {
            Some("bin") => std::fs::remove_file(context.path(&bin)).unwrap(),
            Some(_) => context.write(&leftover, ""),
            None => {}
        }
        let run = doctor(&context, &[], &["--json"]);
        let server = patient(&run);
        assert_eq!(
            server["findings"][0]["code"], expected,
            "{message}\n{server}"
        );
        let repairs = server["repairs"].as_array().unwrap();
        assert_eq!(
            repairs.len(),
            usize::from(expected == "npx-cache-broken"),
            "{server}"
        );
    }
}

#[test]
fn two_servers_of_one_package_are_repaired_at_once() {
    let context = machine_with_npx("npm error code ENOTEMPTY");
    let entry = context.read("config/mcp.toml");
    let other = entry
        .replace("mcp_servers.everything", "mcp_servers.other")
        .replace("\"]", "\", \"stdio\"]");
    context.write("config/mcp.toml", entry + &other);
    let run = doctor(&context, &[], &["--repair", "--json"]);
    assert_eq!(run.code, 0, "{}", run.all());
    assert_eq!(run.stderr.matches("removed ").count(), 1, "{}", run.stderr);
    let servers: Value = serde_json::from_str(&run.stdout).unwrap();
    for server in servers.as_array().unwrap() {
        assert_eq!(server["repairs"][0]["done"], true, "{server}");
        assert_eq!(
            finding(server, "npx-cache-broken"),
            &Value::Null,
            "{server}"
        );
    }
}

#[test]
fn a_folder_that_is_a_link_is_not_removed() {
    let context = machine_with_npx("npm error code ENOTEMPTY");
    std::fs::rename(context.path("cache/_npx"), context.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(context.path("elsewhere"), context.path("cache/_npx")).unwrap();
    let run = doctor(&context, &[], &["--repair"]);
    assert_eq!(run.code, 4, "{}", run.all());
    assert!(run.stderr.contains("cannot remove"), "{}", run.stderr);
    assert!(context.exists("elsewhere/5b2dd62b9d0bddd4/package.json"));
}

/// A machine with a server that prints this and exits.
fn machine_that_says(message: &str, keys: &str) -> TestContext {
    let context = machine(&[]);
    program(
        &context,
        "npx",
        &format!("#!/bin/sh\necho \"{message}\" >&2\nexit 1\n"),
    );
    context.write(
        "config/mcp.toml",
        format!(
            "[mcp_servers.github]\ncommand = \"npx\"\nargs = [\"-y\", \"some-server\"]\n{keys}"
        ),
    );
    context
}

const SHELL: &[(&str, &str)] = &[
    ("GITHUB_TOKEN", "ghp_neverprinted1"),
    ("NPM_CONFIG__AUTH", "neverprinted2"),
    ("UV_INDEX_COMPANY_PASSWORD", "neverprinted3"),
    (
        "PIP_INDEX_URL",
        "https://ann:neverprinted4@pypi.example/simple",
    ),
    ("SLACK_TOKEN", "neverprinted5"),
    ("EDITOR", "neverprinted6"),
];

#[test]
fn a_variable_that_a_server_misses_is_named_with_the_line_to_add() {
    let context = machine_that_says("Error: GITHUB_TOKEN is not set", "env_vars = [\"OTHER\"]\n");
    let run = doctor(&context, SHELL, &["--json"]);
    let server = patient(&run);
    let remedy = finding(&server, "variable-missing")["remedy"]
        .as_str()
        .unwrap();
    assert!(
        remedy.contains("GITHUB_TOKEN is set in your shell"),
        "{remedy}"
    );
    assert!(remedy.contains("[mcp_servers.github]"), "{remedy}");
    assert!(
        remedy.ends_with("env_vars = [\"OTHER\", \"GITHUB_TOKEN\"]"),
        "{remedy}"
    );
    assert!(!run.all().contains("neverprinted"), "{}", run.all());

    let run = doctor(&context, &[], &["--json"]);
    let server = patient(&run);
    let remedy = finding(&server, "variable-missing")["remedy"]
        .as_str()
        .unwrap();
    assert!(
        remedy.contains("GITHUB_TOKEN is unset or empty where Switchboard was started"),
        "{remedy}"
    );
}

#[test]
fn variables_that_a_failed_server_may_miss_are_named_without_their_values() {
    let context = machine_that_says("gave up", "");
    let run = doctor(&context, SHELL, &["--json"]);
    let server = patient(&run);
    assert_eq!(
        finding(&server, "variables-withheld")["why"],
        "set in your shell, but not passed to servers: GITHUB_TOKEN, NPM_CONFIG__AUTH, \
         PIP_INDEX_URL, SLACK_TOKEN, UV_INDEX_COMPANY_PASSWORD",
    );
    assert!(!run.all().contains("neverprinted"), "{}", run.all());
    let text = doctor(&context, SHELL, &[]);
    assert!(
        text.stdout.contains("GITHUB_TOKEN, NPM_CONFIG__AUTH"),
        "{}",
        text.stdout
    );
    assert!(!text.all().contains("neverprinted"), "{}", text.all());

    // Variables that the entry lists or sets are not withheld.
    let context = machine_that_says(
        "gave up",
        "env_vars = [\"NPM_CONFIG__AUTH\", \"SLACK_TOKEN\", \"UV_INDEX_COMPANY_PASSWORD\"]\n\
         env = { PIP_INDEX_URL = \"https://pypi.example\", GITHUB_PERSONAL_ACCESS_TOKEN = \"${GITHUB_TOKEN}\" }\n",
    );
    let server = patient(&doctor(&context, SHELL, &["--json"]));
    assert_eq!(
        finding(&server, "variables-withheld"),
        &Value::Null,
        "{server}"
    );
}

#[test]
fn a_working_server_gets_a_note_only_about_its_own_credentials() {
    let context = machine(&[("slack", ""), ("time", "")]);
    let run = doctor(&context, SHELL, &["--json"]);
    assert_eq!(run.code, 0, "{}", run.all());
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let servers = document.as_array().unwrap();
    let of = |name: &str| {
        servers
            .iter()
            .find(|server| server["server"] == name)
            .unwrap()
    };
    let why = finding(of("slack"), "variables-withheld")["why"]
        .as_str()
        .unwrap();
    assert!(why.ends_with(": SLACK_TOKEN"), "{why}");
    assert_eq!(finding(of("time"), "variables-withheld"), &Value::Null);
    assert!(!run.all().contains("neverprinted"), "{}", run.all());
}

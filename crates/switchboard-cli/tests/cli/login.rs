//! `mcp login` and `mcp logout`, with a scripted authorization server, browser and user.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use switchboard_test::authorization::{AuthorizationServer, Consent, Script, fetch, leads_to};
use switchboard_test::skipped::skipped;

use crate::state::{run_under, set_mode, without_privileges, works};
use crate::support::{Run, TestContext};

/// A machine with one server that requires a login.
struct Machine {
    context: TestContext,
    server: AuthorizationServer,
}

impl Machine {
    fn new(script: Script) -> Self {
        let context = TestContext::new();
        let server = AuthorizationServer::start(Script {
            login_lifetime: 3600,
            renewed_lifetime: 3600,
            ..script
        });
        let entry = format!("[mcp_servers.guarded]\nurl = \"{}\"\n", server.url());
        context.write("config/mcp.toml", entry);
        Self { context, server }
    }

    fn consenting(consent: Consent) -> Self {
        Self::new(Script {
            consent,
            ..Script::default()
        })
    }

    /// A browser: started by the program, it follows the URL.
    fn browser(&self) -> JoinHandle<String> {
        let (pipe, environment) = (self.context.path("opened"), self.context.path("given"));
        if !pipe.exists() {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        }
        let script = format!(
            "#!/bin/sh\nexport -p > '{}'\nprintf '%s\\n' \"$@\" > '{}'\n",
            environment.display(),
            pipe.display()
        );
        self.context.write("bin/browser", script);
        let mode = PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.context.path("bin/browser"), mode).unwrap();
        std::thread::spawn(move || {
            let mut url = String::new();
            File::open(pipe).unwrap().read_to_string(&mut url).unwrap();
            fetch(url.trim_end())
        })
    }

    fn command(&self, line: &str) -> assert_cmd::Command {
        let mut command = self.context.command();
        command.env("ANOTHERS_TOKEN", "canary-environment");
        command.args(line.split(' '));
        command
    }

    fn run(&self, line: &str) -> Run {
        self.shown(&self.command(line).output().unwrap())
    }

    /// Runs a line with a browser available; also returns the browser's last page.
    fn with_browser(&self, line: &str) -> (Run, String) {
        let browser = self.browser();
        let output = self.command(line).env("BROWSER", "browser").output();
        (self.shown(&output.unwrap()), self.ended(browser))
    }

    /// The last page of a browser; empty if it was never started.
    fn ended(&self, browser: JoinHandle<String>) -> String {
        let mut options = File::options();
        options.write(true);
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCK);
        // Unblocks the browser if it still waits to open the pipe.
        drop(options.open(self.context.path("opened")));
        browser.join().unwrap()
    }

    /// Starts a login and waits until it prints the URL.
    fn begin(&self, line: &str) -> PendingLogin {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("switchboard"));
        let prepared = self.command(line);
        command
            .args(prepared.get_args())
            .env_clear()
            .envs(
                prepared
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .current_dir(self.context.path("project"));
        PendingLogin::of(
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped()),
        )
    }

    /// The output, with values that differ between runs replaced.
    fn shown(&self, output: &std::process::Output) -> Run {
        let run = Run::of(output);
        Run {
            code: run.code,
            stdout: self.steady(&run.stdout),
            stderr: self.steady(&run.stderr),
        }
    }

    fn steady(&self, text: &str) -> String {
        let authority = self.server.url().replace("/mcp", "");
        let lines = text.lines().map(|line| {
            let start = format!("  {authority}/authorize?");
            if line.starts_with(&start) {
                "  ADDRESS".to_owned()
            } else {
                line.replace(&authority, "SERVER")
            }
        });
        let mut text: String = lines.collect::<Vec<_>>().join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        self.context.filtered(&text)
    }

    /// Asserts that no token or code is in anything printed or written.
    fn search_for_canaries(&self, printed: &[&Run]) {
        let script = self.server.script().clone();
        let mut canaries = script.given;
        canaries.extend(["canary-".to_owned(), "code-1".to_owned()]);
        let mut seen = 0;
        let mut look = |what: &str, content: &[u8]| {
            seen += 1;
            for canary in &canaries {
                let canary = canary.as_bytes();
                let found = content.windows(canary.len()).any(|part| part == canary);
                assert!(!found, "a secret is in {what}");
            }
        };
        for run in printed {
            look("the output", run.all().as_bytes());
        }
        let mut folders = vec![self.context.root()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    let content = std::fs::read(entry.path()).unwrap();
                    look(&entry.path().display().to_string(), &content);
                }
            }
        }
        assert!(seen > printed.len());
    }
}

/// A login that waits for the user.
struct PendingLogin {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    printed: String,
    url: String,
}

impl PendingLogin {
    fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (mut printed, mut url) = (String::new(), String::new());
        // The line after the URL and an empty line says that the login is waiting.
        while !printed.ends_with(" s)\n") {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "{printed}");
            if line.starts_with("  http") {
                line.trim().clone_into(&mut url);
            }
            printed.push_str(&line);
        }
        Self {
            child,
            stderr,
            printed,
            url,
        }
    }

    fn paste(&mut self, text: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
    }

    fn end(mut self, machine: &Machine) -> Run {
        drop(self.child.stdin.take());
        let mut stdout = String::new();
        let mut stream = self.child.stdout.take().unwrap();
        stream.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut self.printed).unwrap();
        Run {
            code: self.child.wait().unwrap().code().unwrap_or(-1),
            stdout: machine.steady(&stdout),
            stderr: machine.steady(&self.printed),
        }
    }
}

/// Makes opening a pipe without a reader fail instead of block.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

fn check(run: &Run, code: i32, stderr: &str) {
    assert_eq!((run.code, run.stderr.as_str()), (code, stderr));
    assert_eq!(run.stdout, "");
}

const OPENED: &str =
    "to log in to guarded, open this URL:\n\n  ADDRESS\n\nwaiting for the browser, at most 300 s\n";
const PASTE: &str = "to log in to guarded, open this URL:\n\n  ADDRESS\n\nthen paste the URL that the browser ends at; not needed on this machine (at most 300 s)\n";

#[test]
fn a_browser_logs_in_and_the_login_stays_until_it_is_given_up() {
    let machine = Machine::new(Script::default());
    let refused = machine.run("tools");
    assert!(
        refused
            .stderr
            .contains("guarded requires a login; `switchboard mcp login guarded`"),
        "{}",
        refused.stderr
    );
    let (login, page) = machine.with_browser("mcp login guarded");
    check(
        &login,
        0,
        &format!("{OPENED}guarded is logged in: 2 tools\n"),
    );
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    // The browser gets the variables it needs for its display, and no token.
    let given = machine.context.read("given");
    assert!(
        given.contains("HOME") && !given.contains("canary"),
        "{given}"
    );
    let tools = machine.run("tools --json");
    assert_eq!(tools.code, 0, "{}", tools.stderr);
    let tools_list: Value = serde_json::from_str(&tools.stdout).unwrap();
    assert_eq!(tools_list.as_array().unwrap().len(), 2);
    let again = machine.run("mcp login guarded");
    check(&again, 0, "guarded is already logged in: 2 tools\n");
    assert_eq!(machine.server.script().logins, 1);
    machine.search_for_canaries(&[&refused, &login, &tools, &again]);
    let out = machine.run("mcp logout guarded");
    check(&out, 0, "guarded is logged out\n");
    assert_eq!(machine.server.script().revocations, 2);
    let out = machine.run("mcp logout guarded");
    check(&out, 0, "guarded was not logged in\n");
    let refused = machine.run("call guarded/one");
    assert_eq!(refused.code, 6, "{}", refused.stderr);
    let audit = machine.run("audit --json");
    let entries: Value = serde_json::from_str(&audit.stdout).unwrap();
    let mut events: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["event"].as_str())
        .collect();
    events.sort_unstable();
    assert_eq!(events, ["login", "logout", "logout"]);
    machine.search_for_canaries(&[&out, &refused, &audit]);
}

#[test]
fn scripts_get_json() {
    let machine = Machine::new(Script::default());
    let output = |run: &Run| -> Value { serde_json::from_str(&run.stdout).unwrap() };
    let (login, _) = machine.with_browser("mcp login guarded --json");
    assert_eq!(login.code, 0, "{}", login.stderr);
    let mut expected = json!({"name": "guarded", "loggedIn": true, "changed": true, "tools": 2});
    assert_eq!(output(&login), expected);
    expected["changed"] = json!(false);
    assert_eq!(output(&machine.run("mcp login guarded --json")), expected);
    let out = machine.run("mcp logout guarded --json");
    let expected = json!({"name": "guarded", "loggedIn": false, "changed": true});
    assert_eq!(output(&out), expected);
    machine.search_for_canaries(&[&login, &out]);
}

#[test]
fn the_answer_can_be_pasted() {
    let machine = Machine::new(Script::default());
    // Without a display no browser is opened, with or without --no-browser.
    for line in [
        "mcp login guarded --no-browser",
        "mcp login guarded --scopes a,b",
    ] {
        let mut pending = machine.begin(line);
        let answer = leads_to(&pending.url).unwrap();
        pending.paste(&answer.replace("state=", "state=x"));
        pending.paste("\n\n");
        let (first, second) = answer.split_at(answer.len() / 2);
        pending.paste(&format!("  {first}\n{second} \n"));
        let login = pending.end(&machine);
        assert_eq!(
            (login.code, login.stdout.as_str()),
            (0, ""),
            "{}",
            login.stderr
        );
        assert!(login.stderr.starts_with(PASTE), "{}", login.stderr);
        let other = "warning: that is the response to another login\n  hint: open the newest URL";
        assert!(login.stderr.contains(other), "{}", login.stderr);
        assert!(
            login.stderr.ends_with("\nguarded is logged in: 2 tools\n"),
            "{}",
            login.stderr
        );
        machine.search_for_canaries(&[&login]);
    }
    assert_eq!(machine.server.script().logins, 2);
    assert_eq!(machine.server.script().scopes, "a b");
}

#[test]
fn the_entry_says_where_the_answer_comes() {
    let machine = Machine::new(Script::default());
    let entry = machine.context.read("config/mcp.toml");
    let free = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let port = free();
    let with = |oauth: &str| {
        let oauth = format!("{entry}[mcp_servers.guarded.oauth]\n{oauth}\n");
        machine.context.write("config/mcp.toml", oauth);
    };
    for (oauth, uri) in [
        (
            format!("callback_port = {port}"),
            format!("http://127.0.0.1:{port}/callback?"),
        ),
        (
            format!("redirect_uri = \"http://localhost:{port}/done\""),
            format!("http://localhost:{port}/done?"),
        ),
    ] {
        with(&oauth);
        let (login, _) = machine.with_browser("mcp login guarded --scopes a");
        check(
            &login,
            0,
            &format!("{OPENED}guarded is logged in: 2 tools\n"),
        );
        let sent_to = machine.server.script().redirected_to.clone();
        assert!(sent_to.starts_with(&uri), "{sent_to}");
    }
    // The redirect goes to another machine, so it must be pasted.
    with("redirect_uri = \"https://app.example/done\"");
    let mut pending = machine.begin("mcp login guarded --no-browser --scopes a");
    let answer = leads_to(&pending.url).unwrap();
    assert!(
        answer.starts_with("https://app.example/done?code="),
        "{answer}"
    );
    pending.paste(&format!("{answer}\n"));
    let login = pending.end(&machine);
    let expected = "to log in to guarded, open this URL:\n\n  ADDRESS\n\nthen paste the URL that the browser ends at (at most 300 s)\nguarded is logged in: 2 tools\n";
    check(&login, 0, expected);
    // A port in use is an error; no other port is tried.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    with(&format!("callback_port = {port}"));
    let run = machine.run("mcp login guarded --scopes a");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stderr.contains(&format!(
            "cannot listen on 127.0.0.1:{port} for the callback"
        )) && run.stderr.contains("set another `oauth.callback_port`"),
        "{}",
        run.stderr
    );
}

#[test]
fn without_input_the_login_fails() {
    let machine = Machine::consenting(Consent::Never);
    let run = machine.run("mcp login guarded --no-browser");
    let expected = format!(
        "{PASTE}error: login to `guarded` was not completed\n  because standard input ended without an answer\n  hint: log in on a terminal, or pass the URL that the browser ends at\n"
    );
    check(&run, 6, &expected);
}

#[test]
fn a_login_refused_by_the_user_fails() {
    let machine = Machine::consenting(Consent::Refused);
    let (run, page) = machine.with_browser("mcp login guarded");
    let expected = format!(
        "{OPENED}error: cannot log in to `guarded`\n  because the login was refused: access_denied (The user said no)\n"
    );
    check(&run, 6, &expected);
    assert!(page.contains("The login was refused."), "{page}");
    machine.search_for_canaries(&[&run]);
}

#[test]
fn the_answer_to_another_login_does_not_end_this_one() {
    let machine = Machine::consenting(Consent::AfterAStranger);
    let (run, _) = machine.with_browser("mcp login guarded");
    check(&run, 0, &format!("{OPENED}guarded is logged in: 2 tools\n"));
}

#[test]
fn an_unfinished_login_times_out() {
    let machine = Machine::consenting(Consent::Never);
    let (run, _) = machine.with_browser("mcp login guarded --timeout 0.5");
    let expected = format!(
        "{}error: login to `guarded` timed out after 0.5 s\n  hint: try again with a longer --timeout\n",
        OPENED.replace("300", "0.5")
    );
    check(&run, 124, &expected);
}

#[test]
fn a_browser_that_fails_to_open_is_reported() {
    let machine = Machine::consenting(Consent::Never);
    machine.context.write("bin/broken", "#!/bin/sh\nexit 3\n");
    let mode = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(machine.context.path("bin/broken"), mode).unwrap();
    let mut command = machine.command("mcp login guarded --timeout 3");
    let run = machine.shown(&command.env("BROWSER", "broken").output().unwrap());
    let expected = format!(
        "{}warning: could not open a browser\n  hint: open the URL above yourself\nerror: login to `guarded` timed out after 3 s\n  hint: try again with a longer --timeout\n",
        OPENED.replace("300", "3")
    );
    check(&run, 124, &expected);
}

#[test]
fn an_interrupt_cancels_the_login() {
    let machine = Machine::consenting(Consent::Never);
    let pending = machine.begin("mcp login guarded --no-browser");
    let process = rustix::process::Pid::from_child(&pending.child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    // Keep its input open until it exits, so that only the signal can end it.
    let PendingLogin { mut child, .. } = pending;
    let stdin = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
}

#[test]
fn a_server_without_a_login_is_reported() {
    let machine = Machine::new(Script {
        is_open: true,
        ..Script::default()
    });
    let url = machine.server.url();
    machine.context.write(
        "config/mcp.toml",
        format!(
            "[mcp_servers.guarded]\nurl = \"{url}\"\n\
             [mcp_servers.static]\nurl = \"{url}?a\"\nheaders = {{ authorization = \"Bearer canary-static\" }}\n\
             [mcp_servers.variable]\nurl = \"{url}?b\"\nbearer_token_env_var = \"ANOTHERS_TOKEN\"\n\
             [mcp_servers.local]\ncommand = \"npx\"\n\
             [mcp_servers.off]\nurl = \"{url}?c\"\nenabled = false\n\
             [mcp_servers.nobody]\nurl = \"http://127.0.0.1:9/mcp\"\n"
        ),
    );
    check(
        &machine.run("mcp login guarded"),
        0,
        "guarded requires no login: 2 tools\n",
    );
    for (name, key) in [("static", "headers"), ("variable", "bearer_token_env_var")] {
        let expected = format!(
            "error: cannot log in to `{name}`\n  because its entry sets credentials in `{key}`\n  hint: remove `{key}` from the entry to log in instead\n"
        );
        check(&machine.run(&format!("mcp login {name}")), 1, &expected);
    }
    let local = "error: `local` has no login\n  because it runs on this machine\n";
    for word in ["login", "logout"] {
        check(&machine.run(&format!("mcp {word} local")), 1, local);
        let unknown = machine.run(&format!("mcp {word} gaurded"));
        let expected = "error: no server named `gaurded`\n  hint: did you mean `guarded`?\n";
        check(&unknown, 1, expected);
    }
    let off = machine.run("mcp login off");
    assert_eq!(off.code, 1);
    assert!(
        off.stderr.contains("`switchboard mcp enable off`"),
        "{}",
        off.stderr
    );
    let nobody = machine.run("mcp login nobody");
    assert_eq!(nobody.code, 4, "{}", nobody.stderr);
    check(
        &machine.run("mcp logout guarded"),
        0,
        "guarded was not logged in\n",
    );
    // None of this created the login store or its key.
    assert!(!machine.context.exists("state/logins/key"));
}

#[test]
fn a_server_of_a_project_gets_no_login_before_it_is_trusted() {
    let machine = Machine::new(Script::default());
    let entry = machine.context.read("config/mcp.toml");
    machine.context.write("config/mcp.toml", "");
    machine.context.write("project/.mcp.toml", entry);
    let (run, page) = machine.with_browser("mcp login guarded");
    let expected = "error: the server `guarded` cannot be used\n  because";
    assert_eq!((run.code, page.as_str()), (5, ""), "{}", run.stderr);
    assert!(run.stderr.contains(expected), "{}", run.stderr);
}

#[test]
fn a_hanging_keyring_does_not_block() {
    let machine = Machine::new(Script::default());
    let bus = machine.context.path("bus");
    // Accepts connections and never answers.
    let listener = UnixListener::bind(&bus).unwrap();
    let browser = machine.browser();
    let mut command = machine.command("mcp login guarded");
    let address = format!("unix:path={}", bus.display());
    command
        .env("BROWSER", "browser")
        .env("DBUS_SESSION_BUS_ADDRESS", address);
    let login = machine.shown(&command.output().unwrap());
    check(
        &login,
        0,
        &format!("{OPENED}guarded is logged in: 2 tools\n"),
    );
    machine.ended(browser);
    assert!(machine.context.exists("state/logins/key"));
    // The keyring is contacted only when there is something to store.
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_ok());
    let mut command = machine.command("tools");
    command.env(
        "DBUS_SESSION_BUS_ADDRESS",
        format!("unix:path={}", bus.display()),
    );
    assert_eq!(machine.shown(&command.output().unwrap()).code, 0);
    assert!(listener.accept().is_err());
    // If only the keyring is allowed, its failure is reported.
    machine.run("mcp logout guarded");
    let entry = machine.context.read("config/mcp.toml");
    let settings = "[settings]\nlogin_store = \"keyring\"\n";
    machine
        .context
        .write("config/mcp.toml", format!("{settings}{entry}"));
    drop(listener);
    let browser = machine.browser();
    let mut command = machine.command("mcp login guarded");
    let address = format!("unix:path={}", bus.display());
    command
        .env("BROWSER", "browser")
        .env("DBUS_SESSION_BUS_ADDRESS", address);
    let login = machine.shown(&command.output().unwrap());
    assert_eq!(machine.ended(browser), "");
    assert_eq!(login.code, 1, "{}", login.stderr);
    let hint = "hint: unlock the keyring; or set login_store = \"file\" and log in again\n";
    assert!(login.stderr.ends_with(hint), "{}", login.stderr);
}

#[test]
fn a_damaged_login_is_reported_and_can_be_replaced() {
    let machine = Machine::new(Script::default());
    assert_eq!(machine.with_browser("mcp login guarded").0.code, 0);
    let logins = machine.context.path("state/logins");
    for entry in std::fs::read_dir(logins).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "login")
        {
            std::fs::write(path, "damaged").unwrap();
        }
    }
    let (login, _) = machine.with_browser("mcp login guarded");
    assert_eq!(login.code, 0, "{}", login.stderr);
    let lines: Vec<&str> = login.stderr.lines().collect();
    let output = lines.first().unwrap();
    assert!(
        output.starts_with("warning: the login store could not be read: [ROOT]/state/logins/")
            && output.ends_with(".login: it is truncated or not a sealed secret"),
        "{output}"
    );
    assert_eq!(
        lines.get(1),
        Some(&"  hint: log in again to replace the file, or restore it from a backup")
    );
    assert_eq!(lines.last(), Some(&"guarded is logged in: 2 tools"));
    check(
        &machine.run("mcp logout guarded"),
        0,
        "guarded is logged out\n",
    );
}

/// Unreadable logins are neither used nor treated as missing.
#[test]
fn logins_that_cannot_be_read_send_no_token_and_ask_for_a_login() {
    for fault in ["damaged", "a folder", "forbidden", "no key"] {
        let machine = Machine::new(Script::default());
        assert_eq!(machine.with_browser("mcp login guarded").0.code, 0);
        assert_eq!(machine.run("tools --server guarded --json").code, 0);
        let presented = machine.server.script().presented;
        assert!(presented > 0);
        let files = std::fs::read_dir(machine.context.path("state/logins")).unwrap();
        let mut prefix = Vec::new();
        for path in files.map(|entry| entry.unwrap().path()) {
            let is_login = path
                .extension()
                .is_some_and(|extension| extension == "login");
            match fault {
                "damaged" if is_login => std::fs::write(&path, "damaged").unwrap(),
                "a folder" if is_login => {
                    std::fs::remove_file(&path).unwrap();
                    std::fs::create_dir(&path).unwrap();
                }
                "forbidden" if is_login => {
                    prefix = without_privileges();
                    set_mode(&path, 0o000);
                    if works(&prefix, &["cat", path.to_str().unwrap()]) {
                        skipped("logins that the user may not read: this user reads everything");
                        return;
                    }
                }
                "no key" if !is_login => std::fs::write(&path, "damaged").unwrap(),
                _ => {}
            }
        }
        let run = run_under(&prefix, &machine.context, "call guarded/one");
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (6, ""),
            "{fault}: {}",
            run.stderr
        );
        for part in ["logins", "switchboard mcp login guarded"] {
            assert!(run.stderr.contains(part), "{fault}: {}", run.stderr);
        }
        assert_eq!(machine.server.script().presented, presented, "{fault}");
        assert_eq!(machine.server.script().renewals, 0, "{fault}");
    }
}

#[test]
fn on_a_terminal_the_answer_can_be_pasted_while_the_browser_is_waited_for() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let machine = Machine::new(Script::default());
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = File::options()
        .read(true)
        .write(true)
        .open(name.to_str().unwrap())
        .unwrap();
    let prepared = machine.command("mcp login guarded");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("switchboard"))
        .args(prepared.get_args())
        .env_clear()
        .envs(
            prepared
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("TERM", "dumb")
        .current_dir(machine.context.path("project"))
        .stdin(Stdio::from(terminal.try_clone().unwrap()))
        .stderr(Stdio::from(terminal))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut controller = File::from(controller);
    let mut reader = BufReader::new(controller.try_clone().unwrap());
    let mut url = String::new();
    while !url.starts_with("  http") {
        url.clear();
        assert!(reader.read_line(&mut url).unwrap() > 0);
    }
    let answer = leads_to(url.trim()).unwrap();
    controller
        .write_all(format!("nonsense://\n{answer}\n").as_bytes())
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut shown = Vec::new();
    let _ = reader.read_to_end(&mut shown);
    let shown = String::from_utf8(shown).unwrap();
    assert!(
        shown.contains("that is not the redirect URL of this login"),
        "{shown}"
    );
    assert!(
        shown.ends_with("guarded is logged in: 2 tools\r\n"),
        "{shown}"
    );
}

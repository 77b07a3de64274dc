//! Checks that no server process survives its host, however the host ends.
//!
//! Every host has a unique mark, which all its processes carry in their arguments or environment. A thread scans
//! `/proc` for the marks of ended hosts and records when none is left.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and this one prints times"
)]

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use switchboard_test::skipped::skipped;

/// Servers that resist termination in various ways. Each prints one line when all its processes run.
const SCRIPTS: &[&str] = &[
    // A plain server.
    "echo up; exec cat",
    // Background children.
    "sleep 1000 & sleep 1000 & echo up; cat",
    // A child in its own session.
    "setsid sleep 1000 & echo up; exec cat",
    // A proper daemon without inherited pipes, in its own session, whose children ignore signals.
    "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000 & while :; do sleep 1000; done' </dev/null >/dev/null 2>&1 &)
     echo up; exec cat",
    // Ignores the end of its input and signals.
    "trap '' TERM INT HUP; echo up; while :; do sleep 1000; done",
    // Started through a wrapper, in its own process group, like package runners.
    "sh -c \"sh -c 'trap \\\"\\\" TERM; echo up; sleep 1000; :'; :\"; :",
    // Restarts its child forever, each time in a new session.
    "echo up; while :; do setsid -w sleep 1000; done",
    // Forks forever.
    "echo up; while :; do setsid sleep 0.05 & sleep 0.005; done",
    // Has exited already; its child holds the pipes.
    "trap '' TERM; setsid sleep 1000 & echo up",
];

/// A wrapper like `npx`.
const NODE: &str = r#"exec node -e '
    const options = { stdio: "inherit", detached: true };
    require("child_process").spawn("sh", ["-c", "trap \"\" TERM; echo up; sleep 1000; :"], options);
    setInterval(() => {}, 1000);'"#;

/// Number of concurrent hosts.
const AT_ONCE: usize = 6;

#[test]
fn two_hundred_hosts_are_killed_at_random_moments() {
    let mut random = Random(0x5eed);
    let mut scripts = SCRIPTS.to_vec();
    if has("node") {
        scripts.push(NODE);
    } else {
        skipped("orphans of a wrapper in Node, because node is not installed");
    }
    let plans: Vec<(Vec<&str>, Duration)> = (0..200)
        .map(|_| {
            let chosen = (0..3).map(|_| scripts[random.below(scripts.len())]);
            let chosen = chosen.collect();
            (chosen, Duration::from_micros(random.below(250_000) as u64))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let watch = Watch::new("killed");
    let times = watch.run(|watch| {
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some((scripts, moment)) = plans.get(index) else {
                            return;
                        };
                        let mut host = host(&watch.mark(index), "return", scripts).spawn().unwrap();
                        // The time of the kill is random; nothing is waited for.
                        std::thread::sleep(*moment);
                        host.kill().unwrap();
                        watch.ended(index);
                        host.wait().unwrap();
                    }
                });
            }
        });
    });
    assert_eq!(times.len(), plans.len());
    assert_in_time(times);
}

#[test]
fn every_other_end_of_a_host_ends_its_servers() {
    type End = fn(&mut Child);
    let ends: &[(&str, End)] = &[
        ("return", |host| say(host, "return")),
        ("exit", |host| say(host, "exit")),
        ("panic", |host| say(host, "panic")),
        ("killed", |host| host.kill().unwrap()),
        ("terminated", |host| signal(host, Signal::TERM)),
        ("interrupted", |host| signal(host, Signal::INT)),
        ("group hung up", |host| {
            kill_process_group(pid(host), Signal::HUP).unwrap();
        }),
    ];
    let watch = Watch::new("ends");
    let times = watch.run(|watch| {
        for (index, (name, end)) in ends.iter().enumerate() {
            let mut host = host(&watch.mark(index), name, SCRIPTS)
                .process_group(0)
                .spawn()
                .unwrap();
            wait_until_ready(host.stdout.take());
            end(&mut host);
            // Some ends take a while, such as a panic that prints a backtrace.
            host.wait().unwrap();
            watch.ended(index);
        }
    });
    assert_eq!(times.len(), ends.len());
    assert_in_time(times);
}

#[test]
fn a_host_with_thirty_servers_is_killed() {
    let scripts: Vec<&str> = SCRIPTS.iter().cycle().take(30).copied().collect();
    let mut random = Random(0x3030);
    let watch = Watch::new("thirty");
    let times = watch.run(|watch| {
        for index in 0..6 {
            let mut host = host(&watch.mark(index), "return", &scripts)
                .spawn()
                .unwrap();
            if index % 2 == 0 {
                wait_until_ready(host.stdout.take());
                assert_eq!(
                    children(pid(&host)).len(),
                    1,
                    "all servers share one supervisor"
                );
            } else {
                // The time of the kill is random, while the servers start.
                std::thread::sleep(Duration::from_micros(random.below(150_000) as u64));
            }
            host.kill().unwrap();
            watch.ended(index);
            host.wait().unwrap();
        }
    });
    // Only that all processes end matters here. How fast depends on the load: killing 30 trees takes several scans of
    // `/proc`.
    assert_eq!(times.len(), 6);
}

#[test]
fn closing_the_terminal_ends_all_servers() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let watch = Watch::new("terminal");
    let times = watch.run(|watch| {
        let terminal =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let inside = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        let host = host(&watch.mark(0), "return", SCRIPTS);
        // `setsid` makes the terminal on its standard input that of a new session, then runs the host.
        let mut host = Command::new("setsid")
            .arg("--ctty")
            .arg(host.get_program())
            .args(host.get_args())
            .stdin(inside)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_ready(host.stdout.take());
        drop(terminal);
        host.wait().unwrap();
        watch.ended(0);
    });
    assert_eq!(times.len(), 1);
    assert_in_time(times);
}

#[test]
fn a_killed_supervisor_takes_its_server_with_it() {
    let watch = Watch::new("supervisor");
    let mut host = host(
        &watch.mark(0),
        "return",
        &["sleep 1000 & echo up; exec cat"],
    )
    .spawn()
    .unwrap();
    wait_until_ready(host.stdout.take());
    let supervisors: Vec<Pid> = children(pid(&host));
    assert_eq!(supervisors.len(), 1);
    kill_process(supervisors[0], Signal::KILL).unwrap();
    // Only the host is left.
    let until = Instant::now() + Duration::from_secs(20);
    while marked(&watch.mark(0)) != HashSet::from([pid(&host).as_raw_pid()]) {
        assert!(Instant::now() < until, "{:?}", marked(&watch.mark(0)));
        std::thread::sleep(Duration::from_millis(5));
    }
    host.kill().unwrap();
    host.wait().unwrap();
}

#[test]
fn without_a_supervisor_servers_end_with_their_input() {
    let scripts = [
        "echo up; exec cat",
        "echo up; exec sleep 1000",
        "trap '' TERM HUP; echo up; read line; exec sleep 1000",
    ];
    let watch = Watch::new("unsupervised");
    let times = watch.run(|watch| {
        let mut host = start("unsupervised", &watch.mark(0), "return", &scripts)
            .spawn()
            .unwrap();
        wait_until_ready(host.stdout.take());
        host.kill().unwrap();
        watch.ended(0);
        host.wait().unwrap();
    });
    assert_eq!(times.len(), 1);
}

fn host(mark: &str, manner: &str, scripts: &[&str]) -> Command {
    start("host", mark, manner, scripts)
}

fn start(role: &str, mark: &str, manner: &str, scripts: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_supervised_host"));
    command
        .args([role, mark, manner])
        .args(scripts)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

fn wait_until_ready(stdout: Option<std::process::ChildStdout>) {
    let mut line = String::new();
    BufReader::new(stdout.unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
}

fn say(host: &mut Child, word: &str) {
    writeln!(host.stdin.as_mut().unwrap(), "{word}").unwrap();
}

fn signal(host: &mut Child, signal: Signal) {
    kill_process(pid(host), signal).unwrap();
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

fn children(parent: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid())).unwrap() {
        let list = std::fs::read_to_string(thread.unwrap().path().join("children")).unwrap();
        found.extend(
            list.split_whitespace()
                .map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()),
        );
    }
    found
}

/// The requirement: nothing is left after a second. A loaded machine may be late now and then; [`Watch::run`] detects
/// processes that never end.
fn assert_in_time(mut times: Vec<(Duration, String)>) {
    times.sort();
    let late: Vec<_> = times
        .iter()
        .filter(|(time, _)| *time > Duration::from_secs(1))
        .collect();
    println!(
        "{} hosts, gone after {:?} (median), {:?} (longest)",
        times.len(),
        times[times.len() / 2].0,
        times[times.len() - 1].0
    );
    assert!(late.len() <= 1 + times.len() / 20, "late: {late:?}");
}

/// Looks for surviving processes of ended hosts.
struct Watch {
    prefix: String,
    ended: Mutex<HashMap<String, Instant>>,
}

impl Watch {
    fn new(name: &str) -> Self {
        Self {
            prefix: format!("orphans-{}-{name}-", std::process::id()),
            ended: Mutex::default(),
        }
    }

    fn mark(&self, index: usize) -> String {
        // Ends with a delimiter, so that no mark is a prefix of another.
        format!("{}{index};", self.prefix)
    }

    fn ended(&self, index: usize) {
        self.ended
            .lock()
            .unwrap()
            .insert(self.mark(index), Instant::now());
    }

    /// Runs `test` and returns how long each host's servers lived after it had ended.
    fn run(&self, test: impl FnOnce(&Self) + Send) -> Vec<(Duration, String)> {
        let mut times = Vec::new();
        std::thread::scope(|scope| {
            let test = scope.spawn(|| test(self));
            loop {
                let test_is_over = test.is_finished();
                let waiting = self.ended.lock().unwrap().clone();
                let left = marks(&self.prefix);
                for (mark, since) in &waiting {
                    if !left.contains(mark) {
                        times.push((since.elapsed(), mark.clone()));
                        self.ended.lock().unwrap().remove(mark);
                    } else if since.elapsed() > Duration::from_secs(20) {
                        panic!("{mark} left {:?} behind", marked(mark));
                    }
                }
                if test_is_over && self.ended.lock().unwrap().is_empty() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            test.join().unwrap();
        });
        times
    }
}

/// All marks with this prefix that any process carries.
fn marks(prefix: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    for (_, text) in processes() {
        for (start, _) in text.match_indices(prefix) {
            let mark = &text[start..];
            found.extend(mark.find(';').map(|end| mark[..=end].to_owned()));
        }
    }
    found
}

/// All processes that carry this mark.
fn marked(mark: &str) -> HashSet<i32> {
    processes()
        .filter(|(_, text)| text.contains(mark))
        .map(|(pid, _)| pid)
        .collect()
}

/// All processes, with their arguments and environment as text.
fn processes() -> impl Iterator<Item = (i32, String)> {
    std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: i32 = entry.unwrap().file_name().to_str()?.parse().ok()?;
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let text = [read("cmdline"), read("environ")].concat();
        Some((pid, String::from_utf8_lossy(&text).into_owned()))
    })
}

fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Deterministic pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }
}

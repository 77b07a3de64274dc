//! Finds the processes that belong to a server and kills them.
//!
//! Relies on the supervisor being a child subreaper: an orphaned process becomes the supervisor's child, so no
//! descendant escapes by `setsid` or a double fork. Everything below the supervisor belongs to some server; [`Kin`]
//! decides to which. Without a subreaper or `/proc`, process groups are the fallback. This module sends the signals; it
//! must not reap.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

use super::wire::MARK;

/// A process, identified by id and start time, so that a reused id is not mistaken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pid: Pid,
    started: u64,
}

/// The processes of one server, whether or not its main process still runs.
///
/// A child of the supervisor belongs to the server if it is the main process, was found among the server's processes
/// before, carries the server's mark in its initial environment, or, without a mark, is in the main process's group.
/// Descendants of those belong to the server too. A process that cleared its environment, left its group and lost its
/// parent before the first scan cannot be attributed; it ends with the supervisor.
pub(crate) struct Kin {
    /// The main process, and so its group; `None` once it is reaped, since the id may then be reused.
    main: Option<Pid>,
    mark: OsString,
    seen: HashMap<Pid, u64>,
    /// Children of the supervisor that cannot be attributed yet.
    starting: Starting,
}

impl Kin {
    pub(crate) fn new(main: Pid, mark: OsString) -> Self {
        Self {
            main: Some(main),
            mark,
            seen: HashMap::new(),
            starting: Starting::default(),
        }
    }

    /// Last scan before the main process is reaped, while its id is still valid.
    pub(crate) fn main_has_ended(&mut self, mains: &HashSet<Pid>) {
        if self.look(mains).is_none()
            && let Some(group) = self.main
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// The id of the main process may be reused from now on.
    pub(crate) fn main_is_reaped(&mut self) {
        self.main = None;
    }

    /// Whether no process of the server is found.
    pub(crate) fn is_gone(&mut self, mains: &HashSet<Pid>) -> bool {
        // A list of children may miss one when others exit meanwhile.
        self.main.is_none()
            && (0..2).all(|_| self.look(mains).is_none_or(|found| found.is_empty()))
            && !self.starting.may_be_anybodys()
    }

    /// Sends SIGTERM to all of them.
    pub(crate) fn terminate(&mut self, mains: &HashSet<Pid>) {
        match self.look(mains) {
            Some(found) => ask_to_end(&found),
            None => signal_groups(self.main, Signal::TERM),
        }
    }

    /// Kills all of them. A process that escapes is found in the next round.
    pub(crate) fn kill(&mut self, mains: &HashSet<Pid>) {
        match freeze(|| self.look(mains)) {
            Some(frozen) => kill_frozen(&frozen),
            None => signal_groups(self.main, Signal::KILL),
        }
    }

    /// All of them, parents before children; `None` if the system does not list processes.
    fn look(&mut self, mains: &HashSet<Pid>) -> Option<Vec<Process>> {
        let (mut forest, children) = Forest::below(getpid())?;
        self.starting.look_again();
        let mut roots = Vec::new();
        for child in children {
            if self.main == Some(child) || !mains.contains(&child) && self.has_started(child) {
                roots.push(child);
            }
        }
        let found = forest.tree(roots);
        let seen = found.iter().map(|process| (process.pid, process.started));
        self.seen.extend(seen);
        Some(found)
    }

    /// Whether a child of the supervisor, not itself a main process, belongs to this server.
    fn has_started(&mut self, child: Pid) -> bool {
        let Some(stat) = Stat::of(child) else {
            return false;
        };
        // A zombie still counts until it is reaped.
        if self.seen.get(&child) == Some(&stat.started) {
            return true;
        }
        let is_in_group = self.main.is_some() && stat.group == self.main;
        match mark_of(child) {
            // A zombie has no environment to read.
            _ if stat.is_dead => false,
            Mark::Is(mark) => mark == self.mark,
            Mark::Unknown => is_in_group,
            Mark::NotYet => {
                self.starting.add(Process::new(child, stat));
                is_in_group
            }
        }
    }
}

/// Processes that cannot be attributed yet because they are in the middle of `exec`, during which the environment reads
/// as empty. That lasts only a moment: an environment that stays empty is really empty.
#[derive(Debug, Default)]
struct Starting {
    /// Found by the last scan, with the time each was first seen.
    now: HashMap<Process, Instant>,
    /// Found by the scan before.
    before: HashMap<Process, Instant>,
}

impl Starting {
    /// How long `exec` may take on a busy machine.
    const PATIENCE: Duration = Duration::from_millis(250);

    /// Starts a new scan.
    fn look_again(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    fn add(&mut self, process: Process) {
        let first_seen = self.before.get(&process).copied();
        self.now
            .insert(process, first_seen.unwrap_or_else(Instant::now));
    }

    /// Whether a process of the last scan may still turn out to belong to a server.
    fn may_be_anybodys(&self) -> bool {
        // A single scan may take longer than `PATIENCE`.
        let is_new = |process| !self.before.contains_key(process);
        let mut starting = self.now.iter();
        starting.any(|(process, since)| is_new(process) || since.elapsed() < Self::PATIENCE)
    }
}

/// Sends SIGTERM to everything below this process, or to these process groups if that cannot be listed.
pub(crate) fn terminate_all(groups: impl IntoIterator<Item = Pid>) {
    match below(getpid()) {
        Some(found) => ask_to_end(&found),
        None => signal_groups(groups, Signal::TERM),
    }
}

/// Kills everything below this process, until `reap` reports no children or `patience` has passed.
///
/// Only processes of another user, or stuck in the kernel, survive this.
pub(crate) fn kill_all(patience: Duration, mut reap: impl FnMut() -> Children) {
    let until = Instant::now() + patience;
    let mut pause = FIRST_PAUSE;
    loop {
        let groups = match reap() {
            Children::None => return,
            Children::Left(groups) => groups,
        };
        match freeze(|| below(getpid())) {
            Some(frozen) => kill_frozen(&frozen),
            None => signal_groups(groups, Signal::KILL),
        }
        if Instant::now() >= until {
            return;
        }
        // Killed processes exist until they are reaped, and the kernel takes a moment to end them.
        thread::sleep(pause);
        pause = next_pause(pause);
    }
}

/// Kills a supervisor that no longer works, with everything below it. It must not have been reaped.
pub(crate) fn kill_with_all_below(supervisor: Pid) {
    // A stopped supervisor reaps nothing, so the ids below it stay valid.
    let _ = kill_process(supervisor, Signal::STOP);
    if let Some(frozen) = freeze(|| below(supervisor)) {
        kill_frozen(&frozen);
    }
    let _ = kill_process(supervisor, Signal::KILL);
}

/// Kills every process of the system whose mark starts with `beginning`, until none is left or `patience` has passed.
pub(crate) fn kill_marked(beginning: &str, patience: Duration) {
    let until = Instant::now() + patience;
    let mut pause = FIRST_PAUSE;
    let mut starting = Starting::default();
    while let Some(frozen) = freeze(|| marked(beginning, &mut starting)) {
        // Runs even after the deadline, so that no process is left stopped.
        kill_frozen(&frozen);
        let is_over = frozen.is_empty() && !starting.may_be_anybodys();
        if is_over || Instant::now() >= until {
            return;
        }
        thread::sleep(pause);
        pause = next_pause(pause);
    }
}

/// Every process of the system whose mark starts with `beginning`; `None` if the system does not list processes.
fn marked(beginning: &str, starting: &mut Starting) -> Option<Vec<Process>> {
    let all = std::fs::read_dir("/proc").ok()?;
    let all = all.filter_map(|entry| pid_of(&entry.ok()?.file_name()));
    starting.look_again();
    let marked = all.filter_map(|pid| {
        // The start time is read first: if the id is reused in between, it does not match the new process.
        let stat = Stat::of(pid).filter(|stat| !stat.is_dead)?;
        let process = Process::new(pid, stat);
        match mark_of(pid) {
            Mark::Is(mark) => mark
                .as_bytes()
                .starts_with(beginning.as_bytes())
                .then_some(process),
            Mark::NotYet if !stat.is_kernels => {
                starting.add(process);
                None
            }
            Mark::NotYet | Mark::Unknown => None,
        }
    });
    Some(marked.collect())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Children {
    /// At least one, with the main processes among them.
    Left(Vec<Pid>),
    /// No children, and so no descendants.
    None,
}

/// First pause between kill rounds.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(1);

/// Doubles the pause, up to 16 ms.
pub(crate) fn next_pause(pause: Duration) -> Duration {
    (pause * 2).min(Duration::from_millis(16))
}

/// Stops every process that `look` finds and returns them; `None` if `look` cannot list them.
///
/// A stopped process neither forks, restarts its helpers nor reaps its children. A scan that finds no new process is
/// therefore complete, and every id in it still belongs to the process found.
fn freeze(mut look: impl FnMut() -> Option<Vec<Process>>) -> Option<HashSet<Process>> {
    /// Enough scans for any tree that does not grow faster than it is scanned.
    const LOOKS: usize = 16;

    let mut frozen = HashSet::new();
    for _ in 0..LOOKS {
        let mut found_new = false;
        for process in look()? {
            if frozen.insert(process) {
                found_new = true;
                process.signal(Signal::STOP);
            }
        }
        if !found_new {
            break;
        }
    }
    Some(frozen)
}

fn kill_frozen(frozen: &HashSet<Process>) {
    for process in frozen {
        process.signal(Signal::KILL);
    }
}

fn ask_to_end(found: &[Process]) {
    for process in found {
        process.signal(Signal::TERM);
        // A stopped process handles SIGTERM only once it continues.
        process.signal(Signal::CONT);
    }
}

fn signal_groups(groups: impl IntoIterator<Item = Pid>, signal: Signal) {
    for group in groups {
        let _ = kill_process_group(group, signal);
    }
}

/// Everything below a process; `None` if the system does not list processes.
fn below(root: Pid) -> Option<Vec<Process>> {
    let (mut forest, children) = Forest::below(root)?;
    Some(forest.tree(children))
}

impl Process {
    fn of(pid: Pid) -> Option<Self> {
        Some(Self::new(pid, Stat::of(pid)?))
    }

    fn new(pid: Pid, stat: Stat) -> Self {
        let started = stat.started;
        Self { pid, started }
    }

    /// Sends the signal only if the id still belongs to this process; does nothing if the process is gone.
    fn signal(self, signal: Signal) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

            // The descriptor refers to the process that has the id now; the next line checks that it is this one.
            match pidfd_open(self.pid, PidfdFlags::empty()) {
                Ok(descriptor) => {
                    if Self::of(self.pid) == Some(self) {
                        let _ = pidfd_send_signal(descriptor, signal);
                    }
                    return;
                }
                Err(rustix::io::Errno::SRCH) => return,
                // An old kernel, or no free descriptor.
                Err(_) => {}
            }
        }
        if Self::of(self.pid) == Some(self) {
            let _ = kill_process(self.pid, signal);
        }
    }
}

/// Source of the parent-child relation.
enum Forest {
    /// The kernel lists the children of each thread.
    Listed,
    /// The kernel has no such lists, so the map is built from the parents of all processes.
    Seen(HashMap<Pid, Vec<Pid>>),
}

impl Forest {
    /// The source to use, and the children of `root`; `None` if the system does not list processes.
    fn below(root: Pid) -> Option<(Self, Vec<Pid>)> {
        if !cfg!(any(target_os = "linux", target_os = "android")) {
            return None;
        }
        if let Some(children) = listed_children(root) {
            return Some((Self::Listed, children));
        }
        let mut seen = all_children()?;
        let children = seen.remove(&root).unwrap_or_default();
        Some((Self::Seen(seen), children))
    }

    fn children(&mut self, parent: Pid) -> Vec<Pid> {
        match self {
            Self::Listed => listed_children(parent).unwrap_or_default(),
            Self::Seen(seen) => seen.remove(&parent).unwrap_or_default(),
        }
    }

    /// These processes and all their descendants.
    fn tree(&mut self, mut pids: Vec<Pid>) -> Vec<Process> {
        let mut looked_at = 0;
        while let Some(parent) = pids.get(looked_at) {
            pids.extend(self.children(*parent));
            looked_at += 1;
        }
        pids.into_iter().filter_map(Process::of).collect()
    }
}

/// The children of a process as the kernel lists them per thread; `None` if the kernel has no such lists.
///
/// A list may miss entries when other processes exit meanwhile, so callers repeat the scan until nothing is found.
fn listed_children(parent: Pid) -> Option<Vec<Pid>> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid())).ok()?;
    let mut found = None;
    for thread in threads.flatten() {
        // When a thread exits during the scan, another one inherits its children.
        if let Ok(list) = std::fs::read_to_string(thread.path().join("children")) {
            let children = list.split_ascii_whitespace();
            let children = children.filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
            found.get_or_insert_with(Vec::new).extend(children);
        }
    }
    found
}

/// The live children of every process; `None` if `/proc` lists no process.
fn all_children() -> Option<HashMap<Pid, Vec<Pid>>> {
    let mut children_of: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()? {
        let Some(pid) = entry.ok().and_then(|entry| pid_of(&entry.file_name())) else {
            continue;
        };
        // A process that exits during the scan no longer has a file.
        let stat = Stat::of(pid).filter(|stat| !stat.is_dead);
        if let Some(parent) = stat.and_then(|stat| stat.parent) {
            children_of.entry(parent).or_default().push(pid);
        }
    }
    (!children_of.is_empty()).then_some(children_of)
}

fn pid_of(entry: &OsStr) -> Option<Pid> {
    Pid::from_raw(entry.to_str()?.parse().ok()?)
}

/// The server's mark in the initial environment of a process.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    Is(OsString),
    /// No mark, or the environment is not readable.
    Unknown,
    /// The environment is empty, as it is during `exec`.
    NotYet,
}

fn mark_of(pid: Pid) -> Mark {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_pid()));
    let environment = match environment {
        Ok(environment) if environment.is_empty() => return Mark::NotYet,
        Ok(environment) => environment,
        Err(_) => return Mark::Unknown,
    };
    let mut variables = environment.split(|byte| *byte == 0);
    let mark =
        variables.find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
    match mark {
        Some(mark) => Mark::Is(OsStr::from_bytes(mark).to_owned()),
        None => Mark::Unknown,
    }
}

/// The fields of `/proc/<pid>/stat` used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    /// Zombie: exited, not reaped.
    is_dead: bool,
    parent: Option<Pid>,
    group: Option<Pid>,
    /// Kernel thread.
    is_kernels: bool,
    /// Start time in clock ticks since boot.
    started: u64,
}

impl Stat {
    fn of(pid: Pid) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
    }

    fn parse(stat: &[u8]) -> Option<Self> {
        /// Number of fields skipped between the group and the flags, and between the flags and the start time.
        const BETWEEN: [usize; 2] = [3, 12];
        /// `PF_KTHREAD`: set on kernel threads.
        const KERNEL: u64 = 0x0020_0000;

        // The command name is in parentheses and may itself contain parentheses, spaces and any other character.
        let after_name = stat.get(memchr::memrchr(b')', stat)? + 1..)?;
        let mut fields = std::str::from_utf8(after_name)
            .ok()?
            .split_ascii_whitespace();
        let state = fields.next()?;
        let mut pid = || fields.next()?.parse().ok().map(Pid::from_raw);
        let (parent, group) = (pid()?, pid()?);
        let [to_flags, to_start] = BETWEEN;
        let mut number = |skipped| fields.nth(skipped)?.parse::<u64>().ok();
        Some(Self {
            is_dead: matches!(state, "Z" | "X"),
            parent,
            group,
            is_kernels: number(to_flags)? & KERNEL != 0,
            started: number(to_start)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn both_ways_to_look_find_a_child() {
        use std::io::{Read as _, Write as _};
        use std::process::{Command, Stdio};

        let mut child = Command::new("cat")
            .env(MARK, "both-ways")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // A process in the middle of `exec` has no environment yet; one that answers does.
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"?").unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let pid = Pid::from_child(&child);
        let looked_up = all_children().unwrap().remove(&getpid()).unwrap();
        let listed = below(getpid()).unwrap();
        let process = Process::of(pid).unwrap();
        let mark = mark_of(pid);
        Process {
            started: process.started + 1,
            ..process
        }
        .signal(Signal::KILL);
        let outlived = child.try_wait().unwrap().is_none();
        process.signal(Signal::KILL);
        child.wait().unwrap();
        assert!(looked_up.contains(&pid));
        assert!(listed.contains(&process));
        assert_eq!(mark, Mark::Is("both-ways".into()));
        assert!(
            outlived,
            "the process received a signal meant for another one"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_is_just_becoming_another_program_is_not_taken_for_somebody_elses() {
        use std::io::{Read as _, Write as _};
        use std::process::{Command, Stdio};

        let mut child = Command::new("sh")
            .args(["-c", &format!("read line; exec env {MARK}=late-1 cat")])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let process = Process::of(Pid::from_child(&child)).unwrap();
        let mut starting = Starting::default();
        let before = marked("late-", &mut starting).unwrap();
        let is_noticed = starting.now.contains_key(&process);
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"go\n?").unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let after = marked("late-", &mut starting).unwrap();
        let is_settled = !starting.now.contains_key(&process);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((before, is_noticed), (vec![], true));
        assert_eq!((after, is_settled), (vec![process], true));
    }

    #[test]
    fn a_process_is_read_behind_any_name() {
        let pid = |pid| Pid::from_raw(pid);
        let check = |start: &[u8], expected: Option<(bool, i32, i32)>| {
            let rest = b" 7 0 -1 4194560 9 8 7 6 5 4 3 2 20 0 1 0 4711 2469888 200";
            let stat = Stat::parse(&[start, rest].concat());
            let expected = expected.map(|(is_dead, parent, group)| Stat {
                is_dead,
                parent: pid(parent),
                group: pid(group),
                is_kernels: false,
                started: 4711,
            });
            assert_eq!(stat, expected, "{}", start.escape_ascii());
        };
        check(b"7 (cat) S 1 7", Some((false, 1, 7)));
        check(b"7 (a) S 9 (b) R 12 8", Some((false, 12, 8)));
        check(b"7 (new\nline\xff) T 3 7", Some((false, 3, 7)));
        check(b"7 (dead) Z 1 7", Some((true, 1, 7)));
        check(b"2 (kthreadd) S 0 0", Some((false, 0, 0)));
        check(b"7 cut", None);
        let kernels =
            Stat::parse(b"9 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 4 0 0");
        assert!(kernels.unwrap().is_kernels);
        for cut in [&b""[..], b"7 (cut) S", b"7 (cut) S 1 7 7 0 -1"] {
            assert_eq!(Stat::parse(cut), None, "{}", cut.escape_ascii());
        }
    }
}

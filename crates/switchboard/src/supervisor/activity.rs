//! Measures the activity of a process tree, to distinguish an installer that makes progress from one that hangs.
//!
//! Reads `/proc` only; on systems without it, no activity is reported.

use std::collections::{BTreeSet, HashMap};
use std::fs;

/// Snapshot of a process tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// The root process and its descendants.
    processes: BTreeSet<u32>,
    /// Bytes read and written so far by the processes alive now.
    bytes: u64,
}

/// An idle program still reads a few bytes now and then, for timers and events.
const IDLE_BYTES: u64 = 4 * 1024;

impl Activity {
    /// Takes a snapshot of a process and its descendants.
    pub(crate) fn of(root: u32) -> Self {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            if let Some((pid, parent)) = pid.and_then(|pid| Some((pid, parent(pid)?))) {
                children.entry(parent).or_default().push(pid);
            }
        }
        let mut activity = Self::default();
        let mut left = vec![root];
        while let Some(pid) = left.pop() {
            if activity.processes.insert(pid) {
                activity.bytes = activity.bytes.saturating_add(transferred(pid));
                left.extend(children.remove(&pid).into_iter().flatten());
            }
        }
        activity
    }

    /// Whether a process was started or more than [`IDLE_BYTES`] were transferred since the earlier snapshot.
    pub(crate) fn is_progress_since(&self, earlier: &Self) -> bool {
        !self.processes.is_subset(&earlier.processes)
            || self.bytes > earlier.bytes.saturating_add(IDLE_BYTES)
    }
}

/// Parent of a running process.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name may contain any character, so parsing starts after its closing parenthesis.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z").then_some(parent)
}

/// Bytes a process has read and written, pipes and sockets included.
fn transferred(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let counts = io.lines().filter_map(|line| {
        let (name, count) = line.split_once(':')?;
        ["rchar", "wchar"]
            .contains(&name)
            .then(|| count.trim().parse::<u64>().ok())?
    });
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::Write as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn bytes_and_new_processes_are_progress_and_waiting_is_none() {
        let mut child = Command::new("sh")
            .args(["-c", "head -c 1000000 >/dev/null; read line; sleep 600"])
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let root = child.id();
        let mut input = child.stdin.take().unwrap();
        let first = Activity::of(root);
        assert!(first.processes.contains(&root));
        // The payload exceeds the pipe's capacity, so the write returns only once most of it has been read.
        input.write_all(&vec![b'x'; 1_000_000]).unwrap();
        input.write_all(b"\n").unwrap();
        let mut busy = Activity::of(root);
        while !busy.is_progress_since(&first) {
            busy = Activity::of(root);
        }
        // Once the process sleeps, its activity no longer changes.
        let asleep = |activity: &Activity| activity.processes.len() == 2;
        let mut before = Activity::of(root);
        while !(asleep(&before) && before == Activity::of(root)) {
            before = Activity::of(root);
        }
        assert!(!Activity::of(root).is_progress_since(&before));
        let group = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
    }
}

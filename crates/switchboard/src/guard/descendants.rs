//! Everything this process has started, directly or not, and how it is ended.
//!
//! Relies on this process being a child subreaper: whoever loses its parent becomes our child, so that no descendant
//! gets out of sight, wherever `setsid` or a double fork took it, and having no child at all means that none is left.
//! Where there is no subreaper or no `/proc`, the process group has to do. Owns the signals; must not reap.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_current_process_group, kill_process};

/// Asks every descendant to end.
pub(crate) fn terminate() {
    match descendants() {
        Some(found) => {
            for pid in found {
                // Whoever is gone by now needs no signal. A stopped process acts on it only once it continues.
                let _ = kill_process(pid, Signal::TERM);
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        // This process handles the signal, so it may be among those who get it.
        None => {
            let _ = kill_current_process_group(Signal::TERM);
        }
    }
}

/// Ends every descendant by force, until `reap` says that none is left or `patience` is over.
///
/// Only what belongs to another user or hangs in the kernel outlasts this.
pub(crate) fn kill(patience: Duration, mut reap: impl FnMut() -> Children) {
    let until = Instant::now() + patience;
    let mut pause = Duration::from_millis(1);
    while reap() == Children::Left && Instant::now() < until {
        let Some(frozen) = freeze() else {
            // The group holds this process too, so this is its last act.
            let _ = kill_current_process_group(Signal::KILL);
            return;
        };
        for pid in frozen {
            let _ = kill_process(pid, Signal::KILL);
        }
        // The dead have to be reaped before they are gone, and the system takes a moment to end them.
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(16));
    }
}

/// Whether this process has children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    /// At least one.
    Left,
    /// None, and so no descendants either.
    None,
}

/// Stops every descendant and returns them; `None` where they cannot be found.
///
/// What is stopped neither forks nor starts its helpers anew nor reaps its children. A look that finds nobody new has
/// therefore seen them all, and every process id in it still belongs to the process that was meant.
fn freeze() -> Option<HashSet<Pid>> {
    /// Enough for any tree that is not growing faster than it is looked at. Whoever escapes is met in the next round
    /// of killing, with fewer relatives.
    const LOOKS: usize = 16;

    let mut frozen = HashSet::new();
    for _ in 0..LOOKS {
        let mut anybody_new = false;
        for pid in descendants()? {
            if frozen.insert(pid) {
                anybody_new = true;
                let _ = kill_process(pid, Signal::STOP);
            }
        }
        if !anybody_new {
            break;
        }
    }
    Some(frozen)
}

/// All descendants, parents before children; `None` where the system does not say.
fn descendants() -> Option<Vec<Pid>> {
    if !cfg!(any(target_os = "linux", target_os = "android")) {
        return None;
    }
    let myself = getpid();
    if let Some(children) = listed_children(myself) {
        let children_of = |pid| listed_children(pid).unwrap_or_default();
        return Some(tree(children, children_of));
    }
    // A kernel that keeps no such lists: the parents of all processes have to be looked at.
    let mut all = all_children()?;
    let mut children_of = |pid| all.remove(&pid).unwrap_or_default();
    Some(tree(children_of(myself), children_of))
}

/// The children, their children, and so on.
fn tree(mut found: Vec<Pid>, mut children: impl FnMut(Pid) -> Vec<Pid>) -> Vec<Pid> {
    let mut looked_at = 0;
    while let Some(parent) = found.get(looked_at) {
        found.extend(children(*parent));
        looked_at += 1;
    }
    found
}

/// The children of a process as the kernel lists them, for each of its threads; `None` if there is no list at all.
///
/// A list may miss some when others end meanwhile, which is why all here is done until nobody is left.
fn listed_children(parent: Pid) -> Option<Vec<Pid>> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_pid())).ok()?;
    let mut found = None;
    for thread in threads.flatten() {
        // A thread that ends while we look leaves its children to another one.
        if let Ok(list) = std::fs::read_to_string(thread.path().join("children")) {
            let children = list.split_ascii_whitespace();
            let children = children.filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
            found.get_or_insert_with(Vec::new).extend(children);
        }
    }
    found
}

/// The living children of every process; `None` if no process is to be seen.
fn all_children() -> Option<HashMap<Pid, Vec<Pid>>> {
    let mut children_of: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()? {
        if let Some((pid, parent)) = entry.ok().and_then(|entry| process(&entry.file_name())) {
            children_of.entry(parent).or_default().push(pid);
        }
    }
    (!children_of.is_empty()).then_some(children_of)
}

/// The process with that entry in `/proc`, and its parent.
fn process(entry: &OsStr) -> Option<(Pid, Pid)> {
    let pid = Pid::from_raw(entry.to_str()?.parse().ok()?)?;
    // A process that ends while we look has no file any more.
    let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    Some((pid, living_parent(&stat)?))
}

/// The parent in a `/proc/PID/stat`, unless the process is dead and only waits to be reaped.
fn living_parent(stat: &[u8]) -> Option<Pid> {
    // The name of the program stands in brackets and may itself hold brackets, blanks and anything else.
    let after_name = stat.get(memchr::memrchr(b')', stat)? + 1..)?;
    let mut fields = std::str::from_utf8(after_name)
        .ok()?
        .split_ascii_whitespace();
    let state = fields.next()?;
    let parent = Pid::from_raw(fields.next()?.parse().ok()?)?;
    (!matches!(state, "Z" | "X")).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn both_ways_to_look_find_a_child() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let looked_up = all_children().unwrap().remove(&getpid()).unwrap();
        let listed = descendants().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(looked_up.contains(&pid));
        assert!(listed.contains(&pid));
    }

    #[test]
    fn the_parent_is_found_behind_any_name() {
        let check = |stat: &[u8], parent: Option<i32>| {
            assert_eq!(living_parent(stat).map(Pid::as_raw_pid), parent);
        };
        check(b"7 (cat) S 1 7 7 0 -1", Some(1));
        check(b"7 (a) S 9 (b) R 12 7 7 0", Some(12));
        check(b"7 (new\nline\xff) T 3 7", Some(3));
        check(b"7 (dead) Z 1 7 7", None);
        check(b"2 (kthreadd) S 0 0 0", None);
        check(b"7 (cut) S", None);
        check(b"", None);
    }
}

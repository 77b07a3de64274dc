//! Measures the resident memory of a server's processes, on systems that report it.

/// Resident memory of a process and all its descendants, in bytes. `None` if unknown.
#[cfg(target_os = "linux")]
pub(crate) fn memory(root: u32) -> Option<u64> {
    use std::collections::HashMap;

    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut resident: HashMap<u32, u64> = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(process) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // The process may have exited meanwhile.
        let Ok(status) = std::fs::read_to_string(entry.path().join("status")) else {
            continue;
        };
        let number = |field: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let parent = number("PPid:").and_then(|parent| u32::try_from(parent).ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(process);
        }
        resident.insert(process, number("VmRSS:").unwrap_or_default() * 1024);
    }
    resident.get(&root)?;
    let mut total = 0;
    let mut waiting = vec![root];
    while let Some(process) = waiting.pop() {
        // Each process is removed once visited, so a tree that changed meanwhile cannot cause a loop.
        total += resident.remove(&process).unwrap_or_default();
        waiting.extend(children.remove(&process).unwrap_or_default());
    }
    Some(total)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn memory(_: u32) -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::memory;

    #[test]
    fn the_memory_of_children_counts() {
        let own = memory(std::process::id()).unwrap();
        assert!(own > 0);
        let mut child = Command::new("/bin/sh")
            .args(["-c", "echo up; cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        let alone = memory(child.id()).unwrap();
        assert!(alone > 0);
        assert!(memory(std::process::id()).unwrap() > alone);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(memory(child.id()), None);
    }
}

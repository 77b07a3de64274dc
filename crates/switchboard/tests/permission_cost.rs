//! Tests that permitting a call with a thousand rules allocates no memory.
//!
//! A separate test program, because it counts all allocations of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write as _;
use std::path::PathBuf;

use switchboard::internal::permissions::Wanted;
use switchboard::permissions::{Engine, PermissionGate, Policy, Subject};
use switchboard::{CallId, Check, Verdict};
use switchboard_config::files::{Folders, InMemory};
use switchboard_config::resolve::{Config, Inputs};

struct Counting;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is exiting no longer counts.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + 1));
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is forwarded unchanged to the system's allocator, which upholds the contract; counting only
// updates a thread-local number and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`, and the memory comes from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract of `realloc`, and the memory comes from the system's allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A thousand rules of all kinds: names, globs, servers, conditions.
fn rules() -> String {
    let mut text = String::new();
    for number in 0..1000 {
        let (tool, action, condition) = match number % 5 {
            0 => (format!("mcp__server{number}__tool"), "deny", ""),
            1 => (format!("mcp__server{number}"), "ask", ""),
            2 => (format!("mcp__records__get_{number}_*"), "deny", ""),
            3 => (
                "mcp__records__search".to_owned(),
                "deny",
                "arguments = { query = { matches = '^forbidden' } }\n",
            ),
            _ => (format!("*_{number}_x"), "deny", ""),
        };
        // Only a few conditions per tool, as in practice.
        let condition = if number % 5 == 3 && number > 40 {
            continue;
        } else {
            condition
        };
        let _ = write!(
            text,
            "[[permissions.rules]]\ntool = '{tool}'\naction = '{action}'\n{condition}"
        );
    }
    text + "[[permissions.rules]]\ntool = 'mcp__records__*'\naction = 'allow'\n"
}

#[test]
fn an_allowed_call_allocates_nothing() {
    let folders = Folders {
        home: PathBuf::from("/nowhere/home"),
        config: PathBuf::from("/nowhere/home/.config/switchboard"),
        state: PathBuf::from("/nowhere/state"),
        project: std::env::temp_dir(),
        managed_file: None,
    };
    let path = folders.config.join("mcp.toml");
    let inputs = Inputs {
        folders: folders.clone(),
        ..Inputs::default()
    };
    let config = Config::load(&inputs, &InMemory::default().file(path, rules()));
    assert!(config.rules.len() > 800);
    let gate = PermissionGate::new(Engine::new(&config, &folders, Policy::agent()));
    let exposed = Subject::exposed_name("records", "search");
    let arguments: Box<serde_json::value::RawValue> = serde_json::from_str(
        r#"{"project": "switchboard", "query": "open issues", "limit": 20, "tags": ["a", "b"]}"#,
    )
    .expect("JSON");
    let wanted = Wanted {
        id: CallId(1),
        subject: Subject::of_server("records", "search", &exposed),
        arguments: Some(&arguments),
        tool: None,
        previewer: None,
        session: None,
        profile: None,
        client: None,
    };
    let passes = || matches!(gate.permit(wanted), Check::Now(Verdict::Pass(_)));
    // The first call of a tool caches its rules, and regular expressions allocate their caches.
    assert!(passes() && passes());
    let before = ALLOCATED.get();
    for _ in 0..1000 {
        assert!(passes());
    }
    assert_eq!(ALLOCATED.get() - before, 0);
}

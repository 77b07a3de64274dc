//! Registry of the main processes of all servers; the only module that reaps.
//!
//! Orphans become the supervisor's children, so the exits of all servers are reaped here. The exit of a main process is
//! reported to its server's task. This module must not send signals.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid, waitpid};
use tokio::sync::{Notify, oneshot};

use super::descendants::{Children, Kin};
use super::wire::Report;

/// All main processes not yet reaped.
#[derive(Default)]
pub(super) struct Mains {
    running: RefCell<HashMap<Pid, Main>>,
    /// Notified whenever children have exited.
    pub(super) some_ended: Notify,
}

struct Main {
    kin: Rc<RefCell<Kin>>,
    ended: oneshot::Sender<Report>,
}

impl Mains {
    /// Registers a main process. The receiver gets its exit status.
    pub(super) fn add(&self, pid: Pid, kin: Rc<RefCell<Kin>>) -> oneshot::Receiver<Report> {
        let (ended, receiver) = oneshot::channel();
        self.running.borrow_mut().insert(pid, Main { kin, ended });
        receiver
    }

    pub(super) fn pids(&self) -> HashSet<Pid> {
        self.running.borrow().keys().copied().collect()
    }

    /// Reaps every child that has exited.
    pub(super) fn reap(&self) -> Children {
        let mains = self.pids();
        for pid in &mains {
            // Scanned before it is reaped, while its id is still that of its process group.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if let Ok(Some(_)) = waitid(WaitId::Pid(*pid), options)
                && let Some(kin) = self.kin(*pid)
            {
                kin.borrow_mut().main_has_ended(&mains);
                if let Ok(Some((pid, status))) = waitpid(Some(*pid), WaitOptions::NOHANG) {
                    self.has_ended(pid, status);
                }
            }
        }
        let children = loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.has_ended(pid, status),
                Ok(None) => break Children::Left(self.pids().into_iter().collect()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break Children::None,
            }
        };
        self.some_ended.notify_waiters();
        children
    }

    fn has_ended(&self, pid: Pid, status: WaitStatus) {
        let Some(Main { kin, ended }) = self.running.borrow_mut().remove(&pid) else {
            return;
        };
        kin.borrow_mut().main_is_reaped();
        let report = match (status.exit_status(), status.terminating_signal()) {
            (Some(status), _) => Report::Exited(status),
            (None, signal) => Report::Signalled(signal.unwrap_or(0)),
        };
        // The receiver is gone if the server's task has ended.
        let _ = ended.send(report);
    }

    fn kin(&self, pid: Pid) -> Option<Rc<RefCell<Kin>>> {
        let running = self.running.borrow();
        running.get(&pid).map(|main| Rc::clone(&main.kin))
    }
}

//! The main processes of all servers, and the only place that reaps.
//!
//! Every process that has lost its parent is the supervisor's child, so the dead of all servers come together here. A main
//! process is told to the task of its server. This module must not signal anything.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid, waitpid};
use tokio::sync::{Notify, oneshot};

use super::descendants::{Children, Kin};
use super::wire::Report;

/// All main processes that are not reaped.
#[derive(Default)]
pub(super) struct Mains {
    running: RefCell<HashMap<Pid, Main>>,
    /// Told whenever children have ended.
    pub(super) some_ended: Notify,
}

struct Main {
    kin: Rc<RefCell<Kin>>,
    ended: oneshot::Sender<Report>,
}

impl Mains {
    /// Takes note of a main process. The receiver is told how it ended.
    pub(super) fn add(&self, pid: Pid, kin: Rc<RefCell<Kin>>) -> oneshot::Receiver<Report> {
        let (ended, receiver) = oneshot::channel();
        self.running.borrow_mut().insert(pid, Main { kin, ended });
        receiver
    }

    /// Their process ids.
    pub(super) fn pids(&self) -> HashSet<Pid> {
        self.running.borrow().keys().copied().collect()
    }

    /// Reaps all that have ended.
    pub(super) fn reap(&self) -> Children {
        let mains = self.pids();
        for pid in &mains {
            // It is looked at before it is reaped, so that its id is still that of its process group.
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
        // A task that has ended wants to know nothing.
        let _ = ended.send(report);
    }

    fn kin(&self, pid: Pid) -> Option<Rc<RefCell<Kin>>> {
        let running = self.running.borrow();
        running.get(&pid).map(|main| Rc::clone(&main.kin))
    }
}

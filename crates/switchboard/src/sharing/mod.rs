//! Connections that several hosts of one process share, so that each distinct server runs once.
//!
//! A daemon has one host for each project. Hosts with the same [`SharedConnections`] use one connection for servers with
//! the same key ([`ServerSpec::share_key`](crate::spec::ServerSpec)): the first one opens it, the others attach to it,
//! and the last one that leaves closes it. Everything else stays with each host: lists, pins, rules, permissions and
//! states. Reasons in `docs/design/0013-gateway.md`.
//!
//! | where | what |
//! |---|---|
//! | this file | the shared connections, and a host's place at one |
//! | `clients` | connections that belong to one client, for servers that must not be shared |

mod clients;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

use crate::peer::{Notice, Observer, OpenError, Peer, WeakPeer};
use crate::spec::ConnectionKey;
use crate::transport::Closed;

pub(crate) use clients::{BindingHandler, ClientConnections, ClientSettings};

/// The connections that hosts share. Cheap to clone; hosts with clones of one value share.
#[derive(Clone, Default)]
pub struct SharedConnections(Arc<Mutex<HashMap<ConnectionKey, Arc<Slot>>>>);

/// The place of one connection.
#[derive(Default)]
struct Slot {
    /// Locked while the connection is opened, so that only one host opens it.
    current: AsyncMutex<Option<(WeakPeer, Arc<Tenants>)>>,
}

impl SharedConnections {
    /// Attaches to the connection with this key, or opens it with the given observer. `observer` gets what the server
    /// sends from then on.
    pub(crate) async fn attach<F>(
        &self,
        key: ConnectionKey,
        observer: Arc<dyn Observer>,
        open: impl FnOnce(Arc<dyn Observer>) -> F,
    ) -> Result<Peer, OpenError>
    where
        F: Future<Output = Result<Peer, OpenError>>,
    {
        let slot = self.slot(key);
        let mut current = slot.current.lock().await;
        if let Some((peer, tenants)) = &*current
            && let Some(peer) = peer.upgrade().filter(Peer::is_open)
            && let Some(tenancy) = tenants.add(&observer)
        {
            if let Some(process) = peer.process() {
                observer.notice(Notice::Started(process));
            }
            return Ok(peer.with_tenancy(tenancy));
        }
        let tenants = Arc::new(Tenants::default());
        let tenancy = tenants.first(&observer);
        let peer = open(Arc::clone(&tenants) as Arc<dyn Observer>).await?;
        *current = Some((peer.downgrade(), tenants));
        Ok(peer.with_tenancy(tenancy))
    }

    fn slot(&self, key: ConnectionKey) -> Arc<Slot> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Slots whose connection is gone; one that is in use is held by its user.
        slots.retain(|of, slot| {
            *of == key
                || Arc::strong_count(slot) > 1
                || slot.current.try_lock().is_ok_and(|current| {
                    let peer = current.as_ref().and_then(|(peer, _)| peer.upgrade());
                    peer.is_some()
                })
        });
        Arc::clone(slots.entry(key).or_default())
    }
}

impl std::fmt::Debug for SharedConnections {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SharedConnections")
            .finish_non_exhaustive()
    }
}

/// The hosts that use one connection. What the server sends goes to all of them.
#[derive(Default)]
struct Tenants {
    table: Mutex<TenantTable>,
    numbered: AtomicU64,
}

#[derive(Default)]
struct TenantTable {
    tenants: Vec<(u64, Arc<dyn Observer>)>,
    /// Whether no host may attach any more.
    is_over: bool,
}

impl Tenants {
    fn table(&self) -> MutexGuard<'_, TenantTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host that opens the connection.
    fn first(self: &Arc<Self>, observer: &Arc<dyn Observer>) -> Arc<Tenancy> {
        self.enter(&mut self.table(), observer)
    }

    /// One more host; `None` if the connection is being closed.
    fn add(self: &Arc<Self>, observer: &Arc<dyn Observer>) -> Option<Arc<Tenancy>> {
        let mut table = self.table();
        let is_open = !table.is_over && !table.tenants.is_empty();
        is_open.then(|| self.enter(&mut table, observer))
    }

    fn enter(
        self: &Arc<Self>,
        table: &mut TenantTable,
        observer: &Arc<dyn Observer>,
    ) -> Arc<Tenancy> {
        let number = self.numbered.fetch_add(1, Ordering::Relaxed);
        table.tenants.push((number, Arc::clone(observer)));
        Arc::new(Tenancy {
            tenants: Arc::clone(self),
            number,
        })
    }

    fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let table = self.table();
        let observers = table.tenants.iter();
        observers
            .map(|(_, observer)| Arc::clone(observer))
            .collect()
    }
}

impl Observer for Tenants {
    fn notice(&self, notice: Notice<'_>) {
        for observer in self.observers() {
            observer.notice(notice.clone());
        }
    }

    fn closed(&self, closed: &Closed) {
        for observer in self.observers() {
            observer.closed(closed);
        }
    }
}

/// The place of one host at a shared connection. Dropping it leaves the connection.
pub(crate) struct Tenancy {
    tenants: Arc<Tenants>,
    number: u64,
}

impl Tenancy {
    /// Leaves the connection; returns whether no other host uses it, so that it is to be closed.
    pub(crate) fn leave(&self) -> bool {
        let mut table = self.tenants.table();
        table.tenants.retain(|(number, _)| *number != self.number);
        table.tenants.is_empty()
    }

    /// Leaves the connection if other hosts use it, or if `close` closes it for good; returns whether it did.
    pub(crate) fn leave_if(&self, close: impl FnOnce() -> bool) -> bool {
        let mut table = self.tenants.table();
        let has_others = table
            .tenants
            .iter()
            .any(|(number, _)| *number != self.number);
        if !has_others && !close() {
            return false;
        }
        table.tenants.retain(|(number, _)| *number != self.number);
        true
    }

    /// Makes the next host open another connection. Those that use this one keep it.
    pub(crate) fn give_up(&self) {
        self.tenants.table().is_over = true;
    }

    /// Whether other hosts use the connection.
    pub(crate) fn is_shared(&self) -> bool {
        self.tenants.table().tenants.len() > 1
    }
}

impl Drop for Tenancy {
    fn drop(&mut self) {
        self.leave();
    }
}

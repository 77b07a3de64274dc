//! Decides which connections to keep when there are too many.
//!
//! A connection starts as a stranger and becomes known with its first request that passes access control. The two have
//! separate limits, so connections without a token cannot displace clients that have one. New strangers are always
//! accepted, because a valid client looks the same as an attacker at that point; instead, the oldest stranger of the
//! address with the most strangers is evicted.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use super::options::HttpLimits;

/// Connection slots of one server.
#[derive(Debug)]
pub(super) struct Admission {
    limits: HttpLimits,
    strangers: Mutex<Strangers>,
    known: Arc<Semaphore>,
    /// Connections that passed access control and wait for a known slot.
    waiting: AtomicUsize,
}

/// One connection's slot, freed on drop.
#[derive(Debug)]
pub(super) struct Place {
    admission: Arc<Admission>,
    peer: Peer,
    number: u64,
    evicted: Arc<Notify>,
    /// Set once the connection is known.
    permit: OnceLock<OwnedSemaphorePermit>,
}

/// Key by which strangers are counted: an IPv4 address, an IPv6 /64 network, or `None` for a unix-domain socket.
type Peer = Option<IpAddr>;

#[derive(Debug, Default)]
struct Strangers {
    next: u64,
    total: usize,
    /// The strangers of each address, oldest first.
    by_peer: HashMap<Peer, BTreeMap<u64, Arc<Notify>>>,
}

impl Admission {
    pub(super) fn new(limits: &HttpLimits) -> Arc<Self> {
        Arc::new(Self {
            limits: limits.clone(),
            strangers: Mutex::default(),
            known: Arc::new(Semaphore::new(limits.max_connections)),
            waiting: AtomicUsize::new(0),
        })
    }

    /// Adds a connection as a stranger, evicting another if there are too many.
    pub(super) fn enter(self: &Arc<Self>, address: Option<IpAddr>) -> Place {
        let peer = address.map(network);
        let evicted = Arc::new(Notify::new());
        let mut strangers = self.strangers();
        let of_peer = strangers.by_peer.get(&peer).map_or(0, BTreeMap::len);
        if of_peer >= self.limits.max_strangers_per_address.max(1) {
            strangers.evict_oldest(peer);
        } else if strangers.total >= self.limits.max_strangers.max(1) {
            strangers.evict_from_largest();
        }
        let number = strangers.add(peer, Arc::clone(&evicted));
        drop(strangers);
        Place {
            admission: Arc::clone(self),
            peer,
            number,
            evicted,
            permit: OnceLock::new(),
        }
    }

    /// Evicts half of the strangers, for example when there are no file descriptors left.
    pub(super) fn make_room(&self) {
        let mut strangers = self.strangers();
        for _ in 0..strangers.total.div_ceil(2) {
            strangers.evict_from_largest();
        }
    }

    fn strangers(&self) -> MutexGuard<'_, Strangers> {
        self.strangers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Makes the connection known, waiting for a free slot. Returns `false` if it was evicted before, or if too many
    /// are waiting already.
    pub(super) async fn admit(&self) -> bool {
        if self.permit.get().is_some() {
            return true;
        }
        // Cannot be evicted from here on.
        if !self.admission.strangers().remove(self.peer, self.number) {
            return false;
        }
        let known = Arc::clone(&self.admission.known);
        let permit = if let Ok(permit) = Arc::clone(&known).try_acquire_owned() {
            permit
        } else {
            let Some(_waiting) = Waiting::begin(&self.admission) else {
                return false;
            };
            match known.acquire_owned().await {
                Ok(permit) => permit,
                // The semaphore is never closed.
                Err(_) => return false,
            }
        };
        let _ = self.permit.set(permit);
        true
    }

    /// Completes when the connection must be closed: it was evicted, or is still a stranger at its deadline.
    pub(super) async fn lost(&self) {
        let overdue = async {
            sleep(self.admission.limits.head_deadline).await;
            let is_stranger = self.admission.strangers().has(self.peer, self.number);
            if !is_stranger {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.evicted.notified() => {}
            () = overdue => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admission.strangers().remove(self.peer, self.number);
    }
}

/// Counts one waiting connection until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(admission: &'a Admission) -> Option<Self> {
        let waiting = &admission.waiting;
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        // Decrements on drop even if the limit is exceeded.
        let counted = Self(waiting);
        (before < admission.limits.max_connections).then_some(counted)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Strangers {
    fn add(&mut self, peer: Peer, evicted: Arc<Notify>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.total += 1;
        self.by_peer
            .entry(peer)
            .or_default()
            .insert(number, evicted);
        number
    }

    fn has(&self, peer: Peer, number: u64) -> bool {
        let of_peer = self.by_peer.get(&peer);
        of_peer.is_some_and(|of_peer| of_peer.contains_key(&number))
    }

    fn remove(&mut self, peer: Peer, number: u64) -> bool {
        let Some(of_peer) = self.by_peer.get_mut(&peer) else {
            return false;
        };
        let was_there = of_peer.remove(&number).is_some();
        if of_peer.is_empty() {
            self.by_peer.remove(&peer);
        }
        self.total -= usize::from(was_there);
        was_there
    }

    fn evict_oldest(&mut self, peer: Peer) {
        let oldest = self.by_peer.get(&peer).and_then(BTreeMap::first_key_value);
        let Some((number, evicted)) = oldest.map(|(number, evicted)| (*number, evicted.clone()))
        else {
            return;
        };
        self.remove(peer, number);
        evicted.notify_one();
    }

    fn evict_from_largest(&mut self) {
        let oldest = |of_peer: &BTreeMap<u64, _>| of_peer.keys().next().copied();
        let largest = self.by_peer.iter().max_by_key(|(_, of_peer)| {
            // On a tie, the address with the oldest stranger.
            (of_peer.len(), std::cmp::Reverse(oldest(of_peer)))
        });
        if let Some(peer) = largest.map(|(peer, _)| *peer) {
            self.evict_oldest(peer);
        }
    }
}

/// The network one machine controls. With IPv6 that is a /64, so all its addresses count as one.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            if let Some(address) = address.to_ipv4_mapped() {
                return IpAddr::V4(address);
            }
            let bits = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(bits))
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn admission(strangers: usize, per_address: usize, known: usize) -> Arc<Admission> {
        Admission::new(&HttpLimits {
            max_strangers: strangers,
            max_strangers_per_address: per_address,
            max_connections: known,
            ..HttpLimits::default()
        })
    }

    fn enter(admission: &Arc<Admission>, address: &str) -> Place {
        admission.enter(Some(address.parse().unwrap()))
    }

    /// The indexes of the places that were evicted.
    fn evicted(places: &[Place]) -> Vec<usize> {
        let indexed = places.iter().enumerate();
        indexed
            .filter(|(_, place)| !place.admission.strangers().has(place.peer, place.number))
            .map(|(index, _)| index)
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_stranger_of_an_address_gives_way() {
        let admission = admission(10, 3, 10);
        let mut places: Vec<_> = (0..3).map(|_| enter(&admission, "192.0.2.1")).collect();
        places.push(enter(&admission, "192.0.2.2"));
        assert_eq!(evicted(&places), [] as [usize; 0]);
        places.push(enter(&admission, "192.0.2.1"));
        assert_eq!(evicted(&places), [0]);
        places[0]
            .lost()
            .now_or_never()
            .expect("the eviction was not signalled");
        assert!(places[1].lost().now_or_never().is_none());
        // Dropping a place frees it.
        places.remove(1);
        places.push(enter(&admission, "192.0.2.1"));
        assert_eq!(evicted(&places), [0]);
    }

    #[test]
    fn an_address_with_many_strangers_gives_way_to_others() {
        let admission = admission(4, 10, 10);
        let mut places = vec![enter(&admission, "192.0.2.9")];
        places.extend((0..3).map(|_| enter(&admission, "192.0.2.1")));
        places.push(enter(&admission, "192.0.2.9"));
        assert_eq!(evicted(&places), [1]);
        // On a tie, the oldest of all is evicted.
        places.push(enter(&admission, "192.0.2.9"));
        assert_eq!(evicted(&places), [0, 1]);
        places.push(enter(&admission, "192.0.2.3"));
        assert_eq!(evicted(&places), [0, 1, 2]);
        // An IPv4-mapped address counts as the IPv4 address: it has two of the four places now, so its oldest is
        // evicted.
        places.push(enter(&admission, "::ffff:192.0.2.9"));
        assert_eq!(evicted(&places), [0, 1, 2, 4]);
    }

    #[test]
    fn one_network_is_one_peer() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network("2001:db8:1:3::1"), "2001:db8:1:3::");
        assert_eq!(network("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(network("192.0.2.1"), "192.0.2.1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_has_a_deadline_and_a_known_client_has_none() {
        let admission = admission(4, 4, 10);
        let (stranger, known) = (enter(&admission, "::1"), enter(&admission, "::1"));
        assert!(known.admit().await);
        assert!(known.admit().await, "admitting twice is a no-op");
        assert_eq!(admission.known.available_permits(), 9);
        let deadline = HttpLimits::default().head_deadline;
        let started = tokio::time::Instant::now();
        stranger.lost().await;
        assert_eq!(started.elapsed().as_secs(), deadline.as_secs());
        assert!(
            tokio::time::timeout(deadline * 100, known.lost())
                .await
                .is_err()
        );
        drop((stranger, known));
        assert_eq!(admission.known.available_permits(), 10);
        assert_eq!(admission.strangers().total, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_waiter_is_no_longer_counted() {
        let admission = admission(4, 4, 1);
        let known = enter(&admission, "::1");
        assert!(known.admit().await);
        for _ in 0..3 {
            let next = enter(&admission, "::1");
            // Polled once, so that it waits, then dropped.
            assert_eq!(next.admit().now_or_never(), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn known_clients_wait_for_known_slots_only() {
        let admission = admission(2, 2, 1);
        let known = enter(&admission, "::1");
        assert!(known.admit().await);
        let (next, one_too_many) = (enter(&admission, "::1"), enter(&admission, "::1"));
        let mut waiting = Box::pin(next.admit());
        assert!(waiting.as_mut().now_or_never().is_none());
        // As many connections may wait as may be known.
        assert!(!one_too_many.admit().await);
        // A flood of strangers does not evict a waiting connection.
        let flood: Vec<_> = (0..100).map(|_| enter(&admission, "::1")).collect();
        assert!(next.lost().now_or_never().is_none());
        assert_eq!(evicted(&flood).len(), 98);
        drop(known);
        assert!(waiting.await);
        let gone = &flood[0];
        assert!(!gone.admit().await, "it was evicted");
    }

    #[test]
    fn half_of_the_strangers_go_when_the_system_has_no_room() {
        let admission = admission(100, 100, 1);
        let places: Vec<_> = (0..5).map(|_| enter(&admission, "::1")).collect();
        admission.make_room();
        assert_eq!(evicted(&places), [0, 1, 2]);
        drop(places);
        admission.make_room();
        assert_eq!(admission.strangers().total, 0);
    }
}

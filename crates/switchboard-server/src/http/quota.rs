//! Limits on the requests of one client, and of all clients together: how many run at once, and how many start per
//! second.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::answer::{self, BoxedResponse};
use super::options::HttpLimits;
use crate::handler::Principal;

/// Number of clients beyond which those without requests are dropped.
const MAX_IDLE_ACCOUNTS: usize = 1024;

#[derive(Debug)]
pub(super) struct Quotas {
    max_requests: usize,
    max_requests_per_client: usize,
    /// Requests per second; `None` if not limited.
    rate: Option<f64>,
    /// Requests of all clients that are running.
    running: Arc<AtomicUsize>,
    accounts: Mutex<HashMap<Principal, Account>>,
}

#[derive(Debug)]
struct Account {
    running: Arc<AtomicUsize>,
    /// Requests that may start now, and when that was computed.
    allowance: f64,
    since: Instant,
}

/// A request that counts as running until it is dropped.
#[derive(Debug)]
pub(super) struct RunningRequest {
    _of_client: Counted,
    _of_server: Counted,
}

#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts one more, unless the limit is reached.
fn count(running: &Arc<AtomicUsize>, limit: usize) -> Option<Counted> {
    let before = running.fetch_add(1, Ordering::Relaxed);
    // Decrements on drop even if the limit is exceeded.
    let counted = Counted(Arc::clone(running));
    (before < limit).then_some(counted)
}

impl Quotas {
    pub(super) fn new(limits: &HttpLimits) -> Self {
        Self {
            max_requests: limits.max_requests,
            max_requests_per_client: limits.max_requests_per_client,
            rate: limits.max_rate_per_client.map(|rate| f64::from(rate.get())),
            running: Arc::default(),
            accounts: Mutex::default(),
        }
    }

    /// Counts a request of a client, or refuses it: with 503 if the server is overloaded, with 429 if the client is over
    /// its limits.
    pub(super) fn begin(&self, client: &Principal) -> Result<RunningRequest, BoxedResponse> {
        let of_server = count(&self.running, self.max_requests).ok_or_else(|| {
            answer::unavailable_for(OVERLOAD, "the server is overloaded; try again later")
        })?;
        let mut accounts = self.accounts();
        if accounts.len() > MAX_IDLE_ACCOUNTS {
            let rate = self.rate;
            accounts.retain(|_, account| !account.is_idle(rate));
        }
        if !accounts.contains_key(client) {
            accounts.insert(client.clone(), Account::new(self.rate));
        }
        let Some(account) = accounts.get_mut(client) else {
            return Err(answer::unavailable("the request cannot be counted"));
        };
        let of_client = count(&account.running, self.max_requests_per_client);
        let of_client = of_client.ok_or_else(|| {
            let why = "too many requests of this client are running";
            answer::too_many(OVERLOAD, why)
        })?;
        if let Some(rate) = self.rate {
            account
                .take(rate)
                .map_err(|wait| answer::too_many(wait, "this client sends requests too fast"))?;
        }
        Ok(RunningRequest {
            _of_client: of_client,
            _of_server: of_server,
        })
    }

    /// The number of requests that are running.
    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Principal, Account>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delay before a client should try again when too many requests are running.
const OVERLOAD: Duration = Duration::from_secs(1);

impl Account {
    fn new(rate: Option<f64>) -> Self {
        Self {
            running: Arc::default(),
            allowance: rate.unwrap_or_default(),
            since: Instant::now(),
        }
    }

    /// Takes one request off the allowance, which is that of one second at most; returns the time to wait if there is
    /// none left.
    fn take(&mut self, rate: f64) -> Result<(), Duration> {
        let now = Instant::now();
        let earned = now.duration_since(self.since).as_secs_f64() * rate;
        self.since = now;
        self.allowance = (self.allowance + earned).min(rate);
        if self.allowance < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - self.allowance) / rate));
        }
        self.allowance -= 1.0;
        Ok(())
    }

    /// Whether dropping it changes nothing.
    fn is_idle(&self, rate: Option<f64>) -> bool {
        let is_rested = rate.is_none() || self.since.elapsed() >= Duration::from_secs(1);
        is_rested && self.running.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn quotas(all: usize, each: usize, rate: Option<u32>) -> Quotas {
        Quotas::new(&HttpLimits {
            max_requests: all,
            max_requests_per_client: each,
            max_rate_per_client: rate.and_then(NonZeroU32::new),
            ..HttpLimits::default()
        })
    }

    fn status(begun: Result<RunningRequest, BoxedResponse>) -> (u16, String) {
        let refused = begun.err().unwrap();
        let wait = refused.headers().get("retry-after").unwrap();
        let wait = wait.to_str().unwrap().to_owned();
        (refused.status().as_u16(), wait)
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_one_client_do_not_count_for_another() {
        let quotas = quotas(3, 2, None);
        let (ci, other) = (
            Principal::Token("ci".into()),
            Principal::Token("other".into()),
        );
        let first = quotas.begin(&ci).ok().unwrap();
        let _second = quotas.begin(&ci).ok().unwrap();
        assert_eq!(status(quotas.begin(&ci)), (429, "1".to_owned()));
        let third = quotas.begin(&other).ok().unwrap();
        assert_eq!(status(quotas.begin(&other)), (503, "1".to_owned()));
        drop(third);
        drop(first);
        assert!(quotas.begin(&ci).is_ok());
        assert_eq!(quotas.running(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_of_a_client_is_limited() {
        let quotas = quotas(100, 100, Some(2));
        let client = Principal::Anyone;
        for _ in 0..2 {
            assert!(quotas.begin(&client).is_ok());
        }
        assert_eq!(status(quotas.begin(&client)), (429, "1".to_owned()));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert!(quotas.begin(&client).is_ok());
        assert_eq!(status(quotas.begin(&client)).0, 429);
        // Unused allowance is not saved up.
        tokio::time::advance(Duration::from_secs(100)).await;
        for _ in 0..2 {
            assert!(quotas.begin(&client).is_ok());
        }
        assert_eq!(status(quotas.begin(&client)).0, 429);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_without_requests_are_forgotten() {
        let quotas = quotas(10_000, 10, None);
        let client = |number: usize| Principal::Subject(number.to_string().into());
        let running = quotas.begin(&client(0)).ok().unwrap();
        for number in 1..5_000 {
            drop(quotas.begin(&client(number)).ok().unwrap());
        }
        assert!(quotas.accounts().len() <= MAX_IDLE_ACCOUNTS + 1);
        assert!(quotas.accounts().contains_key(&client(0)));
        drop(running);
    }
}

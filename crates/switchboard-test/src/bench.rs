//! Shared code of the benchmark clients of `cargo xtask bench`: their tasks and timing.
//!
//! Each client is a separate program, so that none shares an allocator, a runtime or a warm cache. All use the same
//! build profile and one thread, and print lines of JSON with times in nanoseconds and memory in bytes. `xtask`
//! compares them.
//!
//! The speed of a shared machine varies over tens of milliseconds. Calls are therefore made in short rounds, one per
//! line of input, and the clients alternate, so that adjacent rounds see the same conditions.
//!
//! ```text
//! CLIENT calls COUNT SERVER [ARGUMENT…]   per line of input: COUNT sequential calls, then some with 64 in flight
//! CLIENT count COUNT SERVER [ARGUMENT…]   exactly COUNT calls, for a tool that counts instructions
//! CLIENT list SERVER [ARGUMENT…]          connect and list all tools
//! CLIENT start COUNT SERVER [ARGUMENT…]   connect to COUNT servers at once, until the tools of all are known
//! ```

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;

/// The tool of the echo server that is called.
pub const TOOL: &str = "echo_0";

/// Arguments of every call.
pub const ARGUMENTS: &str = r#"{"text":"hello"}"#;

/// Number of concurrent calls.
const IN_FLIGHT: u64 = 64;

/// Calls before the measurement.
const WARM_UP: u64 = 500;

/// Concurrent calls per round.
const TOGETHER: u64 = 3_200;

/// Calls made from the thread itself, not from a task.
const LAST_CALLS: u64 = 10_000;

/// Time for one-off background work of a client before its instructions are counted.
const SETTLING: Duration = Duration::from_secs(3);

/// An error ends the client, so only its text matters.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The command of the server, which inherits the environment of the client.
#[derive(Debug, Clone)]
pub struct Server {
    /// Path or name of the executable.
    pub program: OsString,
    /// Command line arguments.
    pub arguments: Vec<OsString>,
}

/// A client to be measured.
pub trait Contestant: Sized + Send + 'static {
    /// Its name in the result tables.
    const NAME: &'static str;

    /// Connects to `count` servers at once and waits until the tools of all are known.
    fn open(server: Server, count: usize) -> impl Future<Output = Result<Self, Failure>> + Send;

    /// Calls [`TOOL`] of the first server with [`ARGUMENTS`] and checks that there is a result.
    fn call(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Number of known tools.
    fn tools(&self) -> usize;

    /// A handle for concurrent calls; `None` if the client can make only one call at a time.
    fn share(&self) -> Option<Self>;

    /// Closes the connections.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// Runs the task of the command line.
pub fn run<C: Contestant>() -> ExitCode {
    match measure::<C>() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{}: {error}", C::NAME);
            ExitCode::FAILURE
        }
    }
}

/// One line of output, times in nanoseconds.
#[derive(Debug, Default, Serialize)]
struct Report {
    client: &'static str,
    /// From the start until the tools are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<u64>,
    /// Median time of a call made from a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    sequential: Option<u64>,
    /// Median time of a call made from the thread itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocking: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    /// Peak memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
}

fn measure<C: Contestant>() -> Result<(), Failure> {
    let mut words = std::env::args_os().skip(1);
    let task = words.next().unwrap_or_default();
    let has_count = task != "list";
    let count = if has_count {
        let count = words.next().ok_or("missing count")?;
        count.to_string_lossy().parse()?
    } else {
        1
    };
    let server = Server {
        program: words.next().ok_or("missing server")?,
        arguments: words.collect(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = match task.to_str() {
        Some("calls") => calls::<C>(&runtime, server, count)?,
        Some("count") => {
            let counted = async move {
                let mut client = C::open(server, 1).await?;
                tokio::time::sleep(SETTLING).await;
                for _ in 0..count {
                    client.call().await?;
                }
                client.close().await;
                Ok::<_, Failure>(())
            };
            runtime.block_on(runtime.spawn(counted))??;
            Report::default()
        }
        Some("list") => runtime.block_on(open::<C>(server, 1))?,
        Some("start") => runtime.block_on(open::<C>(server, usize::try_from(count)?))?,
        _ => return Err("the task must be `calls`, `count`, `list` or `start`".into()),
    };
    let report = Report {
        client: C::NAME,
        ..report
    };
    writeln!(io::stdout(), "{}", serde_json::to_string(&report)?)?;
    Ok(())
}

/// Connects and waits until all tools are known.
async fn open<C: Contestant>(server: Server, count: usize) -> Result<Report, Failure> {
    let before = memory("VmRSS:");
    let start = Instant::now();
    let client = C::open(server, count).await?;
    let open = nanoseconds(start);
    let after = memory("VmHWM:");
    let report = Report {
        open: Some(open),
        tools: Some(client.tools()),
        memory: before
            .zip(after)
            .map(|(before, after)| after.saturating_sub(before)),
        ..Report::default()
    };
    client.close().await;
    Ok(report)
}

fn calls<C: Contestant>(
    runtime: &tokio::runtime::Runtime,
    server: Server,
    count: u64,
) -> Result<Report, Failure> {
    let mut client = runtime.block_on(async move {
        let mut client = C::open(server, 1).await?;
        for _ in 0..WARM_UP {
            client.call().await?;
        }
        Ok::<_, Failure>(client)
    })?;
    let mut turns = Vec::new();
    for line in io::stdin().lines() {
        line?;
        let turn = runtime.spawn(async move {
            let median = one_by_one(&mut client, count).await;
            (client, median)
        });
        let median;
        (client, median) = runtime.block_on(turn)?;
        let median = median?;
        turns.push(median);
        let together = runtime.block_on(many_at_once(&mut client, TOGETHER))?;
        let line = json!({"one": median, "together": together});
        writeln!(io::stdout(), "{line}")?;
        io::stdout().flush()?;
    }
    let blocking = runtime.block_on(one_by_one(&mut client, LAST_CALLS))?;
    runtime.block_on(client.close());
    Ok(Report {
        sequential: Some(middle(turns)),
        blocking: Some(blocking),
        ..Report::default()
    })
}

/// Runs calls sequentially and returns the median time.
async fn one_by_one<C: Contestant>(client: &mut C, count: u64) -> Result<u64, Failure> {
    let mut times = Vec::with_capacity(usize::try_from(count)?);
    for _ in 0..count {
        let start = Instant::now();
        client.call().await?;
        times.push(nanoseconds(start));
    }
    Ok(middle(times))
}

/// The time per call with many in flight; `None` if the client does not support that.
async fn many_at_once<C: Contestant>(client: &mut C, count: u64) -> Result<Option<u64>, Failure> {
    let each = count / IN_FLIGHT;
    let finished = Arc::new(Finished::default());
    let mut workers = Vec::new();
    for _ in 0..IN_FLIGHT {
        let Some(mut client) = client.share() else {
            return Ok(None);
        };
        let finished = Arc::clone(&finished);
        workers.push(tokio::spawn(async move {
            for _ in 0..each {
                client.call().await?;
                finished.one_more();
            }
            Ok::<_, Failure>(())
        }));
    }
    for worker in workers {
        worker.await??;
    }
    Ok(Some(finished.median()))
}

/// Timestamps taken every few calls: other load on the machine distorts some intervals, but not their median.
#[derive(Default)]
struct Finished {
    count: AtomicU64,
    moments: Mutex<Vec<Instant>>,
}

/// Calls between two timestamps.
const STRIDE: u64 = 256;

impl Finished {
    fn one_more(&self) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        if count.is_multiple_of(STRIDE) {
            let moments = self.moments.lock();
            let mut moments = moments.unwrap_or_else(PoisonError::into_inner);
            moments.push(Instant::now());
        }
    }

    /// The median time per call.
    fn median(&self) -> u64 {
        let moments = self.moments.lock();
        let moments = moments.unwrap_or_else(PoisonError::into_inner);
        let strides = moments.windows(2).filter_map(|pair| match pair {
            [one, next] => Some((*next - *one).as_nanos() / u128::from(STRIDE)),
            _ => None,
        });
        let strides = strides.map(|time| u64::try_from(time).unwrap_or(u64::MAX));
        middle(strides.collect())
    }
}

fn middle(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn nanoseconds(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A value of `/proc/self/status`, in bytes; `None` on other systems.
fn memory(what: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

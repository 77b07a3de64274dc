//! One server under the supervisor: spawning it, and shutting it down in stages.
//!
//! Owns the server's control socket and the current stage. Must not reap: `mains` reports exits.

use std::cell::RefCell;
use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::process::{Child, Command};
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::activity::Activity;
use super::confined::{self, Confined};
use super::descendants::{FIRST_PAUSE, Kin, next_pause};
use super::mains::Mains;
use super::wire::{CLOSE, Descriptors, FINISH, Instructions, LEAVE, MARK, Report, receive_some};
use super::{KILL_PATIENCE, SHORT_GRACE, host_has_gone, parent_death};

/// Buffer size that fits most instructions, environment included.
const ROOM: usize = 16 * 1024;

/// Interval between checks of an installer.
const LOOK: Duration = Duration::from_secs(1);

/// How long an installer may show no activity.
const QUIET: Duration = Duration::from_secs(15);

/// How long the final report may be delayed by the removal of temporary files.
const REMOVAL: Duration = Duration::from_secs(1);

/// A server that runs, or whose processes may still exist.
pub(super) struct Server {
    control: UnixStream,
    mains: Rc<Mains>,
    kin: Rc<RefCell<Kin>>,
    /// Receives the exit status of the main process; `None` once that is reported.
    ended: Option<oneshot::Receiver<Report>>,
    /// Whether the control socket is open for reading.
    host_is_there: bool,
    /// Whether the host has left: it does not wait for the end and may exit before it.
    host_leaves: bool,
    after_close: Duration,
    after_terminate: Duration,
    to_finish: Duration,
    /// Id of the main process, for measuring its activity; may be reused once it has exited.
    main: u32,
    /// Read ends of its output, drained once the host is gone.
    output: Vec<Output>,
    /// Resources of its sandbox; `None` without one.
    confined: Option<Confined>,
}

/// Stage of the shutdown.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Serving,
    /// Its input is closed; it may exit until this deadline.
    Closing(Instant),
    /// It is being installed; time of the next activity check.
    Finishing(Instant),
    /// SIGTERM was sent; it may exit until this deadline.
    Terminating(Instant),
}

enum Event {
    /// The host requests an orderly shutdown.
    Close,
    /// The host requests an orderly shutdown and does not wait for it.
    Leave,
    /// The host no longer wants a server that is still being installed.
    Finish,
    EndNow,
    MainEnded(Report),
    /// A child of the supervisor has exited.
    SomeEnded,
    /// The deadline of the stage has passed.
    TimeIsUp,
}

impl Server {
    /// Spawns the server that the host describes and reports the outcome. `None` if it does not run.
    pub(super) async fn start(descriptors: Descriptors, mains: Rc<Mains>) -> Option<Self> {
        let Descriptors {
            control,
            stdin,
            stdout,
            stderr,
        } = descriptors;
        let control = BlockingStream::from(control);
        control.set_nonblocking(true).ok()?;
        // Usually the instructions have arrived completely.
        let mut room = vec![0; ROOM];
        let start = receive_some(&control, &mut room).ok()?;
        let mut control = UnixStream::from_std(control).ok()?;
        let mut output = Vec::new();
        let outcome = match Instructions::receive(&mut start.chain(&mut control)).await {
            Ok(instructions) if !host_has_gone(instructions.host) => {
                if !instructions.to_finish.is_zero() {
                    output.extend([&stdout, &stderr].into_iter().filter_map(Output::of));
                }
                let mut command = Command::new(&instructions.program);
                command.stdin(stdin).stdout(stdout).stderr(stderr);
                Some((spawn(&instructions, command), instructions))
            }
            // The host has given up.
            _ => None,
        };
        let (main, confined, instructions) = match outcome {
            Some((Ok((main, confined)), instructions)) => (main, confined, instructions),
            Some((Err(refusal), _)) => {
                tell(&mut control, refusal).await;
                tell(&mut control, Report::Gone).await;
                return None;
            }
            None => {
                tell(&mut control, Report::Gone).await;
                return None;
            }
        };
        let kin = Rc::new(RefCell::new(Kin::new(main, mark(&instructions))));
        let ended = mains.add(main, Rc::clone(&kin));
        let mut server = Self {
            control,
            mains,
            kin,
            ended: Some(ended),
            host_is_there: true,
            host_leaves: false,
            after_close: instructions.after_close,
            after_terminate: instructions.after_terminate,
            to_finish: instructions.to_finish,
            main: main.as_raw_pid().unsigned_abs(),
            output,
            confined,
        };
        server.tell(Report::Started(main.as_raw_pid())).await;
        Some(server)
    }

    /// Runs until no process of the server is left and reports that to the host. Cancel-safe.
    pub(super) async fn watch(&mut self) {
        let mut stage = Stage::Serving;
        let mut finishing = Finishing::default();
        loop {
            let main_runs = self.ended.is_some();
            if !main_runs && self.is_gone() {
                break;
            }
            if !main_runs && !matches!(stage, Stage::Terminating(_)) {
                stage = self.terminate(SHORT_GRACE);
            }
            stage = match (self.event(stage).await, stage) {
                (Event::Close, Stage::Serving) => Stage::Closing(Instant::now() + self.after_close),
                (Event::Leave, stage) => {
                    self.host_leaves = true;
                    match stage {
                        Stage::Serving => Stage::Closing(Instant::now() + self.after_close),
                        stage => stage,
                    }
                }
                (Event::Finish, Stage::Serving | Stage::Closing(_)) => {
                    self.host_leaves = true;
                    // The server must neither get a broken pipe nor block on writing.
                    for output in self.output.drain(..) {
                        tokio::task::spawn_local(output.drain());
                    }
                    finishing = Finishing::new(self.to_finish);
                    Stage::Finishing(Instant::now())
                }
                (Event::TimeIsUp, Stage::Finishing(_)) => {
                    if finishing.goes_on(self.main) {
                        Stage::Finishing(Instant::now() + LOOK)
                    } else {
                        self.terminate(self.after_terminate)
                    }
                }
                (Event::MainEnded(report), stage) => {
                    self.ended = None;
                    self.tell(report).await;
                    stage
                }
                (Event::Finish | Event::SomeEnded | Event::Close, stage) => stage,
                (Event::EndNow, Stage::Terminating(until)) => {
                    Stage::Terminating(until.min(Instant::now() + SHORT_GRACE))
                }
                (Event::EndNow, _) => self.terminate(SHORT_GRACE),
                (Event::TimeIsUp, Stage::Terminating(_)) => {
                    self.kill().await;
                    break;
                }
                (Event::TimeIsUp, _) => self.terminate(self.after_terminate),
            };
        }
        if let Some(confined) = self.confined.take() {
            // Removal may take long, so it must not block the other servers.
            let removed = tokio::task::spawn_blocking(move || drop(confined));
            let _ = tokio::time::timeout(REMOVAL, removed).await;
        }
        self.farewell().await;
    }

    /// Sends the reports still due: the exit status of the main process, and that nothing is left.
    pub(super) async fn farewell(&mut self) {
        if let Some(mut ended) = self.ended.take()
            && let Ok(report) = ended.try_recv()
        {
            self.tell(report).await;
        }
        self.tell(Report::Gone).await;
    }

    async fn event(&mut self, stage: Stage) -> Event {
        let time_is_up = async {
            match stage {
                Stage::Serving => pending().await,
                Stage::Closing(until) | Stage::Finishing(until) | Stage::Terminating(until) => {
                    tokio::time::sleep_until(until).await;
                }
            }
        };
        let control = &mut self.control;
        let host_is_there = &mut self.host_is_there;
        let host_leaves = self.host_leaves;
        let host = async {
            if !*host_is_there {
                return pending().await;
            }
            match control.read_u8().await {
                Ok(CLOSE) => return Event::Close,
                Ok(LEAVE) => return Event::Leave,
                Ok(FINISH) => return Event::Finish,
                _ => *host_is_there = false,
            }
            if host_leaves {
                // The host has already chosen how the server is to end.
                return pending().await;
            }
            Event::EndNow
        };
        let ended = &mut self.ended;
        let mains = &self.mains;
        let process = async {
            let Some(ended) = ended else {
                mains.some_ended.notified().await;
                return Event::SomeEnded;
            };
            match ended.await {
                Ok(report) => Event::MainEnded(report),
                Err(_) => pending().await,
            }
        };
        tokio::select! {
            event = host => event,
            event = process => event,
            () = time_is_up => Event::TimeIsUp,
        }
    }

    fn terminate(&self, grace: Duration) -> Stage {
        self.kin.borrow_mut().terminate(&self.mains.pids());
        Stage::Terminating(Instant::now() + grace)
    }

    fn is_gone(&self) -> bool {
        self.kin.borrow_mut().is_gone(&self.mains.pids())
    }

    /// Kills all of it, except processes of another user or stuck in the kernel.
    async fn kill(&self) {
        let until = Instant::now() + KILL_PATIENCE;
        let mut pause = FIRST_PAUSE;
        while !self.is_gone() && Instant::now() < until {
            self.kin.borrow_mut().kill(&self.mains.pids());
            // Killed processes exist until they are reaped, and the kernel takes a moment to end them.
            tokio::time::sleep(pause).await;
            pause = next_pause(pause);
            self.mains.reap();
        }
    }

    async fn tell(&mut self, report: Report) {
        tell(&mut self.control, report).await;
    }
}

/// Limits for an installer that the host no longer wants.
#[derive(Default)]
struct Finishing {
    until: Option<Instant>,
    quiet_until: Option<Instant>,
    seen: Option<Activity>,
}

impl Finishing {
    fn new(limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            until: Some(now + limit),
            quiet_until: Some(now + QUIET),
            seen: None,
        }
    }

    /// Measures its activity and returns whether it may continue.
    fn goes_on(&mut self, main: u32) -> bool {
        let seen = Activity::of(main);
        let before = self.seen.replace(seen.clone());
        let now = Instant::now();
        if before.is_some_and(|before| seen.is_progress_since(&before)) {
            self.quiet_until = Some(now + QUIET);
        }
        self.until.is_some_and(|until| now < until)
            && self.quiet_until.is_some_and(|until| now < until)
    }
}

/// The read end of a server's output. While it is open, writing does not kill the server with a broken pipe.
struct Output(pipe::Receiver);

impl Output {
    /// The read end of a pipe that a server writes to; `None` if the system does not provide it.
    fn of(written: &OwnedFd) -> Option<Self> {
        let path = format!("/proc/self/fd/{}", written.as_raw_fd());
        let read = pipe::OpenOptions::new().open_receiver(path).ok()?;
        Some(Self(read))
    }

    /// Reads and discards everything.
    async fn drain(mut self) {
        let mut room = [0; 4096];
        while let Ok(1..) = self.0.read(&mut room).await {}
    }
}

/// Spawns the main process as the leader of a session and group, so that a server that signals its group reaches only
/// itself.
fn spawn(
    instructions: &Instructions,
    mut command: Command,
) -> Result<(Pid, Option<Confined>), Report> {
    command
        .args(&instructions.args)
        .env_clear()
        .envs(instructions.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &instructions.cwd {
        command.current_dir(cwd);
    }
    parent_death::lead_session(&mut command);
    parent_death::kill_with_parent(&mut command);
    let refused = |error: io::Error| Report::NotStarted(error.raw_os_error().unwrap_or(0));
    let (child, confined) = match &instructions.sandbox {
        None => (command.spawn().map_err(refused)?, None),
        Some(policy) => {
            let started = confined::start(policy, command);
            let (child, confined) = started.map_err(|error| Report::NoSandbox(error.code()))?;
            (child.map_err(refused)?, confined)
        }
    };
    let pid = pid_of(&child).ok_or(Report::NotStarted(0))?;
    Ok((pid, confined))
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// The server's mark as set by the host, whose entry is the last one.
fn mark(instructions: &Instructions) -> OsString {
    let mut marks = instructions.env.iter().rev();
    let mark = marks.find(|(name, _)| name == MARK);
    mark.map(|(_, mark)| mark.clone()).unwrap_or_default()
}

/// A failed write is ignored: if the host has gone, the next read detects it.
async fn tell(control: &mut UnixStream, report: Report) {
    let _ = control.write_all(&report.encode()).await;
}

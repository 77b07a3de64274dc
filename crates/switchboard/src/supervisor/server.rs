//! One server under the supervisor: how it is started, and the stages of its end.
//!
//! Owns the socket about this server and the stage. It must not reap: what has ended is told by `mains`.

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

/// What most instructions fit in, environment and all.
const ROOM: usize = 16 * 1024;

/// How often an installer is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long an installer may do nothing.
const QUIET: Duration = Duration::from_secs(15);

/// How long the end of a server is kept back for its temporary files to be removed.
const REMOVAL: Duration = Duration::from_secs(1);

/// A server that runs, or of which something may be left.
pub(super) struct Server {
    control: UnixStream,
    mains: Rc<Mains>,
    kin: Rc<RefCell<Kin>>,
    /// How the main process ended, once it has; `None` when that has been told.
    ended: Option<oneshot::Receiver<Report>>,
    /// Whether the host can still say something.
    host_is_there: bool,
    /// Whether the host does not wait for the end, and may be gone before it.
    host_leaves: bool,
    after_close: Duration,
    after_terminate: Duration,
    to_finish: Duration,
    /// The main process, to look at what it does; its id may be another's once it has ended.
    main: u32,
    /// The ends of its output that nobody reads once the host is gone.
    output: Vec<Output>,
    /// What its sandbox needs, if it is in one.
    confined: Option<Confined>,
}

/// How far the end has come.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// The server serves.
    Serving,
    /// Its input is closed; it may end by itself until then.
    Closing(Instant),
    /// It is being installed; the next look at whether that makes progress is then.
    Finishing(Instant),
    /// It has been told to end, and may do so until then.
    Terminating(Instant),
}

/// What is waited for.
enum Event {
    /// The host wants an orderly end.
    Close,
    /// The host wants an orderly end and does not wait for it.
    Leave,
    /// The host does not want what is being installed.
    Finish,
    /// The host has gone.
    EndNow,
    /// The main process has ended.
    MainEnded(Report),
    /// A child of the supervisor has ended.
    SomeEnded,
    /// The time of the stage is up.
    TimeIsUp,
}

impl Server {
    /// Starts the server that the host describes, and tells it how that went. `None` if it does not run.
    pub(super) async fn start(descriptors: Descriptors, mains: Rc<Mains>) -> Option<Self> {
        let Descriptors {
            control,
            stdin,
            stdout,
            stderr,
        } = descriptors;
        let control = BlockingStream::from(control);
        control.set_nonblocking(true).ok()?;
        // Usually all of the instructions are there.
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

    /// Watches until nothing of it is left, and tells the host so. May be dropped at any time.
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
                    // What it writes must not break it, and must not hold it up.
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
            // There may be many files, and nobody else is to wait for them.
            let removed = tokio::task::spawn_blocking(move || drop(confined));
            let _ = tokio::time::timeout(REMOVAL, removed).await;
        }
        self.farewell().await;
    }

    /// Tells the host what it has not been told: how the main process ended, and that nothing is left.
    pub(super) async fn farewell(&mut self) {
        if let Some(mut ended) = self.ended.take()
            && let Ok(report) = ended.try_recv()
        {
            self.tell(report).await;
        }
        self.tell(Report::Gone).await;
    }

    /// Waits for the next thing to act on.
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
                // It has said what is to become of the server.
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

    /// Ends all of it by force, unless it belongs to another user or hangs in the kernel.
    async fn kill(&self) {
        let until = Instant::now() + KILL_PATIENCE;
        let mut pause = FIRST_PAUSE;
        while !self.is_gone() && Instant::now() < until {
            self.kin.borrow_mut().kill(&self.mains.pids());
            // The dead have to be reaped before they are gone, and the system takes a moment to end them.
            tokio::time::sleep(pause).await;
            pause = next_pause(pause);
            self.mains.reap();
        }
    }

    async fn tell(&mut self, report: Report) {
        tell(&mut self.control, report).await;
    }
}

/// How long an installer may go on that the host does not want any longer.
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

    /// Looks at it, and says whether it may go on.
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

/// The reading end of a server's output. While it is open, a server that writes is not ended by that.
struct Output(pipe::Receiver);

impl Output {
    /// The other end of a pipe that a server writes to; `None` where the system does not give it.
    fn of(written: &OwnedFd) -> Option<Self> {
        let path = format!("/proc/self/fd/{}", written.as_raw_fd());
        let read = pipe::OpenOptions::new().open_receiver(path).ok()?;
        Some(Self(read))
    }

    /// Reads all of it, for nobody.
    async fn drain(mut self) {
        let mut room = [0; 4096];
        while let Ok(1..) = self.0.read(&mut room).await {}
    }
}

/// Starts the main process, as the leader of a session and group: a server that signals its whole group means its own.
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

/// The mark that the host has given the server, which is the last one.
fn mark(instructions: &Instructions) -> OsString {
    let mut marks = instructions.env.iter().rev();
    let mark = marks.find(|(name, _)| name == MARK);
    mark.map(|(_, mark)| mark.clone()).unwrap_or_default()
}

/// If the host has gone, the next read says so.
async fn tell(control: &mut UnixStream, report: Report) {
    let _ = control.write_all(&report.encode()).await;
}

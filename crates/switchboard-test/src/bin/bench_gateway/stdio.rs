//! A client over standard input and output that writes a line and reads a line per call.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::{Contestant, Era, Failure, IN_FLIGHT, INITIALIZE, INITIALIZED, is_result, write_call};

/// The capacity of a pipe.
const CAPACITY: usize = 64 * 1024;

pub(super) struct StdioClient {
    child: Child,
    /// `None` once closed.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    tool: String,
    last_id: u64,
    line: Vec<u8>,
    out: Vec<u8>,
}

impl StdioClient {
    /// Starts the contestant and completes the handshake.
    pub(super) fn open(contestant: &Contestant) -> Result<Self, Failure> {
        let mut command = command(contestant)?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("no standard output")?;
        let mut client = Self {
            child,
            input,
            output: BufReader::with_capacity(CAPACITY, output),
            tool: contestant.tool.clone(),
            last_id: 0,
            line: Vec::with_capacity(CAPACITY),
            out: Vec::with_capacity(CAPACITY),
        };
        client.out.extend_from_slice(INITIALIZE.as_bytes());
        client.out.push(b'\n');
        client.flush()?;
        client.answer()?;
        client.out.extend_from_slice(INITIALIZED.as_bytes());
        client.out.push(b'\n');
        client.flush()?;
        Ok(client)
    }

    pub(super) fn call(&mut self) -> Result<(), Failure> {
        self.request()?;
        self.flush()?;
        self.answer()
    }

    /// Makes calls with many in flight: as many new ones as answers have arrived, written at once.
    pub(super) fn many(&mut self, count: usize) -> Result<(), Failure> {
        let mut sent = count.min(IN_FLIGHT);
        for _ in 0..sent {
            self.request()?;
        }
        self.flush()?;
        for _ in 0..count {
            self.answer()?;
            if sent < count {
                self.request()?;
                sent += 1;
            }
            if self.output.buffer().is_empty() {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Resident memory of the process, in bytes; 0 if unknown.
    pub(super) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
        kibibytes.unwrap_or(0) * 1024
    }

    fn request(&mut self) -> Result<(), Failure> {
        self.last_id += 1;
        write_call(&mut self.out, self.last_id, &self.tool, Era::Stateful)?;
        self.out.push(b'\n');
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let input = self.input.as_mut().ok_or("closed")?;
        input.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Reads the next response; skips notifications and requests.
    fn answer(&mut self) -> Result<(), Failure> {
        loop {
            self.line.clear();
            if self.output.read_until(b'\n', &mut self.line)? == 0 {
                return Err("it closed its output".into());
            }
            let head = self.line.get(..256).unwrap_or(&self.line);
            if is_result(head) {
                return Ok(());
            }
            if memchr::memmem::find(head, b"\"method\":").is_none() {
                return Err(String::from_utf8_lossy(head).into_owned().into());
            }
        }
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        // Most exit when their input ends; some only when they are killed.
        drop(self.input.take());
        for _ in 0..200 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a contestant to its end.
pub(super) fn run(contestant: &Contestant) -> Result<(), Failure> {
    let mut command = command(contestant)?;
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{}: {status}", contestant.name).into())
    }
}

fn command(contestant: &Contestant) -> Result<Command, Failure> {
    let (program, arguments) = contestant.command.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).envs(&contestant.environment);
    if let Some(folder) = &contestant.folder {
        command.current_dir(folder);
    }
    Ok(command)
}

//! The protocol between host and supervisor, over their sockets.
//!
//! The socket passed at startup carries the [`Descriptors`] of each server, among them a control socket for that
//! server. On the control socket the host first sends one block of [`Instructions`], later one byte ([`CLOSE`],
//! [`LEAVE`] or [`FINISH`]) to request an orderly shutdown; the supervisor sends [`Report`]s of five bytes. End of
//! stream means that the other side has gone. Both ends are the same build, so there is no version, and any mismatch is
//! an error. This module only encodes and decodes.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use switchboard_config::entry::SandboxMode;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::sandbox::Policy;

/// Byte from the host: shut the server down in order.
pub(crate) const CLOSE: u8 = b'C';

/// Byte from the host: shut the server down in order; the host does not wait for it. The server gets its full grace
/// period even when the host has exited.
pub(crate) const LEAVE: u8 = b'L';

/// Byte from the host: the server is no longer wanted, but its package runner is still installing. The runner may
/// continue as long as it makes progress, whether or not the host is still there.
pub(crate) const FINISH: u8 = b'F';

/// Environment variable that marks every process a server starts. Its value is unique per server and host.
pub(crate) const MARK: &str = "SWITCHBOARD_SERVER_ID";

/// The descriptors the supervisor needs for one server.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// Control socket of this server.
    pub(crate) control: OwnedFd,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// The program to start, and its grace periods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub(crate) host: u32,
    /// The program, as an already resolved path.
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// Its complete environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Working directory; `None` for the supervisor's own.
    pub(crate) cwd: Option<PathBuf>,
    /// Sandbox policy; `None` to run without a sandbox.
    pub(crate) sandbox: Option<Policy>,
    /// Grace period after its input is closed.
    pub(crate) after_close: Duration,
    /// Grace period after SIGTERM.
    pub(crate) after_terminate: Duration,
    /// How long it may continue after [`FINISH`]; zero for a program that is not a package runner.
    pub(crate) to_finish: Duration,
}

/// Message from the supervisor to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The server runs with this process id.
    Started(i32),
    /// The system refused to spawn it, with this error number.
    NotStarted(i32),
    /// It was not spawned because its sandbox cannot be enforced; the number is the reason.
    NoSandbox(i32),
    /// The main process exited with this status.
    Exited(i32),
    /// The main process was killed by this signal.
    Signalled(i32),
    /// No process of the server is left; the last report.
    Gone,
}

/// Far above the size at which systems refuse arguments and environments.
const MAX_INSTRUCTIONS: usize = 64 * 1024 * 1024;

const HEADER: [u8; 4] = *b"SBG1";

impl Descriptors {
    /// Passes duplicates to the supervisor; the originals can be closed afterwards.
    pub(crate) fn send(&self, supervisor: &UnixStream) -> io::Result<()> {
        let Self {
            control,
            stdin,
            stdout,
            stderr,
        } = self;
        let descriptors = [control, stdin, stdout, stderr].map(AsFd::as_fd);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        loop {
            // Descriptors are sent along with at least one byte. Its value is ignored.
            let data = [IoSlice::new(b"+")];
            match rustix::net::sendmsg(supervisor, &data, &mut ancillary, without_signal()) {
                Err(rustix::io::Errno::INTR) => {}
                sent => return Ok(sent.map(drop)?),
            }
        }
    }

    /// Receives the next descriptors from the host; `None` if it has gone.
    ///
    /// Fails with `InvalidData` if some were lost for lack of room; the others are then closed.
    pub(crate) fn receive(host: impl AsFd) -> io::Result<Option<Self>> {
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let data = &mut [IoSliceMut::new(&mut byte)];
        let received = rustix::net::recvmsg(host, data, &mut ancillary, close_on_exec())?;
        if received.bytes == 0 {
            return Ok(None);
        }
        let mut descriptors = Vec::with_capacity(4);
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        // On systems where the call above cannot set it.
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        for descriptor in &descriptors {
            rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC)?;
        }
        let [control, stdin, stdout, stderr] =
            <[OwnedFd; 4]>::try_from(descriptors).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Some(Self {
            control,
            stdin,
            stdout,
            stderr,
        }))
    }
}

impl Instructions {
    /// The instructions encoded for the socket.
    pub(crate) fn message(&self) -> io::Result<Vec<u8>> {
        let body = self.encode();
        let length = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok([&HEADER, &length.to_le_bytes(), body.as_slice()].concat())
    }

    pub(crate) async fn receive(socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Self> {
        let mut header = [0; 8];
        socket.read_exact(&mut header).await?;
        let (magic, length) = header.split_at(4);
        let length = length
            .try_into()
            .map_or(usize::MAX, |bytes| u32::from_le_bytes(bytes) as usize);
        if magic != HEADER || length > MAX_INSTRUCTIONS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await?;
        Ok(Self::decode(&body).ok_or(io::ErrorKind::InvalidData)?)
    }

    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(4096);
        put(&mut body, &self.host.to_le_bytes());
        put(&mut body, &millis(self.after_close));
        put(&mut body, &millis(self.after_terminate));
        put(&mut body, &millis(self.to_finish));
        put(&mut body, self.program.as_os_str().as_bytes());
        match &self.cwd {
            Some(cwd) => put_list(&mut body, [cwd.as_os_str()].into_iter()),
            None => put_list(&mut body, std::iter::empty()),
        }
        put_policy(&mut body, self.sandbox.as_ref());
        put_list(&mut body, self.args.iter().map(OsString::as_os_str));
        put_list(&mut body, self.env.iter().map(|(name, _)| name.as_os_str()));
        put_list(
            &mut body,
            self.env.iter().map(|(_, value)| value.as_os_str()),
        );
        body
    }

    fn decode(body: &[u8]) -> Option<Self> {
        let rest = &mut &*body;
        let host = u32::from_le_bytes(take(rest)?.try_into().ok()?);
        let after_close = take_millis(rest)?;
        let after_terminate = take_millis(rest)?;
        let to_finish = take_millis(rest)?;
        let program = PathBuf::from(OsStr::from_bytes(take(rest)?));
        let cwd = take_list(rest)?.into_iter().next().map(PathBuf::from);
        let sandbox = take_policy(rest).ok()?;
        let args = take_list(rest)?;
        let names = take_list(rest)?;
        let values = take_list(rest)?;
        (rest.is_empty() && names.len() == values.len()).then(|| Self {
            host,
            program,
            args,
            env: names.into_iter().zip(values).collect(),
            cwd,
            sandbox,
            after_close,
            after_terminate,
            to_finish,
        })
    }
}

impl Report {
    pub(crate) fn encode(self) -> [u8; 5] {
        let (tag, value) = match self {
            Self::Started(pid) => (b'S', pid),
            Self::NotStarted(errno) => (b'N', errno),
            Self::NoSandbox(code) => (b'B', code),
            Self::Exited(status) => (b'E', status),
            Self::Signalled(signal) => (b'K', signal),
            Self::Gone => (b'G', 0),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [tag, a, b, c, d]
    }

    /// Decodes a report; `None` if the bytes are not one.
    pub(crate) fn decode(bytes: [u8; 5]) -> Option<Self> {
        let [tag, a, b, c, d] = bytes;
        let value = i32::from_le_bytes([a, b, c, d]);
        match tag {
            b'S' => Some(Self::Started(value)),
            b'N' => Some(Self::NotStarted(value)),
            b'B' => Some(Self::NoSandbox(value)),
            b'E' => Some(Self::Exited(value)),
            b'K' => Some(Self::Signalled(value)),
            b'G' => Some(Self::Gone),
            _ => None,
        }
    }
}

/// Sends all of `bytes` without raising SIGPIPE, which the embedding program may not ignore.
pub(crate) fn send_all(socket: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::net::send(&socket, bytes, without_signal()) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Sends as much as fits without blocking, and returns the rest.
pub(crate) fn send_some(socket: impl AsFd, bytes: &[u8]) -> io::Result<&[u8]> {
    match rustix::net::send(socket, bytes, without_signal() | SendFlags::DONTWAIT) {
        Ok(sent) => Ok(bytes.get(sent..).unwrap_or_default()),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(bytes),
        Err(error) => Err(error.into()),
    }
}

/// Receives what is available without blocking, up to the size of `room`.
pub(crate) fn receive_some(socket: impl AsFd, room: &mut [u8]) -> io::Result<&[u8]> {
    match rustix::net::recv(socket, &mut *room, RecvFlags::DONTWAIT) {
        Ok((_, received)) => Ok(room.get(..received).unwrap_or_default()),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(&[]),
        Err(error) => Err(error.into()),
    }
}

fn without_signal() -> SendFlags {
    #[cfg(target_vendor = "apple")]
    return SendFlags::empty();
    #[cfg(not(target_vendor = "apple"))]
    SendFlags::NOSIGNAL
}

fn close_on_exec() -> RecvFlags {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    RecvFlags::empty()
}

fn millis(duration: Duration) -> [u8; 8] {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .to_le_bytes()
}

fn put(body: &mut Vec<u8>, field: &[u8]) {
    // A field over 4 GiB makes the block too long, which `message` rejects.
    let length = u32::try_from(field.len()).unwrap_or(u32::MAX);
    body.extend_from_slice(&length.to_le_bytes());
    body.extend_from_slice(field);
}

fn put_list<'a>(body: &mut Vec<u8>, fields: impl ExactSizeIterator<Item = &'a OsStr>) {
    let count = u32::try_from(fields.len()).unwrap_or(u32::MAX);
    body.extend_from_slice(&count.to_le_bytes());
    for field in fields {
        put(body, field.as_bytes());
    }
}

struct Malformed;

/// An absent policy is encoded as an empty list.
fn put_policy(body: &mut Vec<u8>, policy: Option<&Policy>) {
    let Some(policy) = policy else {
        return put_list(body, std::iter::empty());
    };
    let network = if policy.network { "network" } else { "" };
    let parts = [
        OsStr::new(policy.files.name()),
        OsStr::new(network),
        policy.workspace.as_os_str(),
    ];
    put_list(body, parts.into_iter());
    put_list(body, policy.hidden.iter().map(|path| path.as_os_str()));
    put_list(body, policy.protected.iter().map(|path| path.as_os_str()));
    put_list(body, policy.readable.iter().map(|path| path.as_os_str()));
    put_list(body, policy.writable.iter().map(|path| path.as_os_str()));
}

fn take_policy(rest: &mut &[u8]) -> Result<Option<Policy>, Malformed> {
    let parts = take_list(rest).ok_or(Malformed)?;
    let (files, network, workspace) = match parts.as_slice() {
        [] => return Ok(None),
        [files, network, workspace] => (files, network, workspace),
        _ => return Err(Malformed),
    };
    let files = files.to_str().and_then(SandboxMode::from_name);
    let mut paths = || {
        let list = take_list(rest).ok_or(Malformed)?;
        Ok(list.into_iter().map(PathBuf::from).collect())
    };
    Ok(Some(Policy {
        files: files.ok_or(Malformed)?,
        network: !network.is_empty(),
        workspace: workspace.into(),
        hidden: paths()?,
        protected: paths()?,
        readable: paths()?,
        writable: paths()?,
    }))
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*number) as usize)
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_number(rest)?;
    let (field, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(field)
}

fn take_millis(rest: &mut &[u8]) -> Option<Duration> {
    let bytes = take(rest)?.try_into().ok()?;
    Some(Duration::from_millis(u64::from_le_bytes(bytes)))
}

fn take_list(rest: &mut &[u8]) -> Option<Vec<OsString>> {
    let count = take_number(rest)?;
    (0..count)
        .map(|_| take(rest).map(|field| OsString::from_vec(field.to_vec())))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn instructions() -> Instructions {
        Instructions {
            host: 4711,
            program: "/usr/bin/env".into(),
            args: vec!["".into(), OsString::from_vec(vec![0xff, b'\n'])],
            env: vec![("PATH".into(), "/bin".into()), ("EMPTY".into(), "".into())],
            cwd: Some("/".into()),
            sandbox: Some(Policy {
                files: SandboxMode::Workspace,
                network: false,
                workspace: "/w".into(),
                hidden: vec!["/h".into()],
                protected: vec!["/p".into(), "/q".into()],
                readable: vec!["/h/open".into()],
                writable: vec!["/tmp/report".into()],
            }),
            after_close: Duration::from_secs(2),
            after_terminate: Duration::from_millis(1),
            to_finish: Duration::from_secs(600),
        }
    }

    #[tokio::test]
    async fn instructions_arrive_as_they_were_sent() {
        let message = instructions().message().unwrap();
        let received = Instructions::receive(&mut message.as_slice()).await;
        assert_eq!(received.unwrap(), instructions());
        for length in 0..message.len() {
            let cut = Instructions::receive(&mut &message[..length]).await;
            assert!(cut.is_err(), "{length}");
        }
        let other = [b"SBG0", &message[4..]].concat();
        let error = Instructions::receive(&mut other.as_slice()).await;
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn descriptors_arrive_one_server_after_the_other() {
        let (host, supervisor) = UnixStream::pair().unwrap();
        let mut pipes = Vec::new();
        for _ in 0..2 {
            let (control, _) = UnixStream::pair().unwrap();
            let (stdin, inside) = io::pipe().unwrap();
            let (outside, stdout) = io::pipe().unwrap();
            let descriptors = Descriptors {
                control: control.into(),
                stdin: stdin.into(),
                stderr: stdout.try_clone().unwrap().into(),
                stdout: stdout.into(),
            };
            descriptors.send(&host).unwrap();
            pipes.push((inside, outside));
        }
        drop(host);
        for (mut inside, mut outside) in pipes {
            let received = Descriptors::receive(&supervisor).unwrap().unwrap();
            inside.write_all(b"in").unwrap();
            drop(inside);
            let mut text = String::new();
            let mut stdin = io::PipeReader::from(received.stdin);
            stdin.read_to_string(&mut text).unwrap();
            assert_eq!(text, "in");
            let mut stdout = io::PipeWriter::from(received.stdout);
            stdout.write_all(b"out, ").unwrap();
            let mut stderr = io::PipeWriter::from(received.stderr);
            stderr.write_all(b"error").unwrap();
            drop((stdout, stderr));
            text.clear();
            outside.read_to_string(&mut text).unwrap();
            assert_eq!(text, "out, error");
        }
        assert!(Descriptors::receive(&supervisor).unwrap().is_none());
    }

    #[test]
    fn a_host_that_goes_away_is_an_error_at_every_byte() {
        let body = instructions().encode();
        for length in 0..body.len() {
            assert_eq!(Instructions::decode(&body[..length]), None, "{length}");
        }
        let without_cwd = Instructions {
            cwd: None,
            sandbox: None,
            ..instructions()
        };
        assert_eq!(
            Instructions::decode(&without_cwd.encode()),
            Some(without_cwd)
        );
    }

    #[test]
    fn reports_are_read_back() {
        let reports = [
            Report::Started(1),
            Report::NotStarted(2),
            Report::NoSandbox(1),
            Report::Exited(-3),
            Report::Signalled(9),
            Report::Gone,
        ];
        for report in reports {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        assert_eq!(Report::decode(*b"?\0\0\0\0"), None);
    }
}

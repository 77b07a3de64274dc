//! Standard input and output of commands that serve an MCP client.
//!
//! Clients connect pipes, or sockets if they run on Node. The runtime reads and writes those itself, because a thread in
//! between costs two context switches per message. Files, terminals and other systems get a thread for each direction.
//!
//! `O_NONBLOCK` applies to all processes that share a stream. A pipe is therefore opened anew, which gives it flags of its
//! own. A socket cannot be opened; it gets its flags back when it is no longer used.

use std::io::{self, Read as _};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::runtime::Handle;

/// Bytes read at a time by the thread.
const CHUNK: usize = 64 * 1024;

/// Standard input. Must be called within a runtime.
pub(crate) fn input() -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    #[cfg(target_os = "linux")]
    if let Some(pipe) = pipes::input() {
        return Ok(Box::new(pipe));
    }
    #[cfg(unix)]
    if let Some(socket) = sockets::Socket::of(&io::stdin()) {
        return Ok(Box::new(socket));
    }
    Ok(Box::new(input_thread()?))
}

/// Standard output. Must be called within a runtime.
pub(crate) fn output() -> Box<dyn AsyncWrite + Send + Unpin> {
    #[cfg(target_os = "linux")]
    if let Some(pipe) = pipes::output() {
        return Box::new(pipe);
    }
    #[cfg(unix)]
    if let Some(socket) = sockets::Socket::of(&io::stdout()) {
        return Box::new(socket);
    }
    Box::new(tokio::io::stdout())
}

/// Reads standard input on a dedicated thread: the runtime could not shut down during a blocking read.
fn input_thread() -> io::Result<impl AsyncRead + Send + Unpin> {
    let (mut sender, receiver) = tokio::io::duplex(CHUNK);
    let runtime = Handle::current();
    let thread = std::thread::Builder::new().name("standard-input".to_owned());
    thread.spawn(move || {
        let mut chunk = vec![0; CHUNK];
        let mut input = io::stdin().lock();
        loop {
            match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => {
                    let read = chunk.get(..count).unwrap_or_default();
                    if runtime.block_on(sender.write_all(read)).is_err() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    })?;
    Ok(receiver)
}

/// Pipes, through `/proc`. `None` if a stream is not a pipe or cannot be opened anew, such as a pipe of another user.
#[cfg(target_os = "linux")]
mod pipes {
    use tokio::net::unix::pipe::{OpenOptions, Receiver, Sender};

    pub(super) fn input() -> Option<Receiver> {
        OpenOptions::new().open_receiver("/proc/self/fd/0").ok()
    }

    pub(super) fn output() -> Option<Sender> {
        OpenOptions::new().open_sender("/proc/self/fd/1").ok()
    }
}

/// Sockets. They do not block while this process uses them.
#[cfg(unix)]
mod sockets {
    use std::io;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream as BlockingStream;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use rustix::fs::{OFlags, fcntl_getfl, fstat};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::net::UnixStream;

    pub(super) struct Socket {
        stream: UnixStream,
        /// Another handle of the socket if it has to block again at the end.
        restored: Option<BlockingStream>,
    }

    impl Socket {
        /// `None` if the stream is not a Unix-domain socket, or if standard error is the same one: messages there must
        /// not fail because a client reads slowly.
        pub(super) fn of(stream: &impl AsFd) -> Option<Self> {
            let (own, messages) = (fstat(stream).ok()?, fstat(io::stderr()).ok()?);
            if (own.st_dev, own.st_ino) == (messages.st_dev, messages.st_ino) {
                return None;
            }
            let socket = BlockingStream::from(stream.as_fd().try_clone_to_owned().ok()?);
            // Fails for sockets of other families and for everything else.
            socket.local_addr().ok()?;
            let is_blocking = !fcntl_getfl(&socket).ok()?.contains(OFlags::NONBLOCK);
            let restored = is_blocking.then(|| socket.try_clone()).transpose().ok()?;
            socket.set_nonblocking(true).ok()?;
            let stream = UnixStream::from_std(socket).ok()?;
            Some(Self { stream, restored })
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            if let Some(socket) = &self.restored {
                // If this fails, the socket is closed at the other end.
                let _ = socket.set_nonblocking(false);
            }
        }
    }

    impl AsyncRead for Socket {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.stream).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.stream).poll_flush(context)
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
}

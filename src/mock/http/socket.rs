//! The socket below HTTP, and the ways to end a connection.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::net::TcpStream;

use backread_clock::Clock;

/// How to end a connection before HTTP would.
#[derive(Clone, Debug)]
pub enum Exit {
    /// With a reset, once the client has received every byte.
    Reset,
    /// With a normal close.
    Close,
    /// Not until the client disconnects.
    Stall(Clock),
}

/// When to end a connection. A response plans the exit, its body triggers the signal when it passes on
/// its last byte, and the wire sees when that byte was written.
#[derive(Debug, Default)]
pub struct CloseSignal {
    exit: OnceLock<Exit>,
    reached: AtomicBool,
    written: AtomicBool,
}

impl CloseSignal {
    /// Plans how to end the connection; the first plan wins.
    pub fn plan(&self, exit: Exit) {
        let _ = self.exit.set(exit);
    }

    /// Records that nothing more will be written.
    pub fn reach(&self) {
        self.reached.store(true, Ordering::Relaxed);
    }

    /// Whether an exit is planned, so that the connection answers no more requests.
    pub fn is_planned(&self) -> bool {
        self.exit.get().is_some()
    }

    /// How to end the connection, once everything is written.
    pub fn due(&self) -> Option<&Exit> {
        let due = self.written.load(Ordering::Relaxed);
        self.exit.get().filter(|_| due)
    }
}

/// A socket that reports when everything up to the signal was written.
#[derive(Debug)]
pub struct Wire {
    stream: TokioIo<TcpStream>,
    signal: Arc<CloseSignal>,
}

impl Wire {
    /// Sends on a socket.
    pub fn new(stream: TcpStream, signal: Arc<CloseSignal>) -> Self {
        Self {
            stream: TokioIo::new(stream),
            signal,
        }
    }

    /// Ends the connection.
    pub async fn leave(self, exit: &Exit) {
        let stream = self.stream.into_inner();
        match exit {
            Exit::Stall(clock) => {
                tokio::select! {
                    () = clock.hold(None) => {}
                    () = gone(&stream) => {}
                }
            }
            Exit::Reset => {
                settle(&stream).await;
                let _ = stream.set_zero_linger();
            }
            Exit::Close => {
                settle(&stream).await;
                let _ = SockRef::from(&stream).shutdown(Shutdown::Write);
                // Unread bytes would turn the close into a reset.
                while stream.try_read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
            }
        }
    }
}

/// Waits until every byte is sent, or the client has disconnected.
async fn settle(stream: &TcpStream) {
    tokio::select! {
        _ = all_sent(stream) => {}
        () = gone(stream) => {}
    }
}

/// Waits until the client has closed its side; discards what it sends until then.
async fn gone(stream: &TcpStream) {
    let mut lost = [0; 4096];
    while stream.readable().await.is_ok() {
        match stream.try_read(&mut lost) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Waits until the kernel has sent every byte: a reset discards unsent ones.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
async fn all_sent(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    // With this option a socket is writable only when nothing is unsent.
    socket.set_tcp_notsent_lowat(1)?;
    // A second descriptor, because the first one caches that it was writable.
    let again = TcpStream::from_std(socket.try_clone()?.into())?;
    again.writable().await
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
async fn all_sent(_stream: &TcpStream) -> io::Result<()> {
    Ok(())
}

impl Read for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl Write for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// HTTP flushes after writing everything that it has.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        ready!(Pin::new(&mut wire.stream).poll_flush(context))?;
        if wire.signal.reached.load(Ordering::Relaxed) {
            wire.signal.written.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let wire = self.get_mut();
        if wire.signal.is_planned() {
            // The exit closes the socket, so it must still be open.
            return Poll::Pending;
        }
        Pin::new(&mut wire.stream).poll_shutdown(context)
    }
}

//! Whether a request that got no response was processed, and so whether it can be resent at once.
//!
//! Some failures guarantee that the service has not begun to process the request:
//! - HTTP/2: a stream above the last id of a GOAWAY (RFC 9113, section 6.8), which is how nginx
//!   ends a connection after `keepalive_requests`, and a stream reset with REFUSED_STREAM (section
//!   8.7);
//! - HTTP/1.1: a connection that had answered before and was closed while idle, just as the request
//!   was sent (RFC 9112, section 9.5; a GET is idempotent, so section 9.3.1 allows it);
//! - a request that was never written.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpInfo;
use reqwest::Response;
use reqwest::Version;

use super::tls_errors::cause;

// hyper-util's messages for requests whose connection was closed, or given to others, before they
// were written; the kinds of its errors are private.
const NEVER_WRITTEN: [&str; 2] = ["client error (Canceled)", "client error (ChannelClosed)"];
const WORD: usize = u64::BITS as usize;
const WORDS: usize = (u16::MAX as usize + 1) / WORD;

/// The connections that have answered, one bit per local port.
#[derive(Debug)]
pub struct Answered(Box<[AtomicU64]>);

impl Default for Answered {
    fn default() -> Self {
        Self((0..WORDS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Answered {
    /// Records the connection of a response.
    pub fn note(&self, response: &Response) {
        // In HTTP/2 the protocol itself tells what was processed.
        if response.version() < Version::HTTP_2
            && let Some(connection) = response.extensions().get::<HttpInfo>()
        {
            let (word, bit) = place(connection.local_addr());
            if let Some(word) = self.0.get(word) {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    fn has(&self, local: SocketAddr) -> bool {
        let (word, bit) = place(local);
        self.0
            .get(word)
            .is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Whether this error means that the service has not begun to process the request.
    pub fn not_processed(&self, error: &reqwest::Error) -> bool {
        if let Some(error) = cause::<h2::Error>(error) {
            let reason = error.reason();
            let above_last = error.is_go_away() && reason != Some(h2::Reason::ENHANCE_YOUR_CALM);
            let refused = error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM);
            return error.is_remote() && (above_last || refused);
        }
        let Some(failure) = cause::<hyper::Error>(error) else {
            return cause::<legacy::Error>(error)
                .is_some_and(|error| NEVER_WRITTEN.contains(&error.to_string().as_str()));
        };
        if failure.is_canceled() {
            return true;
        }
        let closed = failure.is_incomplete_message()
            || cause::<io::Error>(error).is_some_and(|error| is_closed(error.kind()));
        closed && connection(error).is_some_and(|local| self.has(local))
    }
}

/// The local address of the connection on which a request failed.
fn connection(error: &reqwest::Error) -> Option<SocketAddr> {
    let connected = cause::<legacy::Error>(error)?.connect_info()?;
    let mut extensions = http::Extensions::new();
    connected.get_extras(&mut extensions);
    extensions.get::<HttpInfo>().map(HttpInfo::local_addr)
}

fn is_closed(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
    )
}

fn place(local: SocketAddr) -> (usize, u64) {
    let port = usize::from(local.port());
    (port / WORD, 1 << (port % WORD))
}

//! The wire: the only folder that names reqwest. It only sends GETs.

pub mod download;
mod failures;
mod redirects;
mod roots;
mod setup;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap};
use tokio::time::timeout;
use url::Url;

use self::failures::{cause, root_cause};
pub use self::redirects::{MOST_REDIRECTS, Target};
use crate::api::Request;
use crate::config::Origin;
use crate::error::{Error, ErrorKind};

/// How long an HTTP/2 connection may leave a PING without an answer, unless the timeout is shorter.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// No service of this interface returns its users as this.
const OTHER_MEDIA_TYPE: &str = "application/xml";

/// How long the body of an error may take: its status is what counts.
const ERROR_BODY: Duration = Duration::from_secs(2);
/// The part of an attempt that it may take: the end of the attempt would lose the status.
const ERROR_BODY_PART: u32 = 4;
// The most memory reserved before a body arrives, in bytes.
const MOST_RESERVED: u64 = 1 << 20;
// A body that becomes longer than this gets room for the longest at once; what it does not fill is not
// memory yet.
const LARGE: usize = 4 * 1024 * 1024;

/// A response with any status, read to its end and decoded.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Headers,
    pub body: Bytes,
    /// Where it sends the client instead.
    pub moved_to: Option<Target>,
}

/// The headers of a response, as received.
#[derive(Debug, Default)]
pub struct Headers(HeaderMap);

impl Headers {
    /// The first value of a header, if it is plain text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }

    /// Names, in lower case, and values; invalid Unicode became U+FFFD.
    pub fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
    }
}

/// Why a request got no response.
#[derive(Debug)]
pub struct Failed {
    pub kind: ErrorKind,
    pub resend: Resend,
}

/// Whether a request that got no response is sent again at once, which is not a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    Never,
    /// Its connection closed before an answer: once in a call.
    Once,
    /// The protocol guarantees that it was not processed.
    NotProcessed,
}

impl From<ErrorKind> for Failed {
    fn from(kind: ErrorKind) -> Self {
        Self {
            kind,
            resend: Resend::Never,
        }
    }
}

/// A connection pool for one origin.
pub struct Transport {
    http: reqwest::Client,
    origin: Arc<Origin>,
}

impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Transport")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

impl Transport {
    /// `silence` is how long a connection may be silent while requests wait for answers.
    pub fn new(origin: Arc<Origin>, silence: Duration) -> Result<Self, Error> {
        let http = setup::http_client(&origin, silence)?;
        Ok(Self { http, origin })
    }

    /// Sends one GET, or follows a redirect of it, and reads its response, of at most
    /// `max_bytes` after decoding.
    pub async fn get(
        &self,
        request: &Request,
        moved_to: Option<&Target>,
        trace: &[(&'static str, String)],
        bounds: Bounds,
    ) -> Result<Answer, Failed> {
        let url = match moved_to {
            Some(target) => Url::clone(&target.0),
            None => self.origin.address(request),
        };
        // A header that is given here replaces the usual one of that name.
        let mut get = self.http.get(url);
        for (name, value) in trace {
            get = get.header(*name, value);
        }
        get = match request {
            Request::MadeUpSecret => {
                let secret = format!("Bearer backread-probe-{:016x}", fastrand::u64(..));
                get.header(AUTHORIZATION, secret)
            }
            Request::OtherAccept => get.header(ACCEPT, OTHER_MEDIA_TYPE),
            Request::Read(_) | Request::Start(_) => get,
        };
        let response = get.send().await.map_err(|error| Failed {
            kind: failures::send_failure(&error, &self.origin),
            resend: failures::resend(&error),
        })?;
        Ok(read(response, bounds).await?)
    }
}

/// What one response may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub max_bytes: u64,
    /// How long the attempt may take, if there is a limit.
    pub limit: Option<Duration>,
}

async fn read(mut response: Response, bounds: Bounds) -> Result<Answer, ErrorKind> {
    let Bounds { max_bytes, limit } = bounds;
    let status = response.status();
    let moved_to = redirects::target(&response)?;
    let headers = Headers(std::mem::take(response.headers_mut()));
    let length = response.content_length().unwrap_or(0);
    let reserved = length.min(max_bytes).min(MOST_RESERVED);
    let mut body = Vec::with_capacity(usize::try_from(reserved).unwrap_or(0));
    if status.is_success() {
        let read = read_body(response, &mut body, max_bytes).await;
        read.map_err(|unread| unread.kind(body.len(), max_bytes))?;
    } else if moved_to.is_none() {
        let most = limit.map_or(ERROR_BODY, |limit| ERROR_BODY.min(limit / ERROR_BODY_PART));
        // Its status says more than an incomplete body, and some proxies and middleware state a
        // length that does not come.
        let read = timeout(most, read_body(response, &mut body, max_bytes)).await;
        if let Ok(Err(Unread::Broken(error))) = read
            && body.is_empty()
            && cause::<hyper::Error>(&error).is_none()
        {
            let why = root_cause(&error);
            body = format!("(the body cannot be decoded: {why})").into();
        }
    }
    if body.len() >= LARGE {
        body.shrink_to_fit();
    }
    Ok(Answer {
        status: status.as_u16(),
        headers,
        body: body.into(),
        moved_to,
    })
}

/// Why a body was not read to its end.
enum Unread {
    TooLarge,
    /// The connection broke, or the body cannot be decoded.
    Broken(reqwest::Error),
}

impl Unread {
    fn kind(self, came: usize, limit: u64) -> ErrorKind {
        match self {
            Self::TooLarge => ErrorKind::ResponseTooLarge { limit },
            Self::Broken(error) => {
                let why = root_cause(&error);
                ErrorKind::TruncatedBody(format!("{came} bytes arrived, then: {why}"))
            }
        }
    }
}

/// Reads a body to its end, as decoded by reqwest; what arrived before a failure stays in `body`.
async fn read_body(mut response: Response, body: &mut Vec<u8>, most: u64) -> Result<(), Unread> {
    while let Some(chunk) = response.chunk().await.map_err(Unread::Broken)? {
        let room = most.saturating_sub(body.len() as u64);
        if chunk.len() as u64 > room {
            body.extend(chunk.iter().take(usize::try_from(room).unwrap_or(0)));
            return Err(Unread::TooLarge);
        }
        if body.len() >= LARGE && body.capacity() - body.len() < chunk.len() {
            // Growth in steps copies, and both copies take memory for a while. If so much cannot be
            // reserved, it grows in steps.
            let _ = body.try_reserve_exact(usize::try_from(room).unwrap_or(0));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(())
}

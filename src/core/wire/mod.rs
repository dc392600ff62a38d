//! The wire: the only folder that names reqwest. It only sends GETs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap,
    HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
};
use reqwest::{RequestBuilder, Response, Version};
use tokio::time::timeout;
use url::Url;

use self::encoding::{Body, Encoding, Unfit};
use self::failures::{root_cause, send_failure};
pub use self::redirects::{MOST_REDIRECTS, Target, too_many};
use self::tls_errors::Peer;
use crate::api::Endpoint;
use crate::config::Origin;
use crate::error::{Error, ErrorKind};
use crate::probe_request::{ProbeRequest, Twist};

// The encodings that all requests accept, in a different spelling so that the two can be told
// apart.
const ALL_ENCODINGS: &str = "gzip, br, zstd";
/// No service of this interface returns its users as this.
const OTHER_MEDIA_TYPE: &str = "application/xml";

/// How long the body of an error may take: its status is what counts.
const ERROR_BODY: Duration = Duration::from_secs(2);
/// The part of an attempt that it may take: the end of the attempt would lose the status.
const ERROR_BODY_PART: u32 = 4;
/// The largest body of a redirect that is read, so that its connection serves on.
const REDIRECT_BODY: u64 = 65_536;
/// How long it may take: only what follows counts.
const REDIRECT_TIME: Duration = Duration::from_millis(100);

/// A response with any status, read to its end and decoded.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The protocol, such as `HTTP/1.1`.
    pub version: &'static str,
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
    /// The protocol guarantees that it was not processed, so it can be resent immediately.
    pub not_processed: bool,
}

impl From<ErrorKind> for Failed {
    fn from(kind: ErrorKind) -> Self {
        Self {
            kind,
            not_processed: false,
        }
    }
}

/// A connection pool for one origin.
pub struct Transport {
    http: reqwest::Client,
    origin: Arc<Origin>,
    answered: connections::Answered,
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
        Ok(Self {
            http,
            origin,
            answered: connections::Answered::default(),
        })
    }

    /// Sends one GET, or follows a redirect of it, and reads its response, of at most
    /// `max_bytes` after decoding.
    pub async fn get(
        &self,
        endpoint: &Endpoint,
        moved_to: Option<&Target>,
        trace: &[(&'static str, String)],
        bounds: Bounds,
    ) -> Result<Answer, Failed> {
        let request = traced(self.http.get(self.address(endpoint, moved_to)), trace);
        self.send(request, Decoding::Done, bounds).await
    }

    /// The same for a request of the probe: the only way to send requests outside the interface.
    pub async fn probe(
        &self,
        request: &ProbeRequest,
        moved_to: Option<&Target>,
        trace: &[(&'static str, String)],
        bounds: Bounds,
    ) -> Result<Answer, Failed> {
        let decoding = match request.twist {
            Twist::Undecoded => Decoding::Left,
            _ => Decoding::Done,
        };
        let mut get = traced(self.http.get(self.address(request, moved_to)), trace);
        if let Some((name, value)) = header(&request.twist)? {
            get = get.header(name, value);
        }
        self.send(get, decoding, bounds).await
    }

    fn address(&self, request: &impl fmt::Display, moved_to: Option<&Target>) -> Url {
        match moved_to {
            Some(target) => Url::clone(&target.0),
            None => self.origin.address(request),
        }
    }

    async fn send(
        &self,
        request: RequestBuilder,
        decoding: Decoding,
        bounds: Bounds,
    ) -> Result<Answer, Failed> {
        let response = request.send().await.map_err(|error| Failed {
            not_processed: self.answered.not_processed(&error),
            kind: match tls_errors::lasting_failure(&error, &self.tls_peer(&error)) {
                Some(reason) => ErrorKind::Insecure(reason),
                None => send_failure(&error),
            },
        })?;
        self.answered.note(&response);
        Ok(read(response, decoding, bounds).await?)
    }

    /// With whom TLS failed.
    fn tls_peer(&self, error: &reqwest::Error) -> Peer {
        if self.origin.url.scheme() == "http" || failures::is_of_proxy(error) {
            return Peer {
                name: "the proxy".to_owned(),
                setting: "the proxy's address",
            };
        }
        Peer {
            name: self.origin.host(),
            setting: "base_url",
        }
    }
}

/// What one response may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub max_bytes: u64,
    /// How long the attempt may take, if there is a limit.
    pub limit: Option<Duration>,
}

fn error_body(limit: Option<Duration>) -> Duration {
    limit.map_or(ERROR_BODY, |limit| ERROR_BODY.min(limit / ERROR_BODY_PART))
}

/// Whether to decode a body or leave it as it was sent.
enum Decoding {
    Done,
    Left,
}

fn traced(request: RequestBuilder, trace: &[(&'static str, String)]) -> RequestBuilder {
    trace.iter().fold(request, |request, (name, value)| {
        request.header(*name, value)
    })
}

async fn read(
    mut response: Response,
    decoding: Decoding,
    bounds: Bounds,
) -> Result<Answer, ErrorKind> {
    let Bounds { max_bytes, limit } = bounds;
    let status = response.status();
    let moved_to = redirects::target(&response)?;
    let version = match response.version() {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    };
    let mut headers = std::mem::take(response.headers_mut());
    let encoding = match decoding {
        Decoding::Done => encoding(&mut headers),
        Decoding::Left => Encoding::Plain,
    };
    let length = response.content_length();
    let mut body = Body::new(encoding, length, max_bytes);
    if !status.is_success() {
        body = body.keeping_raw();
    }
    let unread = moved_to.is_some() && length.is_none_or(|length| length > REDIRECT_BODY);
    let read = match status.is_success() {
        true => read_body(response, &mut body, max_bytes).await,
        false if unread => Ok(()),
        // Some proxies and middleware state a length that does not come.
        false => {
            let most = match moved_to {
                Some(_) => REDIRECT_TIME,
                None => error_body(limit),
            };
            timeout(most, read_body(response, &mut body, max_bytes))
                .await
                .unwrap_or(Ok(()))
        }
    };
    let came = match &read {
        Ok(()) => body.take(),
        Err(_) => body.take_what_came(),
    };
    match read {
        // An error status says more than an incomplete body.
        Err(failure) if status.is_success() => Err(failure),
        _ => Ok(Answer {
            status: status.as_u16(),
            version,
            headers: Headers(headers),
            body: came.into(),
            moved_to,
        }),
    }
}

/// A body's encoding; removes its headers, except for an encoding that was not requested.
fn encoding(headers: &mut HeaderMap) -> Encoding {
    let values = headers.get_all(CONTENT_ENCODING).into_iter();
    // A value that is not text names no known encoding.
    let named = Encoding::named(values.map(|value| value.to_str().unwrap_or("?")));
    match named {
        None | Some(Encoding::Plain) => Encoding::Plain,
        Some(encoding) => {
            headers.remove(CONTENT_ENCODING);
            headers.remove(CONTENT_LENGTH);
            encoding
        }
    }
}

/// The header for the twist, which replaces the usual one of that name.
fn header(twist: &Twist) -> Result<Option<(HeaderName, HeaderValue)>, ErrorKind> {
    let (name, text) = match twist {
        Twist::Plain => return Ok(None),
        Twist::MadeUpSecret(secret) => (AUTHORIZATION, format!("Bearer {secret}")),
        Twist::OtherAccept => (ACCEPT, OTHER_MEDIA_TYPE.to_owned()),
        Twist::IfNoneMatch(tag) => (IF_NONE_MATCH, tag.clone()),
        Twist::IfModifiedSince(date) => (IF_MODIFIED_SINCE, date.clone()),
        Twist::Undecoded => (ACCEPT_ENCODING, ALL_ENCODINGS.to_owned()),
    };
    match HeaderValue::from_str(&text) {
        Ok(value) => Ok(Some((name, value))),
        Err(_) => Err(ErrorKind::Transport(format!(
            "the value for the header {name} is not valid"
        ))),
    }
}

async fn read_body(mut response: Response, body: &mut Body, limit: u64) -> Result<(), ErrorKind> {
    let mut came = 0;
    loop {
        let read = response.chunk().await;
        let unfit = match &read {
            Ok(Some(chunk)) => {
                came += chunk.len();
                body.add(chunk)
            }
            Ok(None) => body.end(),
            Err(error) => Err(Unfit::Broken(root_cause(error))),
        };
        match (unfit, read) {
            (Ok(()), Ok(None)) => return Ok(()),
            (Ok(()), _) => {}
            (Err(Unfit::TooLarge), _) => return Err(ErrorKind::ResponseTooLarge { limit }),
            (Err(Unfit::Broken(why)), _) => {
                let reason = format!("{came} bytes arrived, then: {why}");
                return Err(ErrorKind::TruncatedBody(reason));
            }
        }
    }
}

mod connections;
pub mod encoding;
mod environment;
mod failures;
pub mod keep_alive;
mod redirects;
mod roots;
mod setup;
mod tls_errors;

//! The wire: the only folder that names reqwest. It only sends GETs.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap,
    HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
};
use reqwest::redirect::{self, Policy};
use reqwest::{Certificate, ClientBuilder, Proxy, RequestBuilder, Response, Version};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use self::encoding::{ACCEPTED, Body, Encoding, Unfit};
use crate::core::api::{Endpoint, accept};
use crate::core::config::Origin;
use crate::core::error::{Error, ErrorKind};
use crate::core::probe_request::{ProbeRequest, Twist};

const REDIRECTS: usize = 5;
const POOL_IDLE: Duration = Duration::from_secs(60);
// The encodings that all requests accept, in a different spelling so that the two can be told
// apart.
const ALL_ENCODINGS: &str = "gzip, br, zstd";
// hyper-util's message for a 407 to CONNECT; its error has no public type.
const PROXY_REFUSAL: &str = "tunnel error: proxy authorization required";
/// No service of this interface returns its users as this.
const OTHER_MEDIA_TYPE: &str = "application/xml";

/// A response with any status, read to its end and decoded.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The protocol, such as `HTTP/1.1`.
    pub version: &'static str,
    pub headers: Headers,
    pub body: Bytes,
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
        let http = build(keep_alive::watched(builder(&origin)?, silence))?;
        Ok(Self {
            http,
            origin,
            answered: connections::Answered::default(),
        })
    }

    /// Sends one GET and reads its response, of at most `max_bytes` after decoding.
    pub async fn get(
        &self,
        endpoint: &Endpoint,
        trace: &[(&'static str, String)],
        max_bytes: u64,
    ) -> Result<Answer, Failed> {
        let request = traced(self.http.get(self.origin.address(endpoint)), trace);
        self.send(request, Decoding::Done, max_bytes).await
    }

    /// The same for a request of the probe: the only way to send requests outside the interface.
    pub async fn probe(
        &self,
        request: &ProbeRequest,
        trace: &[(&'static str, String)],
        max_bytes: u64,
    ) -> Result<Answer, Failed> {
        let decoding = match request.twist {
            Twist::Undecoded => Decoding::Left,
            _ => Decoding::Done,
        };
        let mut get = traced(self.http.get(self.origin.address(request)), trace);
        if let Some((name, value)) = header(&request.twist)? {
            get = get.header(name, value);
        }
        self.send(get, decoding, max_bytes).await
    }

    async fn send(
        &self,
        request: RequestBuilder,
        decoding: Decoding,
        max_bytes: u64,
    ) -> Result<Answer, Failed> {
        let response = request.send().await.map_err(|error| Failed {
            not_processed: self.answered.not_processed(&error),
            kind: match tls_errors::lasting_failure(&error, &self.origin.host()) {
                Some(reason) => ErrorKind::Insecure(reason),
                None => send_failure(&error),
            },
        })?;
        self.answered.note(&response);
        Ok(read(response, decoding, max_bytes).await?)
    }
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
    max_bytes: u64,
) -> Result<Answer, ErrorKind> {
    let status = response.status();
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
    let failure = read_body(response, &mut body, max_bytes).await.err();
    match failure {
        // An error status says more than an incomplete body.
        Some(failure) if status.is_success() => Err(failure),
        _ => Ok(Answer {
            status: status.as_u16(),
            version,
            headers: Headers(headers),
            body: body.take().into(),
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

fn builder(origin: &Origin) -> Result<ClientBuilder, Error> {
    // An error means that a provider is already installed, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .default_headers(headers(origin)?)
        .user_agent(&origin.user_agent)
        .redirect(Policy::custom(within_origin))
        .retry(reqwest::retry::never())
        .referer(false)
        .pool_idle_timeout(POOL_IDLE);
    if let Some(proxy) = &origin.proxy {
        let proxy = Proxy::all(proxy.clone())
            .map_err(|error| configuration("proxy cannot be used", &error))?;
        builder = builder.proxy(proxy);
    } else if origin.is_loopback() || environment::takes_no_proxy(&origin.url) {
        // A proxy from the environment cannot reach this machine's loopback.
        builder = builder.no_proxy();
    } else {
        environment::check_proxies(&origin.url)?;
    }
    if !needs_tls(origin) {
        // Does not read the system's roots, so there need not be any.
        roots::bundle(origin)?;
        return Ok(builder.tls_certs_only([]));
    }
    let added: Vec<Certificate> = roots::added(origin)?
        .iter()
        .map(|root| Certificate::from_der(root))
        .collect::<Result<_, _>>()
        .map_err(|error| configuration("a root certificate cannot be used", &error))?;
    Ok(builder.tls_certs_merge(added))
}

/// Whether any connection of this client uses TLS.
fn needs_tls(origin: &Origin) -> bool {
    let proxied = origin.proxy.as_ref().map(Url::scheme);
    origin.url.scheme() == "https" || proxied == Some("https") || !origin.is_loopback()
}

fn build(builder: ClientBuilder) -> Result<reqwest::Client, Error> {
    builder.build().map_err(|error| {
        Error::configuration(format!(
            "the HTTP client cannot be set up: {}; if this system has no certificates, install its \
             package ca-certificates, or name a PEM file in ca_bundle or SSL_CERT_FILE",
            root_cause(&error)
        ))
    })
}

/// The value of the header with the secret; its bytes are overwritten on drop.
struct Bearer(SecretString);

impl Bearer {
    fn of(origin: &Origin) -> Self {
        const SCHEME: &str = "Bearer ";
        let secret = origin.api_secret.expose_secret();
        // Allocated at full size: a String that grows leaves copies of its bytes behind.
        let mut value = String::with_capacity(SCHEME.len() + secret.len());
        value.push_str(SCHEME);
        value.push_str(secret);
        Self(value.into())
    }
}

impl AsRef<[u8]> for Bearer {
    fn as_ref(&self) -> &[u8] {
        self.0.expose_secret().as_bytes()
    }
}

fn headers(origin: &Origin) -> Result<HeaderMap, Error> {
    let unfit = |_| Error::configuration("api_secret or vendor is not valid in a header");
    let bearer = Bytes::from_owner(Bearer::of(origin));
    let mut authorization = HeaderValue::from_maybe_shared(bearer).map_err(unfit)?;
    authorization.set_sensitive(true);
    let accept = HeaderValue::from_str(&accept(&origin.vendor)).map_err(unfit)?;
    Ok(HeaderMap::from_iter([
        (AUTHORIZATION, authorization),
        (ACCEPT, accept),
        (ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED)),
    ]))
}

/// Why a redirect is not followed.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

fn within_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let target = attempt.url().origin();
    if attempt
        .previous()
        .first()
        .is_some_and(|first| first.origin() != target)
    {
        let refused = Refused(format!(
            "a redirect to another origin, {}, was refused: the secret stays with the service; if \
             it has moved, set base_url to its new address",
            target.ascii_serialization()
        ));
        return attempt.error(refused);
    }
    if attempt.previous().len() > REDIRECTS {
        return attempt.error(Refused(format!(
            "more than {REDIRECTS} redirects, one after another; check base_url"
        )));
    }
    attempt.follow()
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

fn send_failure(error: &reqwest::Error) -> ErrorKind {
    if error.is_redirect() {
        return ErrorKind::Transport(root_cause(error));
    }
    if error.is_builder() {
        return ErrorKind::Transport(format!("the request cannot be made: {}", chain(error)));
    }
    if root_cause(error) == PROXY_REFUSAL {
        return ErrorKind::ProxyPassword;
    }
    if tls_errors::cause::<hyper::Error>(error).is_some_and(hyper::Error::is_parse_too_large) {
        return ErrorKind::Transport(
            "the answer's status line and headers are larger than any service needs; check base_url"
                .to_owned(),
        );
    }
    let mut reason = chain(error);
    if tls_errors::cause::<io::Error>(error).is_some_and(is_out_of_descriptors) {
        reason.push_str(
            "; this process may open no more files: raise its limit (ulimit -n), or lower \
             max_concurrency",
        );
    }
    ErrorKind::Connect(reason)
}

#[cfg(unix)]
fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

#[cfg(not(unix))]
fn is_out_of_descriptors(_: &io::Error) -> bool {
    false
}

fn configuration(what: &str, error: &reqwest::Error) -> Error {
    Error::configuration(format!("{what}: {}", root_cause(error)))
}

/// The root cause of an error: the layers above repeat it, and some show the URL.
fn root_cause(error: &reqwest::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    if error.source().is_some() {
        return deepest.to_string();
    }
    "unknown".to_owned()
}

/// The causes from the outside in, without those of reqwest, which shows the URL, and of the layer
/// below it, which only says that connecting failed.
fn chain(error: &reqwest::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut cause = error.source();
    if let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    while let Some(inner) = cause {
        let text = inner.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        cause = inner.source();
    }
    match causes.is_empty() {
        true => "unknown".to_owned(),
        false => causes.join(": "),
    }
}

mod connections;
pub mod encoding;
mod environment;
pub mod keep_alive;
mod roots;
mod tls_errors;

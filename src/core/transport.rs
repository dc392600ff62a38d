//! The wire: the only file that names reqwest, and GET is the only verb it has.

use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
};
use reqwest::redirect::{self, Policy};
use reqwest::{Certificate, ClientBuilder, Proxy, RequestBuilder, Response, Version};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::config::Origin;
use super::error::{Error, ErrorKind};
use super::interface::{Endpoint, accept};
use super::question::{Question, Twist};

const REDIRECTS: usize = 5;
const POOL_IDLE: Duration = Duration::from_secs(60);
// Memory for a body before it comes, in bytes.
const MOST_RESERVED: usize = 1 << 20;
const ENCODINGS: &str = "gzip, br, zstd";
/// No service of this interface has its users as that.
const OTHER_MEDIA_TYPE: &str = "application/xml";

/// An answer, whatever its status, read to its end and decoded.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The protocol, such as `HTTP/1.1`.
    pub version: &'static str,
    pub headers: Headers,
    pub body: Bytes,
}

/// The headers of an answer, as they came.
#[derive(Debug, Default)]
pub struct Headers(HeaderMap);

impl Headers {
    /// The first value of a header, if it is plain text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }

    /// Names, in lower case, and values; what is not Unicode became U+FFFD.
    pub fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
    }
}

/// A pool of connections to one origin.
pub struct Transport {
    http: reqwest::Client,
    /// One that leaves bodies as they were sent; the probe alone makes it.
    undecoded: OnceLock<reqwest::Client>,
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
    pub fn new(origin: Arc<Origin>) -> Result<Self, Error> {
        let http = build(builder(&origin)?)?;
        Ok(Self {
            http,
            undecoded: OnceLock::new(),
            origin,
        })
    }

    /// Sends one GET and reads its answer, of at most `max_bytes` once decoded.
    pub async fn get(
        &self,
        endpoint: &Endpoint,
        trace: &[(&'static str, String)],
        max_bytes: u64,
    ) -> Result<Answer, ErrorKind> {
        let request = self.http.get(self.url(endpoint));
        self.send(traced(request, trace), max_bytes).await
    }

    /// The same for a question of the probe: the one way to what the interface rules out.
    pub async fn ask(
        &self,
        question: &Question,
        trace: &[(&'static str, String)],
        max_bytes: u64,
    ) -> Result<Answer, ErrorKind> {
        let http = match question.twist {
            Twist::Undecoded => self.undecoded()?,
            _ => &self.http,
        };
        let mut request = traced(http.get(self.url(question)), trace);
        if let Some((name, value)) = header(&question.twist)? {
            request = request.header(name, value);
        }
        self.send(request, max_bytes).await
    }

    async fn send(&self, request: RequestBuilder, max_bytes: u64) -> Result<Answer, ErrorKind> {
        let response = request.send().await.map_err(|error| {
            match handshake::lasting_failure(&error, &self.origin.host()) {
                Some(reason) => ErrorKind::Insecure(reason),
                None => send_failure(error),
            }
        })?;
        read(response, max_bytes).await
    }

    /// The address of path and query; what was parsed with the client is not parsed for each request.
    fn url(&self, request: &impl fmt::Display) -> Url {
        let mut url = self.origin.url.clone();
        let path = format!("{}{request}", url.path().trim_end_matches('/'));
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path.as_str(), None),
        };
        url.set_path(path);
        url.set_query(query);
        url
    }

    fn undecoded(&self) -> Result<&reqwest::Client, ErrorKind> {
        if let Some(http) = self.undecoded.get() {
            return Ok(http);
        }
        let http = builder(&self.origin)
            .map(|builder| builder.gzip(false).brotli(false).zstd(false))
            .and_then(build)
            .map_err(|error| error.kind.clone())?;
        Ok(self.undecoded.get_or_init(|| http))
    }
}

fn traced(request: RequestBuilder, trace: &[(&'static str, String)]) -> RequestBuilder {
    trace.iter().fold(request, |request, (name, value)| {
        request.header(*name, value)
    })
}

async fn read(mut response: Response, max_bytes: u64) -> Result<Answer, ErrorKind> {
    let status = response.status();
    let version = match response.version() {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    };
    let headers = Headers(std::mem::take(response.headers_mut()));
    let (body, failure) = read_body(response, max_bytes).await;
    match failure {
        // The status of an error says more than that its body is not whole.
        Some(failure) if status.is_success() => Err(failure),
        _ => Ok(Answer {
            status: status.as_u16(),
            version,
            headers,
            body,
        }),
    }
}

/// The header that makes the twist, in place of the usual one of its name.
fn header(twist: &Twist) -> Result<Option<(HeaderName, HeaderValue)>, ErrorKind> {
    let (name, text) = match twist {
        Twist::Plain => return Ok(None),
        Twist::MadeUpSecret(secret) => (AUTHORIZATION, format!("Bearer {secret}")),
        Twist::OtherAccept => (ACCEPT, OTHER_MEDIA_TYPE.to_owned()),
        Twist::IfNoneMatch(tag) => (IF_NONE_MATCH, tag.clone()),
        Twist::IfModifiedSince(date) => (IF_MODIFIED_SINCE, date.clone()),
        Twist::Undecoded => (ACCEPT_ENCODING, ENCODINGS.to_owned()),
    };
    match HeaderValue::from_str(&text) {
        Ok(value) => Ok(Some((name, value))),
        Err(_) => Err(ErrorKind::Transport(format!(
            "what was to stand in the header {name} cannot"
        ))),
    }
}

fn builder(origin: &Origin) -> Result<ClientBuilder, Error> {
    // An error says that a provider is installed already, which serves as well.
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
    } else if origin.is_loopback() {
        // A proxy of the environment has no way to this machine's own loopback.
        builder = builder.no_proxy();
    }
    if !needs_tls(origin) {
        // The system's roots are not even read, so it may have none.
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

/// Whether anything that this client connects to speaks TLS.
fn needs_tls(origin: &Origin) -> bool {
    let proxied = origin.proxy.as_ref().map(Url::scheme);
    origin.url.scheme() == "https" || proxied == Some("https") || !origin.is_loopback()
}

fn build(builder: ClientBuilder) -> Result<reqwest::Client, Error> {
    builder.build().map_err(|error| {
        Error::configuration(format!(
            "the HTTP client cannot be set up: {}; if this system has no certificates, install its \
             package ca-certificates, or name a PEM file in ca_bundle= or SSL_CERT_FILE",
            root_cause(&error)
        ))
    })
}

/// The value of the header that holds the secret; its bytes are overwritten when it is dropped.
struct Bearer(SecretString);

impl Bearer {
    fn of(origin: &Origin) -> Self {
        const SCHEME: &str = "Bearer ";
        let secret = origin.api_secret.expose_secret();
        // Of the right size from the start: a String that grows leaves its bytes behind.
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
    let unfit = |_| Error::configuration("api_secret or vendor cannot stand in a header");
    let bearer = Bytes::from_owner(Bearer::of(origin));
    let mut authorization = HeaderValue::from_maybe_shared(bearer).map_err(unfit)?;
    authorization.set_sensitive(true);
    let accept = HeaderValue::from_str(&accept(&origin.vendor)).map_err(unfit)?;
    Ok(HeaderMap::from_iter([
        (AUTHORIZATION, authorization),
        (ACCEPT, accept),
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

async fn read_body(mut response: Response, max_bytes: u64) -> (Bytes, Option<ErrorKind>) {
    let said = response.content_length().unwrap_or(0).min(max_bytes);
    // One that says too much gets no memory for it before it comes.
    let room = usize::try_from(said).map_or(MOST_RESERVED, |said| said.min(MOST_RESERVED));
    let mut body = Vec::with_capacity(room);
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = max_bytes.saturating_sub(body.len() as u64);
                if chunk.len() as u64 > room {
                    let limit = max_bytes;
                    return (body.into(), Some(ErrorKind::ResponseTooLarge { limit }));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(None) => return (body.into(), None),
            Err(error) => {
                let reason = format!("{} bytes came, then: {}", body.len(), root_cause(&error));
                return (body.into(), Some(ErrorKind::TruncatedBody(reason)));
            }
        }
    }
}

fn send_failure(error: reqwest::Error) -> ErrorKind {
    if error.is_redirect() {
        return ErrorKind::Transport(root_cause(&error));
    }
    if error.is_builder() {
        return ErrorKind::Transport(format!("the request cannot be made: {}", chain(&error)));
    }
    ErrorKind::Connect(chain(&error))
}

fn configuration(what: &str, error: &reqwest::Error) -> Error {
    Error::configuration(format!("{what}: {}", root_cause(error)))
}

/// What lies at the bottom of an error: the layers above repeat it, and some show the URL.
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
/// below it, which says no more than that connecting failed.
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

mod handshake;
mod roots;

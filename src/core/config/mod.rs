//! Client configuration: where the service is, the secret, and the options.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use url::{Host, Url};

use super::error::Error;
use super::retry::OnRateLimit;

#[cfg(any(test, fuzzing))]
pub mod agreement;

const MOCK_SECRET_PREFIX: &str = "mock_";

/// The settings as the caller gave them, not validated yet; `None` if not given.
#[derive(Default)]
pub struct Settings {
    pub base_url: Option<String>,
    pub api_secret: Option<SecretString>,
    pub vendor: Option<String>,
    /// May hold a password.
    pub proxy: Option<SecretString>,
    pub ca_bundle: Option<PathBuf>,
    pub allow_http: bool,
    pub user_agent: Option<String>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL that is not validated yet may hold a password.
        formatter
            .debug_struct("Settings")
            .field("vendor", &self.vendor)
            .field("ca_bundle", &self.ca_bundle)
            .field("allow_http", &self.allow_http)
            .field("user_agent", &self.user_agent)
            .finish_non_exhaustive()
    }
}

/// Where requests go and who sends them: the key of a connection pool.
pub struct Origin {
    /// Without a trailing slash, so that an endpoint's path can be appended.
    pub base_url: String,
    pub url: Url,
    pub vendor: String,
    pub api_secret: SecretString,
    pub proxy: Option<Url>,
    pub ca_bundle: Option<PathBuf>,
    pub user_agent: String,
}

impl fmt::Debug for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Origin")
            .field("base_url", &self.base_url)
            .field("vendor", &self.vendor)
            .finish_non_exhaustive()
    }
}

/// Client options; clients that share a pool may differ in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// For one attempt, from connecting to the last byte; `None` means no timeout.
    pub timeout: Option<Duration>,
    /// For a whole call, including retries, waits and pages.
    pub deadline: Option<Duration>,
    pub max_retries: u32,
    pub max_concurrency: usize,
    /// Requests per second; `None` means no limit.
    pub rate_limit: Option<f64>,
    pub on_rate_limit: OnRateLimit,
    /// Of one response, after decompression.
    pub max_response_bytes: u64,
    /// How long a call waits while the whole service is down; zero disables waiting.
    pub outage_patience: Duration,
}

/// The default outage patience of a call, and below that of a sync.
pub const OUTAGE_PATIENCE: Duration = Duration::from_secs(60);
pub const OUTAGE_PATIENCE_OF_A_SYNC: Duration = Duration::from_secs(600);

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Some(Duration::from_secs(30)),
            deadline: None,
            max_retries: 5,
            max_concurrency: 16,
            rate_limit: None,
            on_rate_limit: OnRateLimit::Wait,
            max_response_bytes: 64 * 1024 * 1024,
            outage_patience: OUTAGE_PATIENCE,
        }
    }
}

impl Origin {
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let url = base_url(settings.base_url)?;
        let api_secret = api_secret(settings.api_secret)?;
        let vendor = vendor(settings.vendor)?;
        let loopback = is_loopback(&url);
        let proxy = settings
            .proxy
            .as_ref()
            .map(|proxy| proxy_url(proxy.expose_secret()))
            .transpose()?;
        if url.scheme() == "http" && !loopback && !settings.allow_http {
            return Err(Error::configuration(format!(
                "base_url (BACKREAD_BASE_URL) {url} is plain http, which would show the secret on \
                 the way; use https, or pass allow_http=True if the network is yours"
            )));
        }
        if api_secret.expose_secret().starts_with(MOCK_SECRET_PREFIX) && !loopback {
            return Err(Error::configuration(format!(
                "api_secret (BACKREAD_API_SECRET) is a mock's, but base_url {url} is not on \
                 loopback; pass the service's own secret"
            )));
        }
        if url.scheme() == "http"
            && !settings.allow_http
            && proxy.as_ref().is_some_and(|proxy| !is_loopback(proxy))
        {
            return Err(Error::configuration(
                "base_url (BACKREAD_BASE_URL) is plain http, which would show the secret to a \
                 proxy on another machine; leave proxy out, use https, or pass allow_http=True if \
                 the proxy and the way to it are yours",
            ));
        }
        Ok(Self {
            base_url: url.as_str().trim_end_matches('/').to_owned(),
            url,
            vendor,
            api_secret,
            proxy,
            ca_bundle: settings.ca_bundle,
            user_agent: user_agent(settings.user_agent)?,
        })
    }

    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.url)
    }

    /// Whether the secret is one that the mock uses.
    pub fn is_mock(&self) -> bool {
        self.api_secret
            .expose_secret()
            .starts_with(MOCK_SECRET_PREFIX)
    }

    /// Host and port, for messages.
    pub fn host(&self) -> String {
        let port = self.url.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", self.url.host_str().unwrap_or_default())
    }

    /// The URL for a path and query; reuses the parsed base URL instead of parsing it for each
    /// request.
    pub fn address(&self, request: &impl fmt::Display) -> Url {
        let mut url = self.url.clone();
        let path = format!("{}{request}", url.path().trim_end_matches('/'));
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path.as_str(), None),
        };
        url.set_path(path);
        url.set_query(query);
        url
    }
}

impl Options {
    pub fn check(self) -> Result<Self, Error> {
        if self.max_concurrency == 0 {
            return Err(Error::configuration(
                "max_concurrency must be 1 or more, not 0",
            ));
        }
        if self.max_response_bytes == 0 {
            return Err(Error::configuration(
                "max_response_bytes must be 1 or more, not 0",
            ));
        }
        match self.rate_limit {
            Some(rate) if !(rate.is_finite() && rate > 0.0) => Err(Error::configuration(format!(
                "rate_limit must be more than 0 requests a second, not {rate}"
            ))),
            _ => Ok(self),
        }
    }
}

/// Parses `on_rate_limit`: `wait` or `raise`.
pub fn on_rate_limit(name: &str) -> Result<OnRateLimit, Error> {
    match name {
        "wait" => Ok(OnRateLimit::Wait),
        "raise" => Ok(OnRateLimit::Raise),
        other => Err(Error::configuration(format!(
            "on_rate_limit must be \"wait\" or \"raise\", not {other:?}"
        ))),
    }
}

/// Validates a whole number, 0 or more, for the option `name`.
pub fn count<T: TryFrom<i64>>(name: &str, value: i64) -> Result<T, Error> {
    T::try_from(value).map_err(|_| {
        let reason = if value < 0 { "0 or more" } else { "smaller" };
        Error::configuration(format!("{name} must be {reason}, not {value}"))
    })
}

/// Validates a number of seconds above 0 for the option `name`.
pub fn duration(name: &str, seconds: f64) -> Result<Duration, Error> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(Error::configuration(format!(
            "{name} must be more than 0 seconds and finite, not {seconds}; None sets no limit"
        ))),
    }
}

/// Validates a number of seconds, 0 or more, for the option `name`; it is required.
pub fn patience(name: &str, seconds: Option<f64>) -> Result<Duration, Error> {
    let length = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    length.ok_or_else(|| {
        let given = seconds.map_or_else(|| "None".to_owned(), |seconds| seconds.to_string());
        Error::configuration(format!(
            "{name} must be 0 or more seconds and finite, not {given}; 0 disables it"
        ))
    })
}

const UNPRINTABLE: &str = "has a blank, a line break or a character that is not ASCII (of a host, \
                           such a letter is written as xn--..., elsewhere as %...)";

/// URL parsers silently drop some characters that are not printable ASCII.
fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Escapes a text for a message: no characters that would end its line or control a terminal.
pub fn on_one_line(text: &str) -> String {
    // In addition to control characters: line and paragraph separators, and bidirectional controls.
    const OTHERS: [RangeInclusive<char>; 2] = ['\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}'];
    let steers = |each: &char| each.is_control() || OTHERS.iter().any(|all| all.contains(each));
    text.replace(|each| steers(&each), "\u{fffd}")
}

/// The error for an option `name` that is not text; it does not show the value.
pub fn no_text(name: &str) -> Error {
    Error::configuration(format!(
        "{name} has half of a character (a lone surrogate); give it again, as whole text"
    ))
}

fn missing(argument: &str, variable: &str, what: &str) -> Error {
    Error::configuration(format!(
        "no {argument}: pass {argument}= or set the environment variable {variable} to {what}"
    ))
}

fn base_url(given: Option<String>) -> Result<Url, Error> {
    const WHAT: &str = "the service's address, such as https://chat.example.com";
    let text = given
        .filter(|text| !text.trim().is_empty())
        .ok_or_else(|| missing("base_url", "BACKREAD_BASE_URL", WHAT))?;
    // The text may hold a password, so no message shows it before it is known not to.
    let malformed = |reason: &str| {
        Error::configuration(format!(
            "base_url (BACKREAD_BASE_URL) {reason}; pass {WHAT}"
        ))
    };
    let text = text.trim();
    if !is_printable(text) {
        return Err(malformed(UNPRINTABLE));
    }
    let url = Url::parse(text).map_err(|error| malformed(&format!("is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(malformed(&format!(
            "begins with {:?}, not with http or https",
            url.scheme()
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(malformed(
            "holds a user name or password; the secret goes into api_secret",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(malformed("has a query or a fragment"));
    }
    Ok(url)
}

fn api_secret(given: Option<SecretString>) -> Result<SecretString, Error> {
    let secret = given
        .filter(|secret| !secret.expose_secret().is_empty())
        .ok_or_else(|| {
            missing(
                "api_secret",
                "BACKREAD_API_SECRET",
                "the API Secret Key of the service's console",
            )
        })?;
    match is_printable(secret.expose_secret()) {
        true => Ok(secret),
        false => Err(unfit_secret()),
    }
}

fn unfit_secret() -> Error {
    Error::configuration(
        "api_secret (BACKREAD_API_SECRET) has a blank, a line break or a character that is not \
         ASCII; copy the API Secret Key again, without what stands around it",
    )
}

fn unfit_proxy() -> Error {
    Error::configuration(format!(
        "proxy {UNPRINTABLE}; pass its address, such as http://proxy.example.com:3128"
    ))
}

fn vendor(given: Option<String>) -> Result<String, Error> {
    const WHAT: &str = "the vendor word of the service's media type";
    let vendor = given
        .filter(|vendor| !vendor.is_empty())
        .ok_or_else(|| missing("vendor", "BACKREAD_VENDOR", WHAT))?;
    // The characters allowed in a media type's name (RFC 6838, 4.2).
    let fits = vendor
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.".contains(&byte))
        && vendor
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if fits {
        return Ok(vendor);
    }
    Err(Error::configuration(format!(
        "vendor (BACKREAD_VENDOR) {vendor:?} cannot stand in a media type; pass {WHAT}: letters, \
         digits and -_. only"
    )))
}

fn proxy_url(text: &str) -> Result<Url, Error> {
    // A proxy URL may hold a password, so no message shows it.
    if !is_printable(text) {
        return Err(unfit_proxy());
    }
    let url = Url::parse(text)
        .map_err(|error| Error::configuration(format!("proxy is not a URL: {error}")))?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        return Ok(url);
    }
    Err(Error::configuration(format!(
        "proxy begins with {:?}; only http and https proxies are known",
        url.scheme()
    )))
}

fn user_agent(given: Option<String>) -> Result<String, Error> {
    let user_agent =
        given.unwrap_or_else(|| concat!("backread/", env!("CARGO_PKG_VERSION")).to_owned());
    if !user_agent.is_empty()
        && user_agent
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ')
    {
        return Ok(user_agent);
    }
    Err(Error::configuration(format!(
        "user_agent {user_agent:?} cannot stand in a header; pass printable ASCII"
    )))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests;

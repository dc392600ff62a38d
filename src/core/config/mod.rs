//! Client configuration: where the service is, the secret, and the options.

#[cfg(any(test, fuzzing))]
pub mod agreement;
mod headers;
mod options;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
#[cfg(unix)]
use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
#[cfg(unix)]
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use highway::{HighwayHash, HighwayHasher, Key};
use secrecy::{ExposeSecret, SecretString};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use url::{Host, ParseError, Url};

use self::headers::Headers;
pub use self::options::{OUTAGE_PATIENCE, OUTAGE_PATIENCE_OF_A_SYNC, Options};
use super::error::Error;

const MOCK_SECRET_PREFIX: &str = "mock_";

/// The settings as the caller gave them, not validated yet; `None` if not given.
#[derive(Default, Deserialize)]
pub struct Settings {
    pub base_url: Option<String>,
    #[serde(deserialize_with = "secret")]
    pub api_secret: Option<SecretString>,
    pub vendor: Option<String>,
    /// May hold a password.
    #[serde(deserialize_with = "secret")]
    pub proxy: Option<SecretString>,
    #[serde(deserialize_with = "path")]
    pub ca_bundle: Option<PathBuf>,
    pub allow_http: bool,
    pub user_agent: Option<String>,
    /// Secrets.
    pub headers: Option<HashMap<String, String>>,
}

/// Makes no second copy: the text's buffer becomes the secret's, which is overwritten when dropped.
fn secret<'de, D: Deserializer<'de>>(given: D) -> Result<Option<SecretString>, D::Error> {
    Ok(Option::<String>::deserialize(given)?.map(SecretString::from))
}

/// From the bytes of the path, which may be no text.
fn path<'de, D: Deserializer<'de>>(given: D) -> Result<Option<PathBuf>, D::Error> {
    let bytes = Option::<Vec<u8>>::deserialize(given)?;
    #[cfg(unix)]
    let path = |bytes| Ok::<_, std::convert::Infallible>(PathBuf::from(OsString::from_vec(bytes)));
    #[cfg(not(unix))]
    let path = |bytes| String::from_utf8(bytes).map(PathBuf::from);
    bytes.map(path).transpose().map_err(D::Error::custom)
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
    pub headers: Headers,
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

impl Origin {
    /// # Errors
    /// A configuration error for a setting that is missing or malformed, and for one that would
    /// show the secret to others.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        check_given(&settings)?;
        let url = base_url(settings.base_url)?;
        let api_secret = api_secret(settings.api_secret)?;
        let vendor = vendor(settings.vendor)?;
        let loopback = is_loopback(&url);
        let proxy = settings
            .proxy
            .as_ref()
            .map(|proxy| proxy_url(proxy.expose_secret()))
            .transpose()?;
        let shows_secret = url.scheme() == "http" && !settings.allow_http;
        if shows_secret && !loopback {
            return Err(Error::configuration(format!(
                "base_url (BACKREAD_BASE_URL) {url} is plain http, which would show the secret on \
                 the way; use https, or set allow_http if the network is yours"
            )));
        }
        if api_secret.expose_secret().starts_with(MOCK_SECRET_PREFIX) && !loopback {
            return Err(Error::configuration(format!(
                "api_secret (BACKREAD_API_SECRET) is a mock's, but base_url {url} is not on \
                 loopback; pass the service's own secret"
            )));
        }
        if shows_secret && proxy.as_ref().is_some_and(|proxy| !is_loopback(proxy)) {
            return Err(Error::configuration(
                "base_url (BACKREAD_BASE_URL) is plain http, which would show the secret to a \
                 proxy on another machine; leave proxy out, use https, or set allow_http if \
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
            headers: Headers::new(settings.headers)?,
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

    /// Four hexadecimal digits by which a mirror with this key knows whether the secret is another;
    /// too few to guess it by. Mocks draw a new secret each time, and have `mock`.
    pub fn secret_mark(&self, key: [u8; 16]) -> String {
        if self.is_mock() {
            return "mock".to_owned();
        }
        let key = u128::from_le_bytes(key);
        let [low, high] = [key as u64, (key >> 64) as u64];
        let hash = HighwayHasher::new(Key([low, high, !low, !high]))
            .hash64(self.api_secret.expose_secret().as_bytes());
        format!("{:04x}", hash as u16)
    }

    /// What no text may show.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let secret = std::iter::once(self.api_secret.expose_secret());
        secret.chain(self.headers.secrets())
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

const UNPRINTABLE: &str = "has a blank, a line break or a character that is not ASCII (write such \
                           a character as xn--... in a host, elsewhere as %...)";

const QUOTED: &str = "has quotation marks around it, which are not part of it";

fn is_quoted(text: &str) -> bool {
    let inner = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    inner('"').or_else(|| inner('\'')).is_some()
}

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

const BASE_URL: &str = "the service's address, such as https://chat.example.com";
const API_SECRET: &str = "the API Secret Key of the service's console";
const VENDOR: &str = "the vendor word of the service's media type";

/// Names all settings that are missing.
fn check_given(settings: &Settings) -> Result<(), Error> {
    let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    let secret = settings.api_secret.as_ref();
    let has_secret = secret.is_some_and(|secret| !secret.expose_secret().is_empty());
    let missing: Vec<String> = [
        ("base_url", BASE_URL, filled(&settings.base_url)),
        ("api_secret", API_SECRET, has_secret),
        ("vendor", VENDOR, filled(&settings.vendor)),
    ]
    .into_iter()
    .filter(|(_, _, given)| !given)
    .map(|(name, what, _)| {
        let variable = name.to_ascii_uppercase();
        format!(
            "no {name}: pass {name} or set the environment variable BACKREAD_{variable} to {what}"
        )
    })
    .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Error::configuration(missing.join("; "))),
    }
}

fn base_url(given: Option<String>) -> Result<Url, Error> {
    let text = given.unwrap_or_default();
    // The text may hold a password, so no message shows it before it is known not to.
    let malformed = |reason: &str| {
        Error::configuration(format!(
            "base_url (BACKREAD_BASE_URL) {reason}; pass {BASE_URL}"
        ))
    };
    let text = text.trim();
    if !is_printable(text) {
        return Err(malformed(UNPRINTABLE));
    }
    if is_quoted(text) {
        return Err(malformed(QUOTED));
    }
    let url = Url::parse(text).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => malformed("does not begin with http:// or https://"),
        error => malformed(&format!("is not a URL: {error}")),
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(malformed(&format!(
            "begins with {:?}, not with http or https",
            url.scheme()
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(malformed(
            "holds a user name or password; pass the secret as api_secret",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(malformed("has a query or a fragment"));
    }
    let path = url.path().trim_end_matches('/');
    for end in ["/external", "/external/users"] {
        if let Some(path) = path.strip_suffix(end) {
            let origin = url.origin().ascii_serialization();
            return Err(Error::configuration(format!(
                "base_url (BACKREAD_BASE_URL) ends in {end}, which requests add; pass {origin}{path}"
            )));
        }
    }
    Ok(url)
}

fn api_secret(given: Option<SecretString>) -> Result<SecretString, Error> {
    let secret = given.unwrap_or_default();
    let fault = match secret.expose_secret() {
        // A bearer token has none (RFC 6750, 2.1); files of settings leave them in.
        quoted if is_quoted(quoted) => QUOTED,
        text if is_printable(text) => return Ok(secret),
        _ => "has a blank, a line break or a character that is not ASCII",
    };
    Err(Error::configuration(format!(
        "api_secret (BACKREAD_API_SECRET) {fault}; copy the API Secret Key again, without any text \
         around it"
    )))
}

fn vendor(given: Option<String>) -> Result<String, Error> {
    let vendor = given.unwrap_or_default();
    // The characters allowed in a media type's name (RFC 6838, 4.2).
    let word = |byte: u8| byte.is_ascii_alphanumeric();
    let mut bytes = vendor.bytes();
    let fits = bytes.next().is_some_and(word)
        && bytes.all(|byte| word(byte) || b"!#$&-^_.".contains(&byte));
    if fits {
        return Ok(vendor);
    }
    // It may be the secret, in the wrong place, so the message does not show it.
    Err(Error::configuration(format!(
        "vendor (BACKREAD_VENDOR) is not valid in a media type; pass {VENDOR}, which has letters, \
         digits and -_. only"
    )))
}

/// What is said of a proxy's address that cannot be read. Its password may have such characters.
pub const PROXY_ADDRESS: &str = "such as http://proxy.example.com:3128; in a user name or \
                                 password, write / as %2F, ? as %3F, # as %23 and \\ as %5C";

fn proxy_url(text: &str) -> Result<Url, Error> {
    // A proxy URL may hold a password, so no message shows it.
    let malformed =
        |why: &str| Error::configuration(format!("proxy {why}; pass its address, {PROXY_ADDRESS}"));
    if !is_printable(text) {
        return Err(malformed(UNPRINTABLE));
    }
    if !text.contains("://") {
        return Err(malformed("has no http:// or https:// in front"));
    }
    let url = Url::parse(text).map_err(|error| malformed(&format!("is not a URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::configuration(format!(
            "proxy begins with {:?}; only http and https proxies are supported",
            url.scheme()
        )));
    }
    if !has_whole_host(&url) {
        return Err(malformed("has no host, or its host is not where it seems"));
    }
    Ok(url)
}

/// Whether the host of a proxy's URL is not the beginning of its password, which has a `/`, `?` or
/// `#`.
pub fn has_whole_host(url: &Url) -> bool {
    url.has_host()
        && [Some(url.path()), url.query(), url.fragment()]
            .iter()
            .flatten()
            .all(|part| !part.contains('@'))
}

fn user_agent(given: Option<String>) -> Result<String, Error> {
    let user_agent =
        given.unwrap_or_else(|| concat!("backread/", env!("CARGO_PKG_VERSION")).to_owned());
    let printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if !user_agent.is_empty() && user_agent.bytes().all(printable) {
        return Ok(user_agent);
    }
    Err(Error::configuration(format!(
        "user_agent {user_agent:?} is not valid in a header; pass printable ASCII"
    )))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

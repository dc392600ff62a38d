//! How the HTTP client is set up: its headers, proxy and certificates.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, ClientBuilder, Proxy};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::failures::root_cause;
use super::{environment, keep_alive, roots};
use crate::api::accept;
use crate::config::Origin;
use crate::error::Error;

// Without deflate, which services also send without the header of zlib that RFC 9110 (8.4.1.2) asks for.
const ACCEPTED: &str = "zstd,gzip,br";
const POOL_IDLE: Duration = Duration::from_secs(60);

/// A client of one origin. `silence` is how long a connection may be silent while requests wait for
/// answers.
pub fn http_client(origin: &Origin, silence: Duration) -> Result<reqwest::Client, Error> {
    let builder = keep_alive::watched(builder(origin)?, silence);
    builder.build().map_err(|error| {
        Error::configuration(format!(
            "the HTTP client cannot be set up: {}; if this system has no certificates, install its \
             package ca-certificates, or name a PEM file in ca_bundle or SSL_CERT_FILE",
            root_cause(&error)
        ))
    })
}

fn builder(origin: &Origin) -> Result<ClientBuilder, Error> {
    // An error means that a provider is already installed, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .default_headers(headers(origin)?)
        .user_agent(&origin.user_agent)
        // Names are the same in any case (RFC 9110, 5.1), but some services look for `Authorization`.
        .http1_title_case_headers()
        .redirect(Policy::none())
        // Without the limit, each request is cloned in case of a retry.
        .retry(reqwest::retry::never().max_retries_per_request(0))
        .referer(false)
        .pool_idle_timeout(POOL_IDLE);
    let proxy = match &origin.proxy {
        Some(proxy) => Some(
            Proxy::all(proxy.clone())
                .map_err(|error| configuration("proxy cannot be used", &error))?,
        ),
        // A proxy from the environment cannot reach this machine's loopback.
        None if origin.is_loopback() => None,
        None => environment::proxy(&origin.url)?,
    };
    builder = match proxy {
        Some(proxy) => builder.proxy(proxy),
        None => builder.no_proxy(),
    };
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

fn configuration(what: &str, error: &reqwest::Error) -> Error {
    Error::configuration(format!("{what}: {}", root_cause(error)))
}

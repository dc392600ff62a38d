//! How the HTTP client is set up: its headers, proxy and certificates.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, ClientBuilder, NoProxy, Proxy};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::download::PublicOnly;
use super::failures::root_cause;
use super::roots;
use crate::api::accept;
use crate::config::{Origin, PROXY_ADDRESS, has_whole_host};
use crate::error::Error;

// Without deflate, which services also send without the header of zlib that RFC 9110 (8.4.1.2) asks for.
const ACCEPTED: &str = "zstd,gzip,br";
const POOL_IDLE: Duration = Duration::from_secs(60);
const SCHEMES: [&str; 2] = ["http", "https"];

/// A client of one origin. `silence` is how long a connection may be silent while requests wait for
/// answers.
pub fn http_client(origin: &Origin, silence: Duration) -> Result<reqwest::Client, Error> {
    let mut builder = plain(origin)
        .default_headers(headers(origin)?)
        // Names are the same in any case (RFC 9110, 5.1), but some services look for `Authorization`.
        .http1_title_case_headers();
    let proxies = match needs_no_proxy(origin) {
        true => Vec::new(),
        false => proxies(origin, &[origin.url.scheme()])?,
    };
    for (proxy, _) in proxies {
        builder = builder.proxy(proxy);
    }
    // Without TLS, the system's roots are not read, so there need not be any.
    let builder = match needs_tls(origin) {
        true => builder.tls_certs_merge(added_roots(origin)?),
        false => {
            roots::bundle(origin)?;
            builder.tls_certs_only([])
        }
    };
    built(watched(builder, silence))
}

/// A client for attachments: it has no secret, and its files arrive as they are. It connects to the
/// service itself, or with a resolver, to others.
pub fn download_client(
    origin: &Origin,
    others: Option<PublicOnly>,
) -> Result<reqwest::Client, Error> {
    let mut builder = plain(origin)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .tls_certs_merge(added_roots(origin)?);
    if others.is_some() || !needs_no_proxy(origin) {
        for (proxy, _) in proxies(origin, &SCHEMES)? {
            builder = builder.proxy(proxy);
        }
    }
    if let Some(resolver) = others {
        builder = builder.dns_resolver(resolver);
    }
    built(builder)
}

/// The names of the proxies for attachments.
pub fn proxy_names(origin: &Origin) -> Result<Arc<[String]>, Error> {
    let proxies = proxies(origin, &SCHEMES)?;
    let names = proxies.iter().filter_map(|(_, address)| address.domain());
    Ok(names.map(str::to_owned).collect())
}

fn built(builder: ClientBuilder) -> Result<reqwest::Client, Error> {
    builder.build().map_err(|error| {
        Error::configuration(format!(
            "the HTTP client cannot be set up: {}; if this system has no certificates, install its \
             package ca-certificates, or name a PEM file in ca_bundle or SSL_CERT_FILE",
            root_cause(&error)
        ))
    })
}

/// Has an HTTP/2 connection closed whose other end is silent for so long, which is as long as an
/// attempt may take.
///
/// All requests share one connection, which a failover or an expired entry of a NAT makes silent
/// without closing it: no attempt after a timeout would get another one. While requests wait for
/// answers, a PING (RFC 9113, section 6.7) is sent after a fourth of that time without anything
/// received. A service that is slow to answer, but answers in time, answers the PING by then, too.
fn watched(builder: ClientBuilder, silence: Duration) -> ClientBuilder {
    builder
        .http2_keep_alive_interval(silence / 4)
        .http2_keep_alive_timeout(silence)
}

/// What all clients have in common: neither redirects, retries nor proxies of reqwest's own.
fn plain(origin: &Origin) -> ClientBuilder {
    // An error means that a provider is already installed, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(&origin.user_agent)
        .redirect(Policy::none())
        // Without the limit, each request is cloned in case of a retry.
        .retry(reqwest::retry::never().max_retries_per_request(0))
        .referer(false)
        .pool_idle_timeout(POOL_IDLE)
        .no_proxy()
}

/// Whether no proxy is used for the service: one from the environment cannot reach this machine's
/// loopback.
fn needs_no_proxy(origin: &Origin) -> bool {
    origin.proxy.is_none() && origin.is_loopback()
}

/// The proxies for requests of these schemes, with their addresses: that of the options, or those that
/// the environment names.
fn proxies(origin: &Origin, schemes: &[&str]) -> Result<Vec<(Proxy, Url)>, Error> {
    if let Some(address) = &origin.proxy {
        let proxy = Proxy::all(address.clone())
            .map_err(|error| configuration("proxy cannot be used", &error))?;
        return Ok(vec![(proxy, address.clone())]);
    }
    let found = schemes.iter().map(|scheme| environment_proxy(scheme));
    found.filter_map(Result::transpose).collect()
}

/// The proxy for requests of this scheme, if the environment names one, and its address.
///
/// Rejects an address that cannot be read: reqwest ignores it, and requests would bypass the proxy.
fn environment_proxy(scheme: &str) -> Result<Option<(Proxy, Url)>, Error> {
    let names = match scheme {
        "https" => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        _ => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    let given = names.into_iter().find_map(|name| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        Some((name, value?))
    });
    let Some((name, value)) = given else {
        return Ok(None);
    };
    // In a CGI script, the header `Proxy` of a stranger's request sets HTTP_PROXY.
    let is_a_header = name == "HTTP_PROXY" && std::env::var_os("REQUEST_METHOD").is_some();
    let address = value.to_str().filter(|_| !is_a_header).and_then(address);
    let proxy = address.and_then(|address| {
        let proxy = match scheme {
            "https" => Proxy::https(address.clone()),
            _ => Proxy::http(address.clone()),
        };
        Some((proxy.ok()?, address))
    });
    // It may hold a password, so the message does not show it.
    let unreadable = || {
        Error::configuration(format!(
            "{name} of the environment is not the address of an HTTP proxy; correct or unset that \
             variable, or name the proxy in proxy: an address is {PROXY_ADDRESS}"
        ))
    };
    let (proxy, address) = proxy.ok_or_else(unreadable)?;
    Ok(Some((proxy.no_proxy(NoProxy::from_env()), address)))
}

/// As is customary, an address without a scheme is an http one.
fn address(value: &str) -> Option<Url> {
    let url = match value.contains(":/") {
        true => Url::parse(value),
        false => Url::parse(&format!("http://{value}")),
    };
    let of_http = |url: &Url| matches!(url.scheme(), "http" | "https") && has_whole_host(url);
    url.ok().filter(of_http)
}

fn added_roots(origin: &Origin) -> Result<Vec<Certificate>, Error> {
    roots::added(origin)?
        .iter()
        .map(|root| Certificate::from_der(root))
        .collect::<Result<_, _>>()
        .map_err(|error| configuration("a root certificate cannot be used", &error))
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
    let own = [
        (AUTHORIZATION, authorization),
        (ACCEPT, accept),
        (ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED)),
    ];
    Ok(own.into_iter().chain(origin.headers.values()).collect())
}

fn configuration(what: &str, error: &reqwest::Error) -> Error {
    Error::configuration(format!("{what}: {}", root_cause(error)))
}

//! The proxy that the environment names.

use reqwest::{NoProxy, Proxy};
use url::Url;

use crate::config::{PROXY_ADDRESS, has_whole_host};
use crate::error::Error;

/// The proxy for requests of this scheme, if the environment names one, and its address.
///
/// Rejects an address that cannot be read: reqwest ignores it, and requests would bypass the proxy.
pub fn proxy(scheme: &str) -> Result<Option<(Proxy, Url)>, Error> {
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

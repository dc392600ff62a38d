//! Proxy settings in the environment.

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use crate::core::config::{PROXY_ADDRESS, is_whole_address};
use crate::core::error::Error;

/// Whether `NO_PROXY` exempts this service from the proxy.
///
/// More than reqwest knows: a star exempts IP addresses too, an entry may have a port, or begin with
/// `*.`, and spaces separate entries as commas do.
pub fn takes_no_proxy(service: &Url) -> bool {
    let Some(list) = ["NO_PROXY", "no_proxy"].iter().find_map(|name| set(name)) else {
        return false;
    };
    let authority = service.host_str().map(|host| {
        let port = service.port_or_known_default().unwrap_or_default();
        format!("{host}:{port}")
    });
    let entries = list.split(|separator: char| separator == ',' || separator.is_whitespace());
    let entries: Vec<&str> = entries.filter(|entry| !entry.is_empty()).collect();
    let mut all = entries.iter();
    if all.any(|&entry| entry == "*" || authority.as_deref() == Some(entry)) {
        return true;
    }
    let plain = |entry: &&str| match entry.strip_prefix('*') {
        Some(domain) if domain.starts_with('.') => domain.to_owned(),
        _ => (*entry).to_owned(),
    };
    let entries: Vec<String> = entries.iter().map(plain).collect();
    let any = "http://proxy.invalid";
    let matcher = Matcher::builder().all(any).no(entries.join(",")).build();
    let uri = service.as_str().parse();
    uri.is_ok_and(|uri| matcher.intercept(&uri).is_none())
}

/// The proxy for this service, if the environment names one.
///
/// Rejects a malformed proxy URL, one whose scheme is unknown if it would be used, and whatever else
/// reqwest would silently ignore: requests would bypass the proxy.
pub fn proxy(service: &Url) -> Result<Option<Url>, Error> {
    let names = match service.scheme() {
        "https" => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        _ => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    let given = names
        .into_iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)))
        .filter(|(_, value)| !value.is_empty());
    let mut first = None;
    for (name, value) in given {
        let Some(url) = value.to_str().and_then(address) else {
            // It may hold a password, so no message shows it.
            return Err(Error::configuration(format!(
                "{name} of the environment is not a proxy's address, {PROXY_ADDRESS}; set it so, \
                 or leave it out"
            )));
        };
        // Desktops set ALL_PROXY to a SOCKS proxy beside one for HTTP.
        if first.is_none() && !matches!(url.scheme(), "http" | "https") {
            return Err(Error::configuration(format!(
                "{name} of the environment is a proxy of the scheme {}, and only http and https \
                 are known; name one of these in proxy, or exempt the host in NO_PROXY",
                url.scheme()
            )));
        }
        first = first.or(Some((name, url)));
    }
    let uri: Option<Uri> = service.as_str().parse().ok();
    let used = || uri.is_some_and(|uri| Matcher::from_env().intercept(&uri).is_some());
    match first {
        Some((name, _)) if !used() => Err(Error::configuration(format!(
            "{name} of the environment would be passed by: the same name in the other case is \
             empty, REQUEST_METHOD is set, or the address has a character that must be \
             percent-encoded; correct that, name the proxy in proxy, or exempt the host in NO_PROXY"
        ))),
        first => Ok(first.map(|(_, url)| url)),
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// As is customary, an address without a scheme is an http one.
fn address(value: &str) -> Option<Url> {
    let url = match value.contains("://") {
        true => Url::parse(value),
        false => Url::parse(&format!("http://{value}")),
    };
    url.ok().filter(is_whole_address)
}

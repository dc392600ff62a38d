//! Proxy settings in the environment.

use std::ffi::OsString;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use crate::config::{PROXY_ADDRESS, has_whole_host};
use crate::error::Error;

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
    let of_scheme = match service.scheme() {
        "https" => ["HTTPS_PROXY", "https_proxy"],
        _ => ["HTTP_PROXY", "http_proxy"],
    };
    let spellings = [of_scheme, ["ALL_PROXY", "all_proxy"]];
    for name in spellings.as_flattened() {
        if let Some(value) = value_of(name).filter(|value| !value.is_empty()) {
            // It may hold a password, so no message shows it.
            value.to_str().and_then(address).ok_or_else(|| {
                Error::configuration(format!(
                    "{name} of the environment is not a proxy's address; correct or unset that \
                     variable: an address is {PROXY_ADDRESS}"
                ))
            })?;
        }
    }
    // As for reqwest, the upper case counts even if it is empty.
    let counts = |[upper, lower]: [&'static str; 2]| match value_of(upper) {
        Some(value) => (upper, value),
        None => (lower, value_of(lower).unwrap_or_default()),
    };
    let mut used = spellings.into_iter().map(counts);
    let used = used.find(|(_, value)| !value.is_empty());
    let passed_by = |name: &str| {
        Error::configuration(format!(
            "{name} of the environment would be passed by: the same name in the other case is \
             empty, REQUEST_METHOD is set, or the address has a character that must be \
             percent-encoded; correct that, name the proxy in proxy, or exempt the host in NO_PROXY"
        ))
    };
    let Some((name, value)) = used else {
        let mut names = spellings.as_flattened().iter();
        let given = names.find(|name| value_of(name).is_some_and(|value| !value.is_empty()));
        return given.map_or(Ok(None), |name| Err(passed_by(name)));
    };
    let url = value
        .to_str()
        .and_then(address)
        .ok_or_else(|| passed_by(name))?;
    // Desktops set ALL_PROXY to a SOCKS proxy beside one for HTTP.
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Error::configuration(format!(
            "{name} of the environment is a proxy of the scheme {}, and only http and https are \
             known; name one of these in proxy, or exempt the host in NO_PROXY",
            url.scheme()
        )));
    }
    let uri: Option<Uri> = service.as_str().parse().ok();
    match uri.is_some_and(|uri| Matcher::from_env().intercept(&uri).is_some()) {
        true => Ok(Some(url)),
        false => Err(passed_by(name)),
    }
}

fn value_of(name: &str) -> Option<OsString> {
    std::env::var_os(name)
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
    url.ok().filter(has_whole_host)
}

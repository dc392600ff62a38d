//! Proxy settings in the environment.

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use crate::core::error::Error;

/// Whether `NO_PROXY` exempts this service from the proxy.
///
/// More than reqwest knows: a star exempts IP addresses too, and an entry may have a port.
pub fn takes_no_proxy(service: &Url) -> bool {
    let Some(list) = ["NO_PROXY", "no_proxy"].iter().find_map(|name| set(name)) else {
        return false;
    };
    let authority = service.host_str().map(|host| {
        let port = service.port_or_known_default().unwrap_or_default();
        format!("{host}:{port}")
    });
    let mut entries = list.split(',').map(str::trim);
    if entries.any(|entry| entry == "*" || authority.as_deref() == Some(entry)) {
        return true;
    }
    let any = "http://proxy.invalid";
    let matcher = Matcher::builder().all(any).no(list.as_str()).build();
    let uri = service.as_str().parse();
    uri.is_ok_and(|uri| matcher.intercept(&uri).is_none())
}

/// Rejects a malformed proxy URL, one whose scheme is unknown if it would be used, and whatever else
/// reqwest would silently ignore: requests would bypass the proxy.
pub fn check_proxies(service: &Url) -> Result<(), Error> {
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
        let Some(scheme) = value.to_str().and_then(scheme_of) else {
            // It may hold a password, so no message shows it.
            return Err(Error::configuration(format!(
                "{name} of the environment is not a proxy's address, such as \
                 http://proxy.example.com:3128; set it so, or leave it out"
            )));
        };
        // Desktops set ALL_PROXY to a SOCKS proxy beside one for HTTP.
        if first.is_none() && !["http", "https"].contains(&scheme.as_str()) {
            return Err(Error::configuration(format!(
                "{name} of the environment is a proxy of the scheme {scheme}, and only http and \
                 https are known; name one of these in proxy, or exempt the host in NO_PROXY"
            )));
        }
        first = first.or(Some(name));
    }
    let uri: Option<Uri> = service.as_str().parse().ok();
    let used = || uri.is_some_and(|uri| Matcher::from_env().intercept(&uri).is_some());
    match first {
        Some(name) if !used() => Err(Error::configuration(format!(
            "{name} of the environment would be passed by: the same name in the other case is \
             empty, REQUEST_METHOD is set, or the address has a character that must be \
             percent-encoded; correct that, name the proxy in proxy, or exempt the host in NO_PROXY"
        ))),
        _ => Ok(()),
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// As is customary, an address without a scheme is an http one.
fn scheme_of(value: &str) -> Option<String> {
    let url = match value.contains("://") {
        true => Url::parse(value),
        false => Url::parse(&format!("http://{value}")),
    };
    let url = url.ok().filter(Url::has_host)?;
    Some(url.scheme().to_owned())
}

//! Proxy settings in the environment.

use url::Url;

use crate::core::error::Error;

/// Rejects a malformed proxy URL: it would be silently ignored, and requests would bypass the
/// proxy.
pub fn check_proxies(scheme: &str) -> Result<(), Error> {
    let names = match scheme {
        "https" => ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        _ => ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    for name in names {
        let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
            continue;
        };
        if !value.to_str().is_some_and(is_address) {
            // It may hold a password, so no message shows it.
            return Err(Error::configuration(format!(
                "{name} of the environment is not a proxy's address, such as \
                 http://proxy.example.com:3128; set it so, or leave it out"
            )));
        }
    }
    Ok(())
}

/// As is customary, an address without a scheme is an http one.
fn is_address(value: &str) -> bool {
    let url = match value.contains("://") {
        true => Url::parse(value),
        false => Url::parse(&format!("http://{value}")),
    };
    url.is_ok_and(|url| url.has_host())
}

//! What the environment says of proxies.

use url::Url;

use crate::core::error::Error;

/// Refuses an address of a proxy that cannot be read: it would be passed over in silence, and requests
/// would go past the proxy.
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
            // It may hold a password: no message shows it.
            return Err(Error::configuration(format!(
                "{name} of the environment is not a proxy's address, such as \
                 http://proxy.example.com:3128; set it so, or leave it out"
            )));
        }
    }
    Ok(())
}

/// As usual, one without a scheme is http's.
fn is_address(value: &str) -> bool {
    let url = match value.contains("://") {
        true => Url::parse(value),
        false => Url::parse(&format!("http://{value}")),
    };
    url.is_ok_and(|url| url.has_host())
}

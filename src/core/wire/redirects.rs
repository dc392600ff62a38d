//! Where a response sends the client instead: within the origin only, because the secret must not leave
//! it.
//!
//! The caller follows, not reqwest, so that each request waits for its turn and is counted.

use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode};
use url::Url;

use crate::error::ErrorKind;

/// The most redirects that an attempt follows.
pub const MOST_REDIRECTS: u32 = 5;

/// An address within the origin.
#[derive(Debug, Clone)]
pub struct Target(pub(super) Box<Url>);

impl Target {
    pub fn path(&self) -> &str {
        self.0.path()
    }
}

/// The target of a redirect; `None` for other responses, and for redirects that name none.
pub fn target(response: &Response) -> Result<Option<Target>, ErrorKind> {
    let moved = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(LOCATION).filter(|_| moved);
    let Some(mut url) = location
        .and_then(|location| std::str::from_utf8(location.as_bytes()).ok())
        .and_then(|location| response.url().join(location).ok())
    else {
        return Ok(None);
    };
    // A service behind a proxy for TLS may not know that it is: the secret stays on TLS.
    let here = response.url();
    if (url.scheme(), here.scheme()) == ("http", "https")
        && url.host() == here.host()
        && (url.port().is_none() || url.port() == here.port_or_known_default())
    {
        let _ = url.set_scheme("https");
        let _ = url.set_port(here.port());
    }
    let origin = url.origin();
    if origin != here.origin() {
        return Err(ErrorKind::Transport(format!(
            "a redirect to another origin, {}, was refused: the secret stays with the service; if \
             it has moved, set base_url to its new address, or perhaps this network wants a login",
            origin.ascii_serialization()
        )));
    }
    // Or it would replace the secret in the header.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Ok(Some(Target(Box::new(url))))
}

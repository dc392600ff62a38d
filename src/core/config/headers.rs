//! Additional headers, for gateways in front of a service. Their values are secrets.

use std::collections::HashMap;

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::error::Error;

/// Headers that the client sends itself, that describe the message or the connection (RFC 9110, section
/// 7.6.1), or that belong to a proxy.
const OWN: [&str; 18] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Headers to send with each request.
pub struct Headers(Vec<(HeaderName, SecretString)>);

impl Headers {
    /// # Errors
    /// A configuration error for a name that is none, or not the caller's to set, and for a value that
    /// does not fit a header. It shows no value.
    pub fn new(given: Option<HashMap<String, String>>) -> Result<Self, Error> {
        let given = given.unwrap_or_default().into_iter();
        given
            .map(|(name, value)| header(&name, value.into()))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Their values as they are sent, without a trace of them in a log.
    pub fn values(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.0.iter().filter_map(|(name, value)| {
            let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
            value.set_sensitive(true);
            Some((name.clone(), value))
        })
    }

    /// Their values as texts to redact.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, value)| value.expose_secret())
    }
}

fn header(name: &str, value: SecretString) -> Result<(HeaderName, SecretString), Error> {
    let invalid = |reason: &str| Error::configuration(format!("headers: {reason}"));
    let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
        // It may be a value in the wrong place, so the message does not show it.
        return Err(invalid(
            "a name has characters that no header's name has (RFC 9110, section 5.6.2)",
        ));
    };
    let advice = match parsed.as_str() {
        "authorization" => "; pass the secret as api_secret",
        "user-agent" => "; pass user_agent",
        own if OWN.contains(&own) => "",
        _ => {
            let text = value.expose_secret();
            let fits = |byte| (b' '..=b'~').contains(&byte);
            if text.trim() != text || text.is_empty() || !text.bytes().all(fits) {
                return Err(invalid(&format!(
                    "the value of {parsed} must be visible ASCII, without blanks around it"
                )));
            }
            return Ok((parsed, value));
        }
    };
    Err(invalid(&format!("{parsed} is not yours to set{advice}")))
}

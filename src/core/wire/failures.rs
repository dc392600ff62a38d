//! Why a request got no response: its error, and whether it is sent again at once.

use std::error::Error as StdError;
use std::io;

use rustls::{CertificateError, Error as TlsError};

use super::Resend;
use crate::config::Origin;
use crate::error::ErrorKind;

// hyper-util's message for a 407 to CONNECT, and how all of its messages about CONNECT begin; its
// error has no public type.
const PROXY_REFUSAL: &str = "tunnel error: proxy authorization required";
const TUNNEL: &str = "tunnel error: ";

/// Whether to send a request again at once.
///
/// HTTP/2 tells which requests it did not process: those above the last id of a GOAWAY (RFC 9113,
/// section 6.8), which is how nginx ends a connection after `keepalive_requests`, and those reset
/// with REFUSED_STREAM (section 8.7). Otherwise a connection that closes before its answer may have
/// been idle for too long, which its client cannot know (RFC 9112, section 9.5); a GET is
/// idempotent, so it may be sent again (section 9.3.1).
pub fn resend(error: &reqwest::Error) -> Resend {
    if error.is_connect() || error.is_timeout() {
        return Resend::Never;
    }
    if let Some(error) = cause::<h2::Error>(error) {
        let reason = error.reason();
        let above_last = error.is_go_away() && reason != Some(h2::Reason::ENHANCE_YOUR_CALM);
        let refused = error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM);
        return match error.is_remote() && (above_last || refused) {
            true => Resend::NotProcessed,
            false if error.is_io() => Resend::Once,
            false => Resend::Never,
        };
    }
    match cause::<hyper::Error>(error) {
        // Neither hyper nor hyper-util had begun to write it.
        Some(error) if error.is_canceled() => Resend::NotProcessed,
        None if error.is_request() => Resend::NotProcessed,
        Some(failure)
            if failure.is_incomplete_message()
                || failure.is_closed()
                || cause::<io::Error>(error).is_some() =>
        {
            Resend::Once
        }
        _ => Resend::Never,
    }
}

/// The error of a request that got no response.
pub fn send_failure(error: &reqwest::Error, origin: &Origin) -> ErrorKind {
    let reason = chain(error);
    if error.is_builder() {
        return ErrorKind::Transport(format!("the request cannot be made: {reason}"));
    }
    if root_cause(error) == PROXY_REFUSAL {
        return ErrorKind::ProxyPassword;
    }
    let by_proxy = reason.contains(TUNNEL);
    if let Some(failure) = cause::<TlsError>(error) {
        // Plain HTTP is secure as far as the proxy only.
        let peer = match by_proxy || origin.url.scheme() == "http" {
            true => "the proxy",
            false => &origin.host(),
        };
        let advice = tls_advice(failure);
        return ErrorKind::Insecure(format!("{peer}: {reason}{advice}"));
    }
    match cause::<hyper::Error>(error) {
        Some(failure) if failure.is_parse() => ErrorKind::NotHttp(root_cause(error)),
        _ if by_proxy => ErrorKind::Connect(format!("the proxy did not connect: {reason}")),
        _ => ErrorKind::Connect(reason),
    }
}

/// What to do about a TLS failure whose cause is certain.
fn tls_advice(failure: &TlsError) -> &'static str {
    let TlsError::InvalidCertificate(reason) = failure else {
        return match failure {
            TlsError::InvalidMessage(_) => {
                "; the server does not speak TLS: check the port and the scheme of base_url and of \
                 the proxy"
            }
            _ => "",
        };
    };
    match reason {
        CertificateError::UnknownIssuer => {
            "; if a private authority issued the certificate, or your network inspects TLS, name \
             that authority's PEM file in ca_bundle or SSL_CERT_FILE"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "; the certificate is another host's: check the host in base_url or in the proxy's \
             address"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "; the certificate has expired: it must be renewed, if this machine's clock is right"
        }
        _ => "",
    }
}

/// The root cause of an error: the layers above repeat it, and some show the URL.
pub fn root_cause(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(error.source(), |&error| error.source());
    causes
        .last()
        .map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

/// The causes from the outside in, without that of the layer below reqwest, which only says that
/// connecting failed. reqwest's own message shows the URL.
fn chain(error: &reqwest::Error) -> String {
    let outer = error.source();
    let first = outer.and_then(StdError::source).or(outer);
    let causes = std::iter::successors(first, |&error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    match texts.is_empty() {
        true => "unknown".to_owned(),
        false => texts.join(": "),
    }
}

/// The first error of that type among an error and its causes.
pub fn cause<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        // The error that an I/O error wraps is not its `source`.
        let wrapped = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    None
}

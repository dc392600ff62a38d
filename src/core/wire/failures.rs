//! Why a request got no response, as reqwest says it.

use std::error::Error as _;
use std::io;

use super::tls_errors;
use crate::error::ErrorKind;

// hyper-util's message for a 407 to CONNECT; its error has no public type.
const PROXY_REFUSAL: &str = "tunnel error: proxy authorization required";

// Its message for any other answer than 200 to CONNECT, whose status it does not tell.
const NO_TUNNEL: &str = "tunnel error: unsuccessful";

// Its messages for a proxy that ends the connection instead of an answer, as one that speaks TLS
// does.
const CUT_TUNNELS: [&str; 2] = [
    "tunnel error: io error establishing tunnel",
    "tunnel error: unexpected end of file",
];

// What all of them begin with.
const TUNNEL: &str = "tunnel error: ";

// And for a proxy that cannot be connected to.
const NO_PROXY: &str = "tunnel error: failed to create underlying connection";

pub fn send_failure(error: &reqwest::Error) -> ErrorKind {
    if error.is_builder() {
        return ErrorKind::Transport(format!("the request cannot be made: {}", chain(error)));
    }
    if root_cause(error) == PROXY_REFUSAL {
        return ErrorKind::ProxyPassword;
    }
    let parsing = tls_errors::cause::<hyper::Error>(error);
    if parsing.is_some_and(hyper::Error::is_parse_too_large) {
        return ErrorKind::Transport(
            "the answer's status line and headers are larger than any service needs; check base_url"
                .to_owned(),
        );
    }
    if parsing.is_some_and(hyper::Error::is_parse) {
        return ErrorKind::NotHttp(root_cause(error));
    }
    let mut reason = chain(error).replace(NO_PROXY, "the proxy cannot be connected to");
    for text in CUT_TUNNELS {
        reason = reason.replace(
            text,
            "the proxy ended the connection without an answer to CONNECT (if it speaks TLS, its \
             address begins with https://)",
        );
    }
    if root_cause(error) == NO_TUNNEL {
        reason = "the proxy did not connect to the service (CONNECT): it may forbid that host or \
                  port, or not reach it"
            .to_owned();
    }
    if tls_errors::cause::<io::Error>(error).is_some_and(is_out_of_descriptors) {
        reason.push_str(
            "; this process may open no more files: raise its limit (ulimit -n), or lower \
             max_concurrency",
        );
    }
    ErrorKind::Connect(reason)
}

/// Whether it failed before the proxy had connected to the service. TLS with the service begins then.
pub fn is_of_proxy(error: &reqwest::Error) -> bool {
    chain(error).contains(TUNNEL)
}

#[cfg(unix)]
fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

#[cfg(not(unix))]
fn is_out_of_descriptors(_: &io::Error) -> bool {
    false
}

/// The root cause of an error: the layers above repeat it, and some show the URL.
pub fn root_cause(error: &reqwest::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    if error.source().is_some() {
        return deepest.to_string();
    }
    "unknown".to_owned()
}

/// The causes from the outside in, without those of reqwest, which shows the URL, and of the layer
/// below it, which only says that connecting failed.
fn chain(error: &reqwest::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut cause = error.source();
    if let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    while let Some(inner) = cause {
        let text = inner.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        cause = inner.source();
    }
    match causes.is_empty() {
        true => "unknown".to_owned(),
        false => causes.join(": "),
    }
}

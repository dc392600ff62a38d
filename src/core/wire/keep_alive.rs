//! Connections that fall silent.

use std::time::Duration;

use reqwest::ClientBuilder;

/// How long an HTTP/2 connection may leave a PING without an answer, unless the timeout is shorter.
pub const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// How long attempts of this timeout let a connection be silent.
pub fn silence(timeout: Option<Duration>) -> Duration {
    timeout.unwrap_or(LONGEST_SILENCE).min(LONGEST_SILENCE)
}

/// Has an HTTP/2 connection closed whose other end is silent for so long, which is as long as an
/// attempt may take.
///
/// All requests share one connection, which a failover or an expired entry of a NAT makes silent
/// without closing it: no attempt after a timeout would get another one. While requests wait for
/// answers, a PING (RFC 9113, section 6.7) is sent after a fourth of that time without anything
/// received. A service that is slow to answer, but answers in time, answers the PING by then, too.
pub fn watched(builder: ClientBuilder, silence: Duration) -> ClientBuilder {
    builder
        .http2_keep_alive_interval(silence / 4)
        .http2_keep_alive_timeout(silence)
}

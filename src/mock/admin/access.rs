//! Access control: the token, and the host names that requests may use.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::http::uri::Authority;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

use super::problem::Problem;
use crate::secret;

/// The token of one server: 128 random bits, as 32 hexadecimal digits.
#[derive(Debug)]
pub struct Token(SecretString);

impl Token {
    /// A new random token.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn draw() -> Result<Self, getrandom::Error> {
        Ok(Self(secret::draw()?.into()))
    }

    /// The token itself, for the caller that started the server.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }

    /// Admits a request that carries the token, in a header that no foreign page can make a browser
    /// send.
    ///
    /// # Errors
    /// `unauthorized`.
    pub fn admit(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let token = given
            .next()
            .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "))
            .filter(|_| given.next().is_none())
            .unwrap_or_default();
        // Constant time, so that timing does not show how much of a guess was right.
        if bool::from(token.ct_eq(self.reveal().as_bytes())) {
            return Ok(());
        }
        Err(Problem::unauthorized())
    }
}

/// Rejects requests that used a host name: the owner of a name can point it at this machine, and a
/// browser here then treats this server as part of that owner's site (DNS rebinding).
///
/// # Errors
/// `wrong_host`.
pub fn check_host(headers: &HeaderMap) -> Result<(), Problem> {
    let mut given = headers.get_all(HOST).iter();
    let host = given.next().filter(|_| given.next().is_none());
    let host = host.and_then(|host| host.to_str().ok());
    let authority = host.and_then(|host| host.parse::<Authority>().ok());
    match authority {
        Some(authority) if is_address(authority.host()) && is_bare(&authority) => Ok(()),
        _ => Err(Problem::wrong_host()),
    }
}

/// Whether it has only a host and at most a port: `[::1].example` and `name@[::1]` have this host
/// too.
fn is_bare(authority: &Authority) -> bool {
    let host = authority.host();
    let rest = authority.as_str().strip_prefix(host);
    match authority.port_u16() {
        Some(port) => rest == Some(&format!(":{port}")),
        None => rest == Some(""),
    }
}

fn is_address(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse::<IpAddr>().is_ok() || bare.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| value.parse().unwrap());
        values.map(|value| (name.parse().unwrap(), value)).fold(
            HeaderMap::new(),
            |mut map, (name, value)| {
                let _: bool = map.append::<hyper::header::HeaderName>(name, value);
                map
            },
        )
    }

    #[test]
    fn only_the_token_opens() {
        let (token, other) = (Token::draw().unwrap(), Token::draw().unwrap());
        let admits = |values: &[&str]| token.admit(&headers("authorization", values)).is_ok();
        let right = format!("Bearer {}", token.reveal());
        assert!(admits(&[&right]));
        assert_eq!(token.reveal().len(), 32);
        assert!(!admits(&[]));
        assert!(!admits(&["Bearer "]));
        assert!(!admits(&[token.reveal()]));
        assert!(!admits(&[&right, &right]));
        assert!(!admits(&[&right[..right.len() - 1]]));
        assert!(!admits(&[&format!("Bearer {}", other.reveal())]));
        assert!(!format!("{token:?}").contains(token.reveal()));
    }

    #[test]
    fn only_addresses_are_asked_for() {
        let answers = |host: &str| check_host(&headers("host", &[host])).is_ok();
        for host in [
            "127.0.0.1",
            "127.0.0.1:8080",
            "[::1]:8080",
            "localhost:1",
            "LOCALHOST",
        ] {
            assert!(answers(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "[::1].evil.example",
            "[::1].evil.example:80",
            "evil.example@127.0.0.1",
            "localhost:x",
            "localhost:",
            "[::1",
        ] {
            assert!(!answers(host), "{host}");
        }
        assert!(check_host(&HeaderMap::new()).is_err());
        assert!(check_host(&headers("host", &["127.0.0.1", "127.0.0.1"])).is_err());
    }
}

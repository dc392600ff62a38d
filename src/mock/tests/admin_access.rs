//! Who may use the admin interface.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName};
use secrecy::SecretString;

use crate::admin::access::{check_host, check_token};

fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
    let values = values
        .iter()
        .map(|value| (name.clone(), value.parse().unwrap()));
    let mut headers = HeaderMap::new();
    for (name, value) in values {
        headers.append(name, value);
    }
    headers
}

#[test]
fn only_the_token_opens() {
    let token = SecretString::from("0123456789abcdef");
    let admits = |values: &[&str]| check_token(&token, &headers(&AUTHORIZATION, values)).is_ok();
    let right = "Bearer 0123456789abcdef";
    assert!(admits(&[right]));
    for wrong in [
        &[][..],
        &["Bearer "],
        &["0123456789abcdef"],
        &[right, right],
        &["Bearer 0123456789abcde"],
        &["Bearer 1123456789abcdef"],
    ] {
        assert!(!admits(wrong), "{wrong:?}");
    }
}

#[test]
fn only_addresses_are_asked_for() {
    let answers = |host: &[&str]| check_host(&headers(&HOST, host)).is_ok();
    for host in [
        "127.0.0.1",
        "127.0.0.1:8080",
        "[::1]:8080",
        "localhost:1",
        "LOCALHOST",
    ] {
        assert!(answers(&[host]), "{host}");
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
        assert!(!answers(&[host]), "{host}");
    }
    assert!(!answers(&[]) && !answers(&["127.0.0.1", "127.0.0.1"]));
}

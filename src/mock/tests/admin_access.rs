//! Who may use the admin interface.

use hyper::HeaderMap;
use hyper::header::HOST;

use crate::admin::access::check_host;

#[test]
fn only_addresses_are_asked_for() {
    let answers = |hosts: &[&str]| {
        let hosts = hosts.iter().map(|host| (HOST, host.parse().unwrap()));
        let mut headers = HeaderMap::new();
        headers.extend(hosts);
        check_host(&headers).is_ok()
    };
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
        "evil.example",
        "127.0.0.1.evil.example",
        "[::1].evil.example:80",
        "evil.example@127.0.0.1",
        "localhost:x",
        "[::1",
    ] {
        assert!(!answers(&[host]), "{host}");
    }
    assert!(!answers(&[]) && !answers(&["127.0.0.1", "127.0.0.1"]));
}

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::public_only::{Found, is_public};
use super::{Downloaded, Downloader, Missing, PublicOnly, refusal};
use crate::config::agreement::settings;
use crate::config::{Origin, Settings};

const PATIENCE: Duration = Duration::from_secs(20);
const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n";

/// A server on that address that answers each request by its head; returns its base URL.
async fn server(host: &str, answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind((host, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut head = vec![0; 4096];
            let read = socket.read(&mut head).await.unwrap();
            let answer = answer(&String::from_utf8_lossy(&head[..read]));
            socket.write_all(answer.as_bytes()).await.unwrap();
            if answer.ends_with("(and more)") {
                std::future::pending::<()>().await;
            }
        }
    });
    format!("http://{host}:{port}")
}

fn origin(base_url: &str) -> Origin {
    let settings = Settings {
        allow_http: true,
        ..settings(base_url, "s3cret")
    };
    Origin::new(settings).unwrap()
}

async fn fetch(downloader: &Downloader, link: &str) -> Result<(Downloaded, Vec<u8>), String> {
    let name = format!("backread-{:016x}", fastrand::u64(..));
    let path = std::env::temp_dir().join(name);
    let fetched = match downloader.address(link) {
        Ok(url) => downloader.fetch(url, &path, 100).await,
        Err(missing) => Err(missing),
    };
    let content = std::fs::read(&path).unwrap_or_default();
    let _ = std::fs::remove_file(path);
    match fetched {
        Ok(file) => Ok((file, content)),
        Err(Missing::Refused(reason)) => Err(reason),
        Err(Missing::Unwritten(error)) => Err(error.to_string()),
    }
}

#[test]
fn public_addresses_are_told_from_others() {
    let public = "8.8.8.8 100.128.0.1 198.20.0.1 2606:4700::1111 64:ff9b::808:808";
    let others = "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 192.0.0.8 \
                  192.0.2.1 192.168.1.1 198.18.0.1 224.0.0.1 255.255.255.255 :: ::1 \
                  ::ffff:10.0.0.1 64:ff9b::a00:1 fc00::1 fe80::1 ff02::1 2001::1 2001:db8::1 \
                  2002:a00:1::1 3fff::1";
    for (addresses, expected) in [(public, true), (others, false)] {
        for address in addresses.split(' ') {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }
}

#[test]
fn names_of_private_networks_are_refused() {
    let refused = |url: &str| refusal(&url.parse().unwrap(), &["proxy.example.com".to_owned()]);
    for name in "intranet db.internal printer.local localhost. proxy.example.com".split(' ') {
        assert!(refused(&format!("http://{name}/a")).is_some(), "{name}");
    }
    for host in ["127.1", "0x7f000001", "[::ffff:127.0.0.1]", "2130706433"] {
        let reason = refused(&format!("http://{host}/a")).unwrap();
        assert!(reason.ends_with("is not a public address"), "{reason}");
    }
    assert_eq!(refused("https://files.example.com/a"), None);
}

#[tokio::test]
async fn a_file_of_the_service_is_downloaded_without_the_secret() {
    let base = server("127.0.0.1", |head| {
        assert!(
            !head.to_ascii_lowercase().contains("authorization"),
            "{head}"
        );
        assert!(head.starts_with("GET /api/files/a%20b.txt?x=1 "), "{head}");
        format!("{OK}Content-Type: Text/Plain; charset=utf-8\r\nContent-Length: 5\r\n\r\nhello")
    });
    let downloader = Downloader::new(&origin(&format!("{}/api", base.await)), PATIENCE).unwrap();
    let (file, content) = fetch(&downloader, "files/a b.txt?x=1").await.unwrap();
    assert_eq!((file.bytes, content.as_slice()), (5, b"hello".as_slice()));
    assert!(
        file.sha256.starts_with("2cf24dba5fb0a30e"),
        "{}",
        file.sha256
    );
    assert_eq!(file.media_type.as_deref(), Some("text/plain"));
}

#[tokio::test]
async fn each_bad_answer_has_its_reason() {
    let page = "<!DOCTYPE html><title>Log in</title>";
    let empty = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    let to = move |location| format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n{empty}");
    let base = server("127.0.0.1", move |head| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        match path {
            "/gone.png" => format!("HTTP/1.1 404 Not Found\r\n{empty}"),
            "/large.bin" => format!("{OK}Content-Length: 10000000000\r\n\r\n(and more)"),
            "/endless.bin" => format!("{OK}\r\n{}", "x".repeat(101)),
            "/cut.bin" => format!("{OK}Content-Length: 50\r\n\r\nshort"),
            "/login.png" => format!("{OK}Content-Type: image/png\r\n\r\n  {page}"),
            "/page.html" => format!("{OK}Content-Type: text/html\r\n\r\n{page}"),
            "/loop" => to("/loop"),
            "/local" => to("http://127.0.0.2:1/a"),
            "/ftp" => to("ftp://example.com/a"),
            _ => "not HTTP\r\n\r\n".into(),
        }
    });
    let base = base.await;
    let downloader = Downloader::new(&origin(&base), PATIENCE).unwrap();
    for (link, expected) in [
        ("/gone.png", "the server answered 404"),
        ("/endless.bin", "too large: more"),
        ("/cut.bin", "broke off after 5 bytes"),
        ("/login.png", "a web page came"),
        ("/loop", "more than 5 redirects"),
        ("/local", "127.0.0.2 is not a public address"),
        ("/ftp", "scheme is ftp"),
        ("/other", "no connection"),
        ("file:///etc/passwd", "scheme is file"),
        (
            "http://169.254.169.254/a",
            "169.254.169.254 is not a public address",
        ),
        ("http://[::1/", "not a URL"),
    ] {
        let reason = fetch(&downloader, link).await.unwrap_err();
        assert!(reason.contains(expected), "{link}: {reason}");
    }
    assert!(fetch(&downloader, "/page.html").await.is_ok());
    // The server is busy with this one for good.
    let reason = fetch(&downloader, "/large.bin").await.unwrap_err();
    assert!(reason.contains("too large: 10000000000 bytes"), "{reason}");
}

#[tokio::test]
async fn a_file_that_comes_too_slowly_is_given_up() {
    let base = server("127.0.0.1", |_| {
        format!("{OK}Content-Length: 90\r\n\r\n(and more)")
    });
    let patience = Duration::from_millis(200);
    let downloader = Downloader::new(&origin(&base.await), patience).unwrap();
    let reason = fetch(&downloader, "/a").await.unwrap_err();
    assert!(reason.contains("too slowly: 10 bytes"), "{reason}");
}

static LOOK_UPS: AtomicUsize = AtomicUsize::new(0);

/// A name that stands for another address each time.
fn rebinding(_: String) -> Found {
    let address = match LOOK_UPS.fetch_add(1, Ordering::SeqCst) {
        0 => "127.0.0.2",
        _ => "127.0.0.1",
    };
    Box::pin(async move { Ok(vec![address.parse().unwrap()]) })
}

#[tokio::test]
async fn a_connection_goes_to_the_address_that_was_checked() {
    let base = server("127.0.0.2", |_| format!("{OK}Content-Length: 2\r\n\r\nok")).await;
    let port = base.rsplit(':').next().unwrap();
    let resolver = PublicOnly {
        look_up: rebinding,
        is_public: |address| address == IpAddr::from([127, 0, 0, 2]),
        proxies: Arc::from([]),
    };
    let own = origin("https://chat.example.com");
    let downloader = Downloader::with_resolver(&own, PATIENCE, resolver).unwrap();
    let link = format!("http://files.example.com:{port}/a");
    assert_eq!(fetch(&downloader, &link).await.unwrap().1, b"ok");
    assert_eq!(LOOK_UPS.load(Ordering::SeqCst), 1);
    let reason = fetch(&downloader, &link).await.unwrap_err();
    assert!(
        reason.contains("127.0.0.1, which is not a public address"),
        "{reason}"
    );
}

//! Each fault as a client sees it, byte by byte, over plain sockets.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::stub::*;
use crate::connection::serve_connection;
use backread_clock::virtual_start;

#[test]
fn without_faults_the_pieces_come_as_one_and_the_connection_stays() {
    let server = Server::new("user: reset()");
    let mut stream = server.connect();
    for path in [USERS, "/external/users", USERS] {
        send(&mut stream, path);
        let expected = whole(path);
        assert_eq!(exactly(&mut stream, expected.len()), expected);
    }
    assert!(nothing_more(&mut stream));
}

#[test]
fn a_reset_comes_after_exactly_so_many_bytes() {
    assert_eq!(
        Server::new("any: reset()").ask(USERS),
        (Vec::new(), End::Reset)
    );
    for count in [0, 1, 100, 3333, 9_999, BODY, BODY + 5] {
        let server = Server::new(&format!("users: reset(after_bytes={count})"));
        let expected = part(right_head(BODY), USERS, count.min(BODY));
        for _ in 0..200 {
            let (bytes, end) = server.ask(USERS);
            assert!(
                bytes == expected && end == End::Reset,
                "{count}: {}",
                bytes.len()
            );
        }
    }
}

/// More than the sockets buffer for a client that does not read.
fn much() -> Bytes {
    text("much", 1000).repeat(16_000).into()
}

#[test]
fn a_reset_waits_for_a_client_that_reads_late() {
    let much = much();
    let rules = format!("users: reset(after_bytes={})", much.len() - 1);
    let server = Server::of(&rules, Some(much.clone()));
    let mut stream = server.connect();
    send(&mut stream, USERS);
    // Other requests are answered meanwhile.
    let mut other = server.connect();
    send(&mut other, "/external/users/1");
    exactly(&mut other, right_head(much.len()).len() + much.len());
    let (bytes, end) = drain(&mut stream);
    let expected = [right_head(much.len()).as_slice(), &much[..much.len() - 1]].concat();
    assert!(bytes == expected && end == End::Reset, "{}", bytes.len());
}

#[test]
fn a_truncated_body_ends_in_order() {
    for count in [0, 1, 5000, BODY - 1, BODY, BODY + 1] {
        let server = Server::new(&format!("users: truncate(at={count})"));
        let expected = part(right_head(BODY), USERS, count.min(BODY));
        assert_eq!(server.ask(USERS), (expected, End::Close), "{count}");
    }
}

#[test]
fn an_honest_length_keeps_the_connection() {
    for count in [0, 1, 5000, BODY, BODY + 1] {
        let server = Server::new(&format!("users: truncate(at={count}, length=honest) x1"));
        let mut stream = server.connect();
        let short = count.min(BODY);
        for expected in [part(right_head(short), USERS, short), whole(USERS)] {
            send(&mut stream, USERS);
            assert_eq!(exactly(&mut stream, expected.len()), expected, "{count}");
        }
    }
}

#[test]
fn a_changed_answer_is_sent_as_any_other() {
    let json = "application/json; charset=utf-8";
    for (fault, expected) in [
        (
            "status(429, retry_after=7, body=\"no\")",
            format!(
                "HTTP/1.1 429 Too Many Requests\r\ncontent-type: {json}\r\nretry-after: 7\r\n\
                 content-length: 2\r\n\r\nno"
            )
            .into_bytes(),
        ),
        (
            "garbage(\"<p>\")",
            [head("200 OK", json, 3), b"<p>".to_vec()].concat(),
        ),
        (
            "wrong_content_type(\"text/html\")",
            part(head("200 OK", "text/html", BODY), USERS, BODY),
        ),
    ] {
        let server = Server::new(&format!("users: {fault} x1"));
        let mut stream = server.connect();
        for expected in [expected, whole(USERS)] {
            send(&mut stream, USERS);
            assert_eq!(exactly(&mut stream, expected.len()), expected, "{fault}");
        }
    }
    let server = Server::new("users: status(599)");
    let mut stream = server.connect();
    let request = format!("GET {USERS} HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let (bytes, _) = drain(&mut stream);
    let shown = String::from_utf8(bytes).unwrap();
    assert!(
        shown.contains("\"code\":\"fault\"") && shown.contains("\"guess\":true"),
        "{shown}"
    );
}

#[test]
fn a_stall_lasts_until_the_client_goes() {
    for (fault, bytes) in [
        ("stall()", Vec::new()),
        ("stall(after_bytes=0)", part(right_head(BODY), USERS, 0)),
        ("stall(after_bytes=9)", part(right_head(BODY), USERS, 9)),
        ("stall(after_bytes=10000)", whole(USERS)),
    ] {
        let server = Server::new(&format!("users: {fault}"));
        let mut stalled = server.connect();
        send(&mut stalled, USERS);
        assert_eq!(exactly(&mut stalled, bytes.len()), bytes, "{fault}");
        // Whatever else it sends, even at once, it gets no response.
        send(&mut stalled, "/external/users/1");
        let mut other = server.connect();
        for path in ["/external/users/1", "/external/users/2"] {
            send(&mut other, path);
            assert_eq!(exactly(&mut other, whole(path).len()), whole(path));
        }
        assert!(nothing_more(&mut stalled), "{fault}");
        assert_eq!(server.stub.asked.load(Ordering::Relaxed), 3);
        drop(stalled);
        server.ended.recv_timeout(Duration::from_secs(60)).unwrap();
    }
}

#[test]
fn a_stale_connection_ends_when_it_is_used_again() {
    let server = Server::new("users: stale_keepalive() x1");
    let mut stream = server.connect();
    send(&mut stream, USERS);
    assert_eq!(exactly(&mut stream, whole(USERS).len()), whole(USERS));
    assert!(nothing_more(&mut stream));
    send(&mut stream, USERS);
    assert_eq!(drain(&mut stream), (Vec::new(), End::Close));
    // It never saw the second request, so the retry counts as the second.
    assert_eq!(server.stub.asked.load(Ordering::Relaxed), 1);

    let server = Server::new("users: stale_keepalive()");
    let mut stream = server.connect();
    let request = format!("GET {USERS} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.repeat(3).as_bytes()).unwrap();
    assert_eq!(drain(&mut stream), (whole(USERS), End::Close));
}

#[test]
fn delays_and_drips_go_by_the_clock_of_the_answer() {
    let server = Server::new(
        "any: latency(3600000); any: drip(bytes=3000, ms=3600000); user: reset(after_bytes=7000)",
    );
    server.stub.clock.make_virtual(virtual_start());
    let start = server.stub.clock.now();
    let mut stream = server.connect();
    send(&mut stream, USERS);
    assert_eq!(exactly(&mut stream, whole(USERS).len()), whole(USERS));
    let hours = (server.stub.clock.now() - start).as_secs() / 3600;
    assert_eq!(hours, 5);
    let path = "/external/users/1";
    assert_eq!(
        server.ask(path),
        (part(right_head(BODY), path, 7000), End::Reset)
    );
    assert_eq!((server.stub.clock.now() - start).as_secs() / 3600, 9);
}

#[test]
fn it_stops_at_once_whatever_goes_on() {
    let mut server = Server::of(
        "users: stall(after_bytes=3); messages: latency(3600000); user: reset(after_bytes=15999999)",
        Some(much()),
    );
    let paths = [USERS, "/external/users/1/messages", "/external/users/1"];
    let streams: Vec<TcpStream> = (0..18)
        .map(|number| {
            let mut stream = server.connect();
            send(&mut stream, paths[number % 3]);
            stream
        })
        .collect();
    while server.stub.asked.load(Ordering::Relaxed) < 18 {
        std::thread::yield_now();
    }
    let start = Instant::now();
    server.stop();
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    drop(streams);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_takes_more_than_a_minute_ends_the_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap());
    let (mut client, (served, _)) = (client.await.unwrap(), listener.accept().await.unwrap());
    client
        .write_all(b"GET /external/users HTTP/1.1\r\nhost: mo")
        .await
        .unwrap();
    let start = tokio::time::Instant::now();
    serve_connection(served, Arc::new(Stub::new("", None))).await;
    assert_eq!(start.elapsed().as_secs(), 60);
    assert_eq!(client.read(&mut [0; 99]).await.unwrap(), 0);
}

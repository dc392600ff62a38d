//! Each fault as a client sees it, byte by byte, over plain sockets.

use std::time::Instant;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::admin::Admin;
use crate::connection::serve_connection;
use crate::service::Service;
use backread_clock::virtual_start;

const USERS: &str = "/external/users?limit=99";
const USER: &str = "/external/users/42";
const MESSAGES: &str = "/external/users/42/messages";
/// More than the sockets buffer for a client that does not read.
const MUCH: usize = 16_000_000;

fn world() -> World {
    World::new(7, 300, 5, 5).unwrap()
}

/// A world whose first user has a name that is too long for the sockets.
fn much() -> World {
    let world = world();
    let name = json!({"name": "x".repeat(MUCH)});
    let edited = world.edit(None, 42, name.as_object().unwrap().clone());
    assert!(edited.is_ok());
    world
}

fn server(rules: &str) -> MockServer {
    serve(world(), options("documented", rules))
}

/// Sends a request on a new connection, and reads until it ends.
fn ask(server: &MockServer, path: &str) -> (Vec<u8>, End) {
    let mut stream = connect(server);
    send(&mut stream, path);
    let (bytes, end) = drain(&mut stream);
    (without_id(bytes), end)
}

/// A response without its id, which depends on how often it was asked for.
fn without_id(mut bytes: Vec<u8>) -> Vec<u8> {
    let name = b"x-request-id: ";
    if let Some(start) = bytes.windows(name.len()).position(|text| text == name) {
        let id = start + name.len();
        bytes[id..id + 16].fill(b'0');
    }
    bytes
}

fn exactly(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    without_id(bytes)
}

/// The head and the body of a response whose length is declared.
fn reply(stream: &mut TcpStream) -> (Vec<u8>, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(exactly(stream, 1)[0]);
    }
    let text = std::str::from_utf8(&head).unwrap();
    let (_, length) = text.split_once("content-length: ").unwrap();
    let length = length.lines().next().unwrap().parse().unwrap();
    let body = exactly(stream, length);
    (without_id(head), body)
}

/// What a server without faults answers.
fn whole(path: &str) -> (Vec<u8>, Vec<u8>) {
    let server = server("");
    let mut stream = connect(&server);
    send(&mut stream, path);
    reply(&mut stream)
}

fn nothing_more(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let more = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    more.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn requests(server: &MockServer) -> u64 {
    server.service().main().journal.last_number()
}

#[test]
fn a_reset_comes_after_exactly_so_many_bytes_and_a_truncated_body_ends_in_order() {
    assert_eq!(
        ask(&server("any: reset()"), USERS),
        (Vec::new(), End::Reset)
    );
    let (head, body) = whole(USERS);
    let most = body.len();
    for (fault, end) in [
        ("reset(after_bytes", End::Reset),
        ("truncate(at", End::Close),
    ] {
        for count in [0, 1, 3333, most - 1, most, most + 5] {
            let server = server(&format!("users: {fault}={count})"));
            let expected = [&head[..], &body[..count.min(most)]].concat();
            for _ in 0..50 {
                let (bytes, ended) = ask(&server, USERS);
                assert!(
                    bytes == expected && ended == end,
                    "{fault}={count}: {ended:?} after {} of {}",
                    bytes.len(),
                    expected.len()
                );
            }
        }
    }
}

#[test]
fn a_reset_waits_for_a_client_that_reads_late() {
    let rules = format!("user: reset(after_bytes={MUCH})");
    let server = serve(much(), options("documented", &rules));
    let mut stream = connect(&server);
    send(&mut stream, USER);
    // Other requests are answered meanwhile.
    let mut other = connect(&server);
    send(&mut other, MESSAGES);
    reply(&mut other);
    let (bytes, end) = drain(&mut stream);
    let head = bytes
        .windows(4)
        .position(|text| text == b"\r\n\r\n")
        .unwrap()
        + 4;
    assert_eq!((bytes.len() - head, end), (MUCH, End::Reset));
}

#[test]
fn an_honest_length_keeps_the_connection() {
    let (head, body) = whole(USERS);
    for count in [0, 1, 5000, body.len(), body.len() + 1] {
        let server = server(&format!("users: truncate(at={count}, length=honest) x1"));
        let mut stream = connect(&server);
        send(&mut stream, USERS);
        assert_eq!(reply(&mut stream).1, body[..count.min(body.len())]);
        send(&mut stream, USERS);
        assert!(
            reply(&mut stream) == (head.clone(), body.clone()),
            "{count}"
        );
    }
}

#[test]
fn a_changed_answer_is_sent_as_any_other() {
    let json = "content-type: application/json; charset=utf-8";
    let (head, body) = whole(USERS);
    for (fault, lines, changed) in [
        (
            "status(429, retry_after=7, body=\"no\")",
            ["HTTP/1.1 429 Too Many Requests", "retry-after: 7", json],
            &b"no"[..],
        ),
        (
            "garbage(\"<p>\")",
            ["HTTP/1.1 200 OK", json, "content-length: 3"],
            b"<p>",
        ),
        (
            "wrong_content_type(\"text/html\")",
            [
                "HTTP/1.1 200 OK",
                "content-type: text/html",
                "content-length: ",
            ],
            &body,
        ),
    ] {
        let server = server(&format!("users: {fault} x1"));
        let mut stream = connect(&server);
        send(&mut stream, USERS);
        let (found, sent) = reply(&mut stream);
        let found = String::from_utf8(found).unwrap();
        assert!(lines.iter().all(|line| found.contains(line)), "{found}");
        assert_eq!(sent, changed);
        send(&mut stream, USERS);
        assert!(
            reply(&mut stream) == (head.clone(), body.clone()),
            "{fault}"
        );
    }
    let server = server("users: status(599)");
    let mut stream = connect(&server);
    send(&mut stream, USERS);
    let shown = String::from_utf8(reply(&mut stream).1).unwrap();
    assert!(
        shown.contains("\"code\":\"fault\"") && shown.contains("\"guess\":true"),
        "{shown}"
    );
}

#[test]
fn a_stall_answers_nothing_more() {
    let (head, body) = whole(USERS);
    let all = [&head[..], &body].concat();
    for (fault, bytes) in [
        ("stall()", 0),
        ("stall(after_bytes=0)", head.len()),
        ("stall(after_bytes=9)", head.len() + 9),
        ("stall(after_bytes=1000000)", all.len()),
    ] {
        let server = server(&format!("users: {fault}"));
        let mut stalled = connect(&server);
        send(&mut stalled, USERS);
        assert!(exactly(&mut stalled, bytes) == all[..bytes], "{fault}");
        // Whatever else it sends, even at once, it gets no response.
        send(&mut stalled, USER);
        let mut other = connect(&server);
        for _ in 0..2 {
            send(&mut other, USER);
            reply(&mut other);
        }
        assert!(nothing_more(&mut stalled), "{fault}");
        assert_eq!(requests(&server), 3);
    }
}

#[test]
fn a_stale_connection_ends_when_it_is_used_again() {
    let (head, body) = whole(USERS);
    let stale = server("users: stale_keepalive() x1");
    let mut stream = connect(&stale);
    send(&mut stream, USERS);
    assert!(reply(&mut stream) == (head.clone(), body.clone()));
    assert!(nothing_more(&mut stream));
    send(&mut stream, USERS);
    assert_eq!(drain(&mut stream), (Vec::new(), End::Close));
    // It never saw the second request, so the retry counts as the second.
    assert_eq!(requests(&stale), 1);

    let stale = server("users: stale_keepalive()");
    let mut stream = connect(&stale);
    stream
        .write_all(request(USERS).repeat(3).as_bytes())
        .unwrap();
    let (bytes, end) = drain(&mut stream);
    assert!(without_id(bytes) == [head, body].concat() && end == End::Close);
}

#[test]
fn delays_and_drips_go_by_the_clock_of_the_answer() {
    let server = server(
        "any: latency(3600000); any: drip(bytes=100, ms=3600000); user: reset(after_bytes=150)",
    );
    let clock = &server.service().main().clock;
    clock.make_virtual(virtual_start());
    let start = clock.now();
    let hours = || (clock.now() - start).as_secs() / 3600;
    let (head, body) = whole(USER);
    let expected = [&head[..], &body[..150]].concat();
    assert_eq!(ask(&server, USER), (expected, End::Reset));
    assert_eq!(hours(), 3);
    let mut stream = connect(&server);
    send(&mut stream, MESSAGES);
    let (_, body) = reply(&mut stream);
    assert_eq!(hours(), 3 + 1 + body.len().div_ceil(100) as u64);
}

#[test]
fn it_stops_at_once_whatever_goes_on() {
    let rules = format!(
        "users: stall(after_bytes=3); messages: latency(3600000); user: reset(after_bytes={MUCH})"
    );
    let server = serve(much(), options("documented", &rules));
    let paths = [USERS, MESSAGES, USER].repeat(6);
    let streams = paths.iter().map(|path| {
        let mut stream = connect(&server);
        send(&mut stream, path);
        stream
    });
    let streams: Vec<TcpStream> = streams.collect();
    while requests(&server) < 18 {
        std::thread::yield_now();
    }
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() < Duration::from_secs(10));
    drop(streams);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_takes_more_than_a_minute_ends_the_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap());
    let (mut client, (served, _)) = (client.await.unwrap(), listener.accept().await.unwrap());
    let head = b"GET /external/users HTTP/1.1\r\nhost: mo";
    client.write_all(head).await.unwrap();
    let lane = audits::lane(world(), options("documented", ""));
    let service = Arc::new(Service::new("example".into(), lane));
    let admin = Admin::new(service, String::new(), String::new());
    let start = tokio::time::Instant::now();
    serve_connection(served, Arc::new(admin)).await;
    assert_eq!(start.elapsed().as_secs(), 60);
    assert_eq!(client.read(&mut [0; 99]).await.unwrap(), 0);
}

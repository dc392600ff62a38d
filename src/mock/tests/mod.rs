//! The mock as a client sees it, over a plain socket.

mod audits;
mod determinism;
mod dialects;
mod faults;
mod grammar;
mod lifetime;
mod reads;
mod rules;
mod strictness;
mod stub;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::server::{MockServer, Options};
use super::world::World;

const ACCEPT: &str = "application/vnd.example.v1+json";

struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find_map(|(given, value)| given.eq_ignore_ascii_case(name).then(|| value.trim()))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

fn started(users: u64) -> (MockServer, Arc<World>) {
    let world = World::new(7, users, 0, 150).unwrap_or_else(|_| unreachable!());
    let world = Arc::new(world);
    let server = MockServer::start(Arc::clone(&world), Options::default());
    (
        server.unwrap_or_else(|error| unreachable!("{error}")),
        world,
    )
}

fn connect(server: &MockServer) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port()));
    let stream = stream.unwrap_or_else(|error| unreachable!("{error}"));
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    stream
}

/// Sends one request unchanged and reads one response, leaving the connection open.
fn exchange(stream: &mut TcpStream, request: &str) -> Reply {
    let _ = stream.write_all(request.as_bytes());
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.extend_from_slice(&byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or(0);
    let mut reply = Reply {
        status,
        head,
        body: String::new(),
    };
    if !request.starts_with("HEAD") {
        let length = reply
            .header("content-length")
            .and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        let _ = stream.read_exact(&mut body);
        reply.body = String::from_utf8_lossy(&body).into_owned();
    }
    reply
}

fn request(method: &str, path: &str, headers: &[String]) -> String {
    let headers: String = headers
        .iter()
        .map(|header| format!("{header}\r\n"))
        .collect();
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")
}

fn right_headers(server: &MockServer) -> [String; 2] {
    [
        format!("Authorization: Bearer {}", server.secret()),
        format!("Accept: {ACCEPT}"),
    ]
}

fn get(server: &MockServer, path: &str) -> Reply {
    exchange(
        &mut connect(server),
        &request("GET", path, &right_headers(server)),
    )
}

//! What the mock does on a plain socket, and the parts that no client sees. What it answers is
//! tested in `tests/mock/`.

mod audits;
mod determinism;
mod faults;
mod rules;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use crate::faults::rule::read_rules;
use crate::lane::LaneOptions;
use crate::server::{MockServer, Options};
use crate::world::World;

fn options(dialect: &str, rules: &str) -> LaneOptions {
    LaneOptions {
        dialect: dialect.parse().unwrap(),
        rules: read_rules(rules).unwrap(),
        ..LaneOptions::default()
    }
}

fn serve(world: World, lane: LaneOptions) -> MockServer {
    let options = Options {
        secret: Some("mock_secret".into()),
        lane,
        ..Options::default()
    };
    MockServer::start(Arc::new(world), options).unwrap()
}

fn connect(server: &MockServer) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).unwrap();
    stream
}

fn request(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer mock_secret\r\n\
         accept: application/vnd.example.v1+json\r\n\r\n"
    )
}

fn send(stream: &mut TcpStream, path: &str) {
    stream.write_all(request(path).as_bytes()).unwrap();
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Close,
    Reset,
}

/// All bytes until the connection ends.
fn drain(stream: &mut TcpStream) -> (Vec<u8>, End) {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => (bytes, End::Close),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => (bytes, End::Reset),
        Err(error) => panic!("{error} after {} bytes", bytes.len()),
    }
}

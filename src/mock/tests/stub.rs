//! A plain-text service, to test what the connection does with its responses.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use tokio::sync::oneshot;

use crate::chunks::Chunks;
use crate::connection::{Responder, serve_connection};
use crate::faults::rule::read_rules;
use crate::faults::rules::Rules;
use crate::http::exchange::Answer;
use crate::routes::Target;
use backread_clock::Clock;

pub const BODY: usize = 10_000;

/// Answers every request with its own text, in the delivery of the rules.
pub struct Stub {
    pub rules: Rules,
    /// If set, the response to every request.
    body: Option<Bytes>,
    pub clock: Clock,
    pub asked: AtomicU64,
}

impl Responder for Stub {
    fn answer(&self, request: &Parts) -> Answer {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let target = Target::read(request.uri.path());
        let delivery = self.rules.choose(5, &target);
        let body = match &self.body {
            Some(body) => Chunks::from(body.clone()),
            None => chunks(&request.uri.to_string()),
        };
        Answer::json(200, body).delivered(delivery, &self.clock)
    }

    fn malformed(&self, _: u16) {}
}

impl Stub {
    pub fn new(rules: &str, body: Option<Bytes>) -> Self {
        let stub = Self {
            rules: Rules::default(),
            body,
            clock: Clock::switchable(),
            asked: AtomicU64::new(0),
        };
        stub.rules.add(read_rules(rules).unwrap());
        stub
    }
}

/// This many bytes that show the path and the position, in three pieces.
pub fn text(path: &str, length: usize) -> Vec<u8> {
    (0_u64..)
        .flat_map(|line| format!("{path} {line}\n").into_bytes())
        .take(length)
        .collect()
}

pub fn chunks(path: &str) -> Chunks {
    let (whole, length) = (text(path, BODY), BODY);
    let mut chunks = Chunks::default();
    for piece in [
        &whole[..length / 3],
        &whole[length / 3..length / 2],
        &whole[length / 2..],
    ] {
        chunks.push(piece.to_vec());
    }
    chunks
}

/// A single-threaded server, like the mock's own.
pub struct Server {
    pub port: u16,
    pub stub: Arc<Stub>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Notified of each connection that has ended.
    pub ended: mpsc::Receiver<()>,
}

impl Server {
    pub fn new(rules: &str) -> Self {
        Self::of(rules, None)
    }

    pub fn of(rules: &str, body: Option<Bytes>) -> Self {
        let stub = Arc::new(Stub::new(rules, body));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let (stop, mut stopped) = oneshot::channel();
        let (tell, ended) = mpsc::channel();
        let responder = Arc::clone(&stub);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                loop {
                    let stream = tokio::select! {
                        accepted = listener.accept() => accepted.unwrap().0,
                        _ = &mut stopped => return,
                    };
                    let (responder, tell) = (Arc::clone(&responder), tell.clone());
                    tokio::spawn(async move {
                        serve_connection(stream, responder).await;
                        let _ = tell.send(());
                    });
                }
            });
        });
        Self {
            port,
            stub,
            stop: Some(stop),
            thread: Some(thread),
            ended,
        }
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.port)
    }

    pub fn stop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Sends a request on a new connection, and reads until it ends.
    pub fn ask(&self, path: &str) -> (Vec<u8>, End) {
        let mut stream = self.connect();
        send(&mut stream, path);
        drain(&mut stream)
    }
}

pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    Close,
    Reset,
}

pub const USERS: &str = "/external/users?offset=99";

pub fn send(stream: &mut TcpStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: mock\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
}

pub fn drain(stream: &mut TcpStream) -> (Vec<u8>, End) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 7000];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return (bytes, End::Close),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return (bytes, End::Reset),
            Err(error) => panic!("{error} after {} bytes", bytes.len()),
        }
    }
}

pub fn exactly(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

pub fn head(status: &str, content_type: &str, length: usize) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n")
        .into_bytes()
}

pub fn right_head(length: usize) -> Vec<u8> {
    head("200 OK", "application/json; charset=utf-8", length)
}

/// A head, and the first bytes of the body for a path.
pub fn part(head: Vec<u8>, path: &str, count: usize) -> Vec<u8> {
    [head, text(path, BODY)[..count].to_vec()].concat()
}

pub fn whole(path: &str) -> Vec<u8> {
    part(right_head(BODY), path, BODY)
}

pub fn nothing_more(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let more = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    more.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

//! How the mock starts and stops.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{connect, exchange, request, right_headers, started};
use crate::mock::server::{MockServer, Options, StartError};

#[test]
fn it_stops_at_once_with_connections_open() {
    let (server, _) = started(3);
    let list = request("GET", "/external/users?limit=1", &right_headers(&server));
    let mut streams: Vec<TcpStream> = (0..16).map(|_| connect(&server)).collect();
    for stream in &mut streams {
        assert_eq!(exchange(stream, &list).status, 200);
    }
    let start = Instant::now();
    server.stop();
    let taken = start.elapsed();
    assert!(taken < Duration::from_secs(10), "{taken:?}");
    for stream in &mut streams {
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
    assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err());
    server.stop();
}

#[test]
fn dropping_it_frees_the_port() {
    let (server, world) = started(3);
    let port = server.port();
    drop(server);
    let again = MockServer::start(
        world,
        Options {
            port,
            ..Options::default()
        },
    );
    assert_eq!(again.map(|server| server.port()).ok(), Some(port));
}

#[test]
fn a_taken_port_is_an_error_that_names_it() {
    let (server, world) = started(3);
    let options = Options {
        port: server.port(),
        ..Options::default()
    };
    let error = MockServer::start(world, options).err();
    assert!(matches!(error, Some(StartError::Listen { .. })));
    let text = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(
        text.contains(&format!("127.0.0.1:{}", server.port())),
        "{text}"
    );
}

#[test]
fn what_no_header_can_carry_is_refused_at_the_start() {
    let (_, world) = started(1);
    let start = |options| {
        let error = MockServer::start(Arc::clone(&world), options).err();
        error.map(|error| error.to_string()).unwrap_or_default()
    };
    let host = start(Options {
        host: "nowhere".into(),
        ..Options::default()
    });
    assert!(host.starts_with("host"), "{host}");
    let secret = start(Options {
        secret: Some("se\ncret".into()),
        ..Options::default()
    });
    assert!(
        secret.starts_with("secret") && !secret.contains("cret\""),
        "{secret}"
    );
    let vendor = start(Options {
        vendor: Some(String::new()),
        ..Options::default()
    });
    assert!(vendor.starts_with("vendor"), "{vendor}");
}

#[test]
fn a_server_on_all_addresses_is_reached_on_loopback() {
    for (bound, reached) in [
        ("0.0.0.0:80", "127.0.0.1:80"),
        ("[::]:80", "[::1]:80"),
        ("127.0.0.2:80", "127.0.0.2:80"),
    ] {
        assert_eq!(
            crate::mock::server::reachable(bound.parse().unwrap()),
            reached.parse().unwrap()
        );
    }
}

//! The same seed, dialect and faults give the same bytes, whatever the order of requests.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use super::stub::connect;
use crate::faults::rule::read_rules;
use crate::lane::LaneOptions;
use crate::server::{MockServer, Options};
use crate::world::World;

const CONNECTIONS: usize = 16;
const RULES: &str = "
    any p=0.1: status(503, retry_after=1)
    users every=3: truncate(at=200, length=declared)
    messages p=0.2: garbage()
    user attempt=2: reset(after_bytes=10)
    messages p=0.3: truncate(at=77, length=honest) x1 each
    any p=0.2: latency(lognormal(2, 0.5))
";

/// Each path with the bytes of its response, sorted.
fn answers(dialect: &str, paths: &[String]) -> Vec<(String, Vec<u8>)> {
    let world = Arc::new(World::new(11, 60, 0, 150).unwrap());
    let options = Options {
        secret: Some("mock_secret".into()),
        lane: LaneOptions {
            dialect: dialect.parse().unwrap(),
            rules: read_rules(RULES).unwrap(),
            ..LaneOptions::default()
        },
        ..Options::default()
    };
    let server = MockServer::start(world, options).unwrap();
    let headers = "Host: localhost\r\nAuthorization: Bearer mock_secret\r\n\
                   Accept: application/vnd.example.v1+json\r\nConnection: close\r\n\r\n";
    let (waiting, answered) = (Mutex::new(paths.to_vec()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                loop {
                    let Some(path) = waiting.lock().unwrap().pop() else {
                        return;
                    };
                    let mut stream = connect(server.port());
                    let request = format!("GET {path} HTTP/1.1\r\n{headers}");
                    stream.write_all(request.as_bytes()).unwrap();
                    let mut bytes = Vec::new();
                    // A reset is an error after the bytes that came before it.
                    let _ = stream.read_to_end(&mut bytes);
                    answered.lock().unwrap().push((path, bytes));
                }
            });
        }
    });
    let mut answered = answered.into_inner().unwrap();
    answered.sort();
    answered
}

fn paths(world: &World) -> Vec<String> {
    let mut paths = Vec::new();
    for user_id in world.view().users().ids().into_iter().take(25) {
        paths.push(format!("/external/users/{user_id}"));
        for offset in [0, 40, 80, 120] {
            paths.push(format!(
                "/external/users/{user_id}/messages?offset={offset}&limit=40"
            ));
        }
    }
    for offset in (0..70).step_by(10) {
        paths.push(format!("/external/users?offset={offset}&limit=10"));
        paths.push(format!("/external/users?offset={offset}&limit=7"));
    }
    // Each three times: it must not matter which of them is the first attempt.
    [paths.clone(), paths.clone(), paths].concat()
}

#[test]
fn answers_do_not_depend_on_the_order_of_arrival() {
    for dialect in [
        "documented",
        "hostile",
        "order=shuffled ids=large nulls=both",
    ] {
        let mut asked = paths(&World::new(11, 60, 0, 150).unwrap());
        let first = answers(dialect, &asked);
        assert_eq!(first.len(), asked.len());
        for round in 0..2 {
            fastrand::Rng::with_seed(round).shuffle(&mut asked);
            let again = answers(dialect, &asked);
            for (one, other) in first.iter().zip(&again) {
                assert!(
                    one == other,
                    "{dialect}: {} differs:\n{}\n{}",
                    one.0,
                    String::from_utf8_lossy(&one.1),
                    String::from_utf8_lossy(&other.1)
                );
            }
        }
    }
}

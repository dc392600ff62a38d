//! The same seed, dialect and faults give the same bytes, whatever the order of requests.

use std::sync::Mutex;

use super::*;

const CONNECTIONS: usize = 16;
const RULES: &str = "
    any p=0.1: status(503, retry_after=1)
    users every=3: truncate(at=200, length=declared)
    messages p=0.2: garbage()
    user attempt=2: reset(after_bytes=10)
    messages p=0.3: truncate(at=77, length=honest) x1 each
    any p=0.2: latency(lognormal(2, 0.5))
";

fn world() -> World {
    World::new(11, 60, 0, 150).unwrap()
}

/// Each path with the bytes of its response, sorted.
fn answers(dialect: &str, paths: &[String]) -> Vec<(String, Vec<u8>)> {
    let server = serve(world(), options(dialect, RULES));
    let (waiting, answered) = (Mutex::new(paths.to_vec()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                while let Some(path) = { waiting.lock().unwrap().pop() } {
                    let mut stream = connect(&server);
                    let request =
                        request(&path).replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
                    stream.write_all(request.as_bytes()).unwrap();
                    let (bytes, _) = drain(&mut stream);
                    answered.lock().unwrap().push((path, bytes));
                }
            });
        }
    });
    let mut answered = answered.into_inner().unwrap();
    answered.sort();
    answered
}

fn paths() -> Vec<String> {
    let mut paths = Vec::new();
    for user_id in world().view().users().ids().into_iter().take(25) {
        paths.push(format!("/external/users/{user_id}"));
        for offset in [0, 40, 80, 120] {
            let messages = format!("/external/users/{user_id}/messages");
            paths.push(format!("{messages}?offset={offset}&limit=40"));
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
        let mut asked = paths();
        let first = answers(dialect, &asked);
        assert_eq!(first.len(), asked.len());
        for round in 0..2 {
            fastrand::Rng::with_seed(round).shuffle(&mut asked);
            let again = answers(dialect, &asked);
            for ((path, one), (_, other)) in first.iter().zip(&again) {
                let [one, other] = [one, other].map(|bytes| String::from_utf8_lossy(bytes));
                assert!(one == other, "{dialect}: {path} differs:\n{one}\n{other}");
            }
        }
    }
}

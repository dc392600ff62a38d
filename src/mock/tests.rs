//! The mock as a client sees it, over a plain socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::routes::Route;
use super::server::{MockServer, Options, StartError};
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
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    stream
}

/// Sends one request as it stands and reads one answer, leaving the connection open.
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
    format!("{method} {path} HTTP/1.1\r\nHost: mock\r\n{headers}\r\n")
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

#[test]
fn the_four_reads_answer_as_documented() {
    let (server, world) = started(120);
    let page = get(&server, "/external/users?limit=99&offset=20");
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    assert!(
        page.body
            .starts_with(r#"{"limit":99,"offset":20,"total":120,"users":[{"id":"#)
    );
    let ids = world.view().user_ids();
    let expected: Vec<Value> = ids.iter().skip(20).take(99).map(|id| json!(id)).collect();
    let listed = page
        .json()
        .get("users")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let listed: Vec<Value> = listed
        .iter()
        .filter_map(|user| user.get("id").cloned())
        .collect();
    assert_eq!(listed, expected);

    let longest = ids
        .iter()
        .max_by_key(|id| world.view().total_messages(**id));
    let user_id = longest.copied().unwrap_or_default();
    let user = get(&server, &format!("/external/users/{user_id}"));
    assert_eq!(Some(user.body), world.user_json(user_id));
    let total = world.view().total_messages(user_id).unwrap_or_default();
    let messages = get(&server, &format!("/external/users/{user_id}/messages"));
    let start = format!(r#"{{"limit":25,"offset":0,"total":{total},"messages":[{{"id":"#);
    assert!(messages.body.starts_with(&start), "{}", messages.body);
    for message_id in world.view().message_ids(user_id).unwrap_or_default() {
        let message = get(
            &server,
            &format!("/external/users/{user_id}/messages/{message_id}"),
        );
        assert_eq!(Some(message.body), world.message_json(user_id, message_id));
    }

    let past = get(
        &server,
        "/external/users?offset=9223372036854775807&limit=1",
    );
    assert_eq!(
        past.body,
        r#"{"limit":1,"offset":9223372036854775807,"total":120,"users":[]}"#
    );
}

#[test]
fn requests_that_the_interface_does_not_allow_are_refused() {
    let (server, world) = started(3);
    let [bearer, accept] = right_headers(&server);
    let right = [bearer.clone(), accept.clone()];
    let user_id = 42;
    let message_id = world
        .add_messages(user_id, 1)
        .unwrap_or_default()
        .pop()
        .unwrap_or_default();
    let user = format!("/external/users/{user_id}");
    let message = format!("{user}/messages/{message_id}");
    let list = "/external/users";
    let query = |query: &str| format!("{list}?{query}");
    let with = |first: &str, second: &str| [first.to_owned(), second.to_owned()];
    let table: Vec<(&str, String, [String; 2], u16, &str)> = vec![
        // Secret.
        (
            "GET",
            list.into(),
            with("X: y", &accept),
            401,
            "unauthorized",
        ),
        (
            "GET",
            list.into(),
            with("Authorization: Bearer wrong", &accept),
            401,
            "unauthorized",
        ),
        (
            "GET",
            list.into(),
            with(&bearer.to_lowercase(), &accept),
            401,
            "unauthorized",
        ),
        (
            "GET",
            list.into(),
            with(&format!("{bearer}x"), &accept),
            401,
            "unauthorized",
        ),
        (
            "GET",
            list.into(),
            with(&format!("{bearer}\r\n{bearer}"), &accept),
            401,
            "unauthorized",
        ),
        // Accept.
        (
            "GET",
            list.into(),
            with(&bearer, "X: y"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, "Accept: */*"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, "Accept: application/*"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, "Accept: application/json"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, &format!("{accept};q=0")),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, "Accept: application/vnd.other.v1+json"),
            406,
            "not_acceptable",
        ),
        // Query.
        ("GET", query("limit=0"), right.clone(), 422, "invalid_limit"),
        (
            "GET",
            query("limit=100"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        (
            "GET",
            query("limit=-1"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        (
            "GET",
            query("limit=+5"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        (
            "GET",
            query("limit=5.0"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        ("GET", query("limit="), right.clone(), 422, "invalid_limit"),
        ("GET", query("limit"), right.clone(), 422, "invalid_limit"),
        (
            "GET",
            query("limit=05"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        (
            "GET",
            query("limit=5&limit=5"),
            right.clone(),
            422,
            "repeated_argument",
        ),
        (
            "GET",
            query("offset=-1"),
            right.clone(),
            422,
            "invalid_offset",
        ),
        (
            "GET",
            query("offset=x"),
            right.clone(),
            422,
            "invalid_offset",
        ),
        (
            "GET",
            query("offset=9223372036854775808"),
            right.clone(),
            422,
            "invalid_offset",
        ),
        (
            "GET",
            query("page=2"),
            right.clone(),
            422,
            "unknown_argument",
        ),
        (
            "GET",
            query("Limit=2"),
            right.clone(),
            422,
            "unknown_argument",
        ),
        (
            "GET",
            format!("{user}?limit=5"),
            right.clone(),
            422,
            "unknown_argument",
        ),
        (
            "GET",
            format!("{message}?x"),
            right.clone(),
            422,
            "unknown_argument",
        ),
        (
            "GET",
            "/openapi.json?x=1".into(),
            right.clone(),
            422,
            "unknown_argument",
        ),
        // Look-up.
        (
            "GET",
            "/external/users/41".into(),
            right.clone(),
            404,
            "unknown_user",
        ),
        (
            "GET",
            "/external/users/41/messages".into(),
            right.clone(),
            404,
            "unknown_user",
        ),
        (
            "GET",
            format!("/external/users/41/messages/{message_id}"),
            right.clone(),
            404,
            "unknown_user",
        ),
        (
            "GET",
            format!("{user}/messages/1"),
            right.clone(),
            404,
            "unknown_message",
        ),
        (
            "GET",
            "/external/users/abc".into(),
            right.clone(),
            404,
            "unknown_path",
        ),
        ("GET", "/".into(), right.clone(), 404, "unknown_path"),
        // Method.
        ("POST", list.into(), right.clone(), 405, "wrong_method"),
        ("PUT", user.clone(), right.clone(), 405, "wrong_method"),
        ("PATCH", message.clone(), right.clone(), 405, "wrong_method"),
        (
            "DELETE",
            format!("{user}/messages"),
            right.clone(),
            405,
            "wrong_method",
        ),
        ("OPTIONS", list.into(), right.clone(), 405, "wrong_method"),
        (
            "POST",
            "/openapi.json".into(),
            right.clone(),
            405,
            "wrong_method",
        ),
        // Path before method, method before secret, secret before Accept, Accept before query,
        // query before look-up.
        (
            "POST",
            "/nowhere".into(),
            with("X: y", "Y: z"),
            404,
            "unknown_path",
        ),
        (
            "POST",
            list.into(),
            with("X: y", "Y: z"),
            405,
            "wrong_method",
        ),
        (
            "GET",
            query("limit=0"),
            with("X: y", "Accept: */*"),
            401,
            "unauthorized",
        ),
        (
            "GET",
            query("limit=0"),
            with(&bearer, "Accept: */*"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            "/external/users/41?x=1".into(),
            right.clone(),
            422,
            "unknown_argument",
        ),
    ];
    for (method, path, headers, status, code) in table {
        let reply = exchange(&mut connect(&server), &request(method, &path, &headers));
        let error = reply.json().get("error").cloned().unwrap_or_default();
        let found = (reply.status, error.get("code").and_then(Value::as_str));
        assert_eq!(found, (status, Some(code)), "{method} {path} {headers:?}");
        assert_eq!(error.get("status"), Some(&json!(status)));
        assert_eq!(error.get("guess"), Some(&json!(true)));
        assert!(!reply.body.contains(server.secret()), "{}", reply.body);
        assert_eq!(reply.header("www-authenticate").is_some(), status == 401);
        assert_eq!(reply.header("allow"), (status == 405).then_some("GET"));
        assert!(reply.header("x-request-id").is_some());
    }
    let head = exchange(&mut connect(&server), &request("HEAD", list, &right));
    assert_eq!(head.status, 405);
}

#[test]
fn harmless_ways_to_write_a_request_are_accepted() {
    let (server, _) = started(3);
    let [bearer, accept] = right_headers(&server);
    for accept in [
        format!("accept: text/html, {ACCEPT};q=0.5"),
        format!("Accept: text/html\r\nAccept: {}", ACCEPT.to_uppercase()),
        accept.clone(),
    ] {
        let right = [bearer.clone(), accept];
        for path in [
            "/external/users",
            "/external/users?",
            "/external/users?%6Cimit=%35&",
        ] {
            let reply = exchange(&mut connect(&server), &request("GET", path, &right));
            assert_eq!(reply.status, 200, "{path} {right:?}: {}", reply.body);
        }
    }
}

#[test]
fn the_interface_is_described_without_a_secret() {
    let (server, _) = started(3);
    let reply = exchange(&mut connect(&server), &request("GET", "/openapi.json", &[]));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json().get("openapi"), Some(&json!("3.1.0")));
}

#[test]
fn changes_show_in_the_next_answer_on_the_same_connection() {
    let (server, world) = started(3);
    let mut stream = connect(&server);
    let list = request("GET", "/external/users?limit=1", &right_headers(&server));
    assert!(exchange(&mut stream, &list).body.contains(r#""total":3"#));
    assert!(world.add_users(2).is_ok());
    assert!(exchange(&mut stream, &list).body.contains(r#""total":5"#));
    assert!(world.remove_user(42).is_ok());
    let reply = exchange(&mut stream, &list);
    assert!(reply.body.contains(r#""total":4"#) && !reply.body.contains(r#""id":42,"#));
}

#[test]
fn every_request_is_counted_once() {
    let (server, _) = started(3);
    let workers: Vec<_> = (0..4)
        .map(|_| (connect(&server), right_headers(&server)))
        .map(|(mut stream, headers)| {
            std::thread::spawn(move || {
                let paths = [
                    "/external/users",
                    "/external/users/42",
                    "/external/users/9",
                    "/x",
                ];
                for path in paths.into_iter().cycle().take(400) {
                    exchange(&mut stream, &request("GET", path, &headers));
                }
            })
        })
        .collect();
    for worker in workers {
        assert!(worker.join().is_ok());
    }
    let routes = server.counters().by_route();
    let count = |wanted| {
        routes
            .iter()
            .find(|(route, _)| *route == wanted)
            .map(|(_, count)| *count)
    };
    assert_eq!(count(Route::Users), Some(400));
    assert_eq!(count(Route::User), Some(800));
    assert_eq!(count(Route::Other), Some(400));
    assert_eq!(count(Route::Message), Some(0));
    let statuses: Vec<(u16, u64)> = server.counters().by_status().into_iter().collect();
    assert_eq!(statuses, [(200, 800), (404, 800)]);
}

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
    assert!(taken < Duration::from_millis(100), "{taken:?}");
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_page_is_the_slice_of_the_list_that_was_asked_for(offset in 0_u64..140, limit in 1_u64..100) {
        let (server, world) = started(120);
        let ids = world.view().user_ids();
        let expected: Vec<Value> =
            ids.iter().skip(offset as usize).take(limit as usize).map(|id| json!(id)).collect();
        let page = get(&server, &format!("/external/users?limit={limit}&offset={offset}")).json();
        prop_assert_eq!(page.get("total"), Some(&json!(120)));
        let users = page.get("users").and_then(Value::as_array).cloned().unwrap_or_default();
        let found: Vec<Value> = users.iter().filter_map(|user| user.get("id").cloned()).collect();
        prop_assert_eq!(found, expected);
    }
}

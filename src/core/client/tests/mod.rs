//! The client against a socket with scripted responses.

mod outages;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::api::{Limit, List, Natural};
use crate::decode::page::Row;
use crate::error::{Attempt, ErrorKind};
use crate::retry::OnRateLimit;
use backread_clock::virtual_start;

const SECRET: &str = "Zm9vYmFyYmF6";
/// A response that is delayed forever, by the server's clock.
const STALL: &str = "stall";

/// A server on port 0 that gives each request the next response, and records the request's head.
struct Scripted {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
    /// The clock of the server and, once it is virtual, of its clients.
    clock: Clock,
}

impl Scripted {
    async fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&heads);
        let clock = Clock::switchable();
        let held = clock.clone();
        let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
        tokio::spawn(async move {
            for answer in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await.unwrap());
                }
                noted.lock().unwrap().push(String::from_utf8(head).unwrap());
                if answer == STALL {
                    // Until the client disconnects.
                    tokio::select! {
                        () = held.hold(None) => {}
                        _ = socket.read_u8() => {}
                    }
                    continue;
                }
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, heads, clock }
    }

    fn client(&self, options: Options) -> Client {
        let settings = Settings {
            base_url: Some(self.url.clone()),
            api_secret: Some(SECRET.into()),
            vendor: Some("acme".to_owned()),
            ..Settings::default()
        };
        Client::new(settings, options).unwrap()
    }

    /// A client that uses the server's clock, which is virtual from here on.
    fn client_in_virtual_time(&self, options: Options) -> Client {
        self.clock.make_virtual(virtual_start());
        self.client(options)
            .with(|call| call.clock = self.clock.clone())
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
    )
}

async fn user(client: &Client) -> Result<Row, Error> {
    Ok(client.user(Natural::from(42)).await?.value)
}

#[tokio::test]
async fn a_read_sends_what_the_interface_asks_for() {
    let server = Scripted::start(&[&answer("200 OK", "", r#"{"id": 42, "name": "A"}"#)]).await;
    let row = user(&server.client(Options::default())).await.unwrap();
    let (text, read) = row.user().unwrap();
    let name = read.name.map(|name| name.of(text));
    assert_eq!((read.id, name), (42, Some("A")));
    let head = server.heads().remove(0).to_ascii_lowercase();
    assert!(head.starts_with("get /external/users/42 http/1.1\r\n"));
    assert!(head.contains("accept: application/vnd.acme.v1+json\r\n"));
    assert!(head.contains(&format!(
        "authorization: bearer {}\r\n",
        SECRET.to_lowercase()
    )));
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_each_attempt_is_kept() {
    let server = Scripted::start(&[
        &answer("503 Service Unavailable", "", "busy"),
        "",
        &answer("200 OK", "", "<html>"),
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"id\"",
        &answer("404 Not Found", "X-Request-Id: r1\r\n", "gone"),
    ])
    .await;
    let error = user(&server.client(Options::default())).await.unwrap_err();
    let statuses: Vec<_> = error
        .attempts
        .iter()
        .map(|attempt| attempt.status)
        .collect();
    assert_eq!(statuses, [Some(503), None, Some(200), None, Some(404)]);
    let ErrorKind::Status(failure) = &error.kind else {
        panic!("{error}");
    };
    assert_eq!(failure.body, "gone");
    assert_eq!(failure.request_id.as_deref(), Some("r1"));
    let message = error.to_string();
    assert!(message.contains("/external/users/42: the service answered 404"));
    assert!(message.ends_with("(after 5 attempts)"), "{message}");
    assert!(!format!("{error:?}").contains(SECRET));
}

#[tokio::test]
async fn a_missing_list_of_users_means_that_the_base_url_is_wrong() {
    let server =
        Scripted::start(&[&answer("404 Not Found", "", r#"{"detail": "no route"}"#)]).await;
    let client = server.client(Options::default());
    let error = client
        .page(List::Users, 0, Limit::LARGEST, &client.budget())
        .await
        .unwrap_err();
    for (message, said) in [
        (error.to_string(), r#"; it says "no route""#),
        (error.without_content(), ""),
    ] {
        assert_eq!(
            message,
            format!(
                "GET {}/external/users?offset=0&limit=99: the service answered 404: it has no \
                 list of users there; check base_url, which must be all that is in front of \
                 /external/users{said} (after 1 attempt)",
                server.url
            )
        );
    }
}

#[tokio::test]
async fn a_wait_past_the_deadline_fails_at_once_and_names_the_wait() {
    let limited = answer("429 Too Many Requests", "Retry-After: 3600\r\n", "");
    let server = Scripted::start(&[&limited]).await;
    let client = server.client(Options {
        deadline: Some(Duration::from_secs(5)),
        ..Options::default()
    });
    let error = user(&client).await.unwrap_err();
    assert_eq!(
        error.kind,
        ErrorKind::DeadlineExceeded {
            deadline: Duration::from_secs(5),
            wait: Some(Duration::from_secs(3600)),
        }
    );
    let cause = error.cause.clone().unwrap();
    assert!(matches!(&cause.kind, ErrorKind::Status(failure) if failure.status == 429));
}

#[tokio::test]
async fn a_rate_limit_can_be_raised_with_its_wait() {
    let limited = answer("429 Too Many Requests", "Retry-After: 30\r\n", "");
    let server = Scripted::start(&[&limited]).await;
    let client = server.client(Options {
        on_rate_limit: OnRateLimit::Raise,
        ..Options::default()
    });
    let error = user(&client).await.unwrap_err();
    let ErrorKind::Status(failure) = &error.kind else {
        panic!("{error}");
    };
    assert_eq!(failure.retry_after, Some(Duration::from_secs(30)));
    assert_eq!(error.attempts.len(), 1);
}

#[tokio::test]
async fn a_closed_client_sends_nothing() {
    let server = Scripted::start(&[]).await;
    let client = server.client(Options::default());
    client.close();
    assert_eq!(user(&client).await.unwrap_err().kind, ErrorKind::Closed);
    assert!(server.heads().is_empty());
}

fn seconds(attempts: &[Attempt]) -> Vec<(f64, f64)> {
    attempts
        .iter()
        .map(|attempt| (attempt.seconds_waited, attempt.seconds_taken))
        .collect()
}

#[tokio::test]
async fn waits_of_virtual_time_are_recorded_as_asked_and_take_milliseconds() {
    let limited = answer("429 Too Many Requests", "Retry-After: 30\r\n", "");
    let until = "Retry-After: Thu, 01 Jan 2026 00:02:00 GMT\r\n";
    let busy = answer("503 Service Unavailable", until, "");
    let list = answer("200 OK", "", r#"{"limit": 99, "total": 0, "users": []}"#);
    let server = Scripted::start(&[&limited, &limited, &busy, &list]).await;
    let client = server
        .client_in_virtual_time(Options::default())
        .with(|call| call.options.max_concurrency = 2);
    let began = std::time::Instant::now();
    let read = client
        .page(List::Users, 0, Limit::LARGEST, &client.budget())
        .await
        .unwrap();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(server.clock.slept(), [30, 30, 60].map(Duration::from_secs));
    let expected = [(0.0, 0.0), (30.0, 0.0), (30.0, 0.0), (60.0, 0.0)];
    assert_eq!(seconds(&read.sent.attempts), expected);
}

#[tokio::test]
async fn a_stall_in_virtual_time_makes_the_timeout_fire_and_the_next_attempt_is_unharmed() {
    let fine = answer("200 OK", "", r#"{"id": 42}"#);
    let server = Scripted::start(&[STALL, STALL, STALL, &fine]).await;
    let client = server.client_in_virtual_time(Options::default());
    let began = std::time::Instant::now();
    let before = server.clock.now();
    user(&client).await.unwrap();
    let backoffs: Duration = server.clock.slept().iter().sum();
    assert_eq!(server.heads().len(), 4);
    assert_eq!(
        server.clock.now() - before,
        Duration::from_secs(90) + backoffs
    );
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_deadline_is_kept_in_virtual_time() {
    let server = Scripted::start(&[STALL]).await;
    let client = server.client_in_virtual_time(Options {
        deadline: Some(Duration::from_secs(20)),
        ..Options::default()
    });
    let before = server.clock.now();
    let error = user(&client).await.unwrap_err();
    assert!(matches!(
        error.kind,
        ErrorKind::DeadlineExceeded { wait: None, .. }
    ));
    assert_eq!(server.clock.now() - before, Duration::from_secs(20));
    assert_eq!(seconds(&error.attempts), [(0.0, 20.0)]);
}

#[tokio::test]
async fn calls_that_wait_for_a_place_do_not_hold_virtual_time_up() {
    let fine = answer("200 OK", "", r#"{"id": 42}"#);
    let server = Scripted::start(&[STALL, &fine, &fine, &fine]).await;
    let client = server.client_in_virtual_time(Options {
        max_concurrency: 1,
        ..Options::default()
    });
    let began = std::time::Instant::now();
    let (first, second, third) = tokio::join!(user(&client), user(&client), user(&client));
    assert_eq!(first.and(second).and(third).unwrap().id, Some(42));
    assert!(began.elapsed() < Duration::from_secs(10));
}

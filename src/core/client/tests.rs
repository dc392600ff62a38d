//! The client against a socket that answers what a test wrote down.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::core::model::User;
use crate::core::retry::OnRateLimit;

const SECRET: &str = "Zm9vYmFyYmF6";

/// A server on port 0 that gives each request the next answer, and notes the request's head.
struct Scripted {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    async fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&heads);
        let answers: Vec<String> = answers.iter().map(|&answer| answer.to_owned()).collect();
        tokio::spawn(async move {
            for answer in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await.unwrap());
                }
                noted.lock().unwrap().push(String::from_utf8(head).unwrap());
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        Self { url, heads }
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

async fn user(client: &Client) -> Result<User, Error> {
    client.user(Natural::from(42)).await
}

#[tokio::test]
async fn a_read_sends_what_the_interface_asks_for() {
    let server = Scripted::start(&[&answer("200 OK", "", r#"{"id": 42, "name": "A"}"#)]).await;
    let read = user(&server.client(Options::default())).await.unwrap();
    assert_eq!((read.id, read.name.as_deref()), (42, Some("A")));
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
    assert!(message.starts_with("GET /external/users/42: the service answered 404"));
    assert!(message.ends_with("(after 5 attempts)"), "{message}");
    assert!(!format!("{error:?}").contains(SECRET));
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

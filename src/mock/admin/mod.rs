//! The admin interface below `/__mock/`: the mock's state and switches as JSON, for clients with
//! the server's admin token, and a page that shows them. Its requests are neither counted nor
//! recorded.

pub(super) mod access;
mod admin_request;
mod describe;
mod files;
mod lanes;
mod problem;
mod worlds;

use std::fmt::Display;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::header::HeaderValue;
use hyper::http::request;
use hyper::{Method, Request};
use serde_json::Value;

use self::access::Token;
use self::admin_request::AdminRequest;
use self::problem::Problem;
use super::service::Service;
use crate::chunks::Chunks;
use crate::http::exchange::{Answer, JSON};

const PREFIX: &str = "/__mock";
const LARGEST_BODY: usize = 1 << 20;

/// The admin interface of one server.
#[derive(Debug)]
pub struct Admin {
    service: Arc<Service>,
    url: String,
    token: Token,
}

/// Whether a path belongs to the admin interface.
#[must_use]
pub fn is_admin(path: &str) -> bool {
    path.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Admin {
    /// The interface to a service whose URL is `url`, with a new token.
    ///
    /// # Errors
    /// If the system provides no random bytes for the token.
    pub fn new(service: Arc<Service>, url: String) -> Result<Self, getrandom::Error> {
        Ok(Self {
            service,
            url,
            token: Token::draw()?,
        })
    }

    /// The token for `Authorization: Bearer TOKEN`.
    #[must_use]
    pub fn token(&self) -> &str {
        self.token.reveal()
    }

    /// Answers one request; slow work runs outside the serving thread.
    pub async fn answer<B>(self: Arc<Self>, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Display,
    {
        let (head, body) = request.into_parts();
        let path = head.uri.path().strip_prefix(PREFIX).unwrap_or_default();
        if let Err(problem) = access::check_host(&head.headers) {
            return refuse(&problem);
        }
        if let Some(file) = files::find(path) {
            return match head.method {
                Method::GET => respond(200, HeaderValue::from_static(file.content_type), file.text),
                _ => refuse(&Problem::wrong_method("GET")),
            };
        }
        if path.is_empty() {
            return to_the_page();
        }
        if let Err(problem) = self.token.admit(&head.headers) {
            return refuse(&problem);
        }
        let body = match read(body).await {
            Ok(body) => body,
            Err(problem) => return refuse(&problem),
        };
        let answered = tokio::task::spawn_blocking(move || self.serve(&head, &body)).await;
        match answered.unwrap_or_else(|_| Err(Problem::defect())) {
            Ok(value) => respond(200, JSON, value.to_string()),
            Err(problem) => refuse(&problem),
        }
    }

    fn serve(&self, head: &request::Parts, body: &[u8]) -> Result<Value, Problem> {
        let path = head.uri.path().strip_prefix(PREFIX).unwrap_or_default();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let request = AdminRequest {
            method: head.method.as_str(),
            query: head.uri.query().unwrap_or_default(),
            body,
        };
        match parts.as_slice() {
            ["state"] => request.only_get(|| Ok(self.state())),
            ["lanes"] => self.lanes(&request),
            ["lanes", name, rest @ ..] => self.lane(name, rest, &request),
            _ => Err(Problem::unknown_path()),
        }
    }

    fn state(&self) -> Value {
        describe::state(&self.url, &self.service)
    }
}

/// The body. A body that is too long is still read, but discarded: a client that is sending would
/// never see the response.
async fn read<B>(body: B) -> Result<Vec<u8>, Problem>
where
    B: Body<Data = Bytes>,
    B::Error: Display,
{
    let mut body = pin!(body);
    let (mut kept, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let broken = |error| Problem::wrong(format!("the body could not be read: {error}"));
        let data = frame.map_err(broken)?.into_data().unwrap_or_default();
        length += data.len();
        if length <= LARGEST_BODY {
            kept.extend_from_slice(&data);
        }
    }
    if length > LARGEST_BODY {
        return Err(Problem::too_large(LARGEST_BODY));
    }
    Ok(kept)
}

/// The response for a problem.
pub(super) fn refuse(problem: &Problem) -> Answer {
    let mut answer = respond(problem.status, JSON, problem.body().to_string());
    if let Some(allow) = problem.allow {
        answer.headers.push(("allow", allow.into()));
    }
    if problem.status == 401 {
        answer.headers.push(("www-authenticate", "Bearer".into()));
    }
    answer
}

/// Redirects `/__mock` without the slash, from where the page would not find its files.
fn to_the_page() -> Answer {
    let mut answer = respond(308, JSON, "{}");
    answer.headers.push(("location", format!("{PREFIX}/")));
    answer
}

fn respond(status: u16, content_type: HeaderValue, body: impl Into<Chunks>) -> Answer {
    let headers = [
        ("cache-control", "no-store"),
        ("content-security-policy", files::POLICY),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ];
    Answer {
        content_type,
        headers: headers.map(|(name, value)| (name, value.into())).into(),
        ..Answer::json(status, body)
    }
}

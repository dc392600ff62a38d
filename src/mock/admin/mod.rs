//! The admin interface below `/__mock/`: the mock's state and switches as JSON, for clients with
//! the server's admin token, and a page that shows them. Its requests are neither counted nor
//! recorded.

pub(super) mod access;
mod describe;
mod requests;
mod routes;

use std::fmt::Display;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http_body_util::BodyExt;
use hyper::body::Body;
use hyper::header::HeaderValue;
use hyper::{Method, Request};
use secrecy::{ExposeSecret, SecretString};

use self::access::{Problem, check_host, check_token};
use self::requests::NewLane;
use super::drift::{Drift, NewDrift};
use super::lane::LaneOptions;
use super::routes::Target;
use super::service::Service;
use crate::chunks::Chunks;
use crate::http::exchange::{Answer, JSON};

/// Parses a change of the world between two pages, as in a request's body.
///
/// # Errors
/// What is wrong.
pub fn read_drift(json: &str) -> Result<Drift, String> {
    let drift: Result<NewDrift, Problem> = requests::body(json.as_bytes());
    drift.map_err(|problem| problem.message)?.read()
}

/// Parses the name of a lane and how it answers at first, as in a request's body.
///
/// # Errors
/// What is wrong.
pub fn read_lane(json: &str) -> Result<(Option<String>, LaneOptions), String> {
    let lane: Result<NewLane, Problem> = requests::body(json.as_bytes());
    let mut lane = lane.map_err(|problem| problem.message)?;
    Ok((lane.name.take(), lane.options()))
}

const PREFIX: &str = "/__mock";
const LARGEST_BODY: usize = 1 << 20;

/// Only the page's own files may load, and no site may frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// One server: its service with the admin interface.
#[derive(Debug)]
pub struct Admin {
    pub service: Arc<Service>,
    url: String,
    /// 128 random bits, as 32 hexadecimal digits.
    token: SecretString,
}

/// Whether a path belongs to the admin interface.
pub fn is_admin(path: &str) -> bool {
    path.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Admin {
    /// The interface to a service whose URL is `url`.
    pub fn new(service: Arc<Service>, url: String, token: String) -> Self {
        Self {
            service,
            url,
            token: token.into(),
        }
    }

    /// The token for `Authorization: Bearer TOKEN`.
    pub fn token(&self) -> &str {
        self.token.expose_secret()
    }

    /// Answers one request; slow work runs outside the serving thread.
    pub async fn administer<B>(self: Arc<Self>, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Display,
    {
        let (head, body) = request.into_parts();
        let path = head.uri.path().strip_prefix(PREFIX).unwrap_or_default();
        if let Err(problem) = check_host(&head.headers) {
            return refuse(&problem);
        }
        if let Some((content_type, text)) = file(path) {
            return match head.method {
                Method::GET => respond(200, HeaderValue::from_static(content_type), text),
                _ => refuse(&Problem::wrong_method("GET")),
            };
        }
        if path.is_empty() {
            // Without the slash, the page would not find its files.
            let mut answer = respond(308, JSON, "{}");
            answer.headers.push(("location", format!("{PREFIX}/")));
            return answer;
        }
        if let Err(problem) = check_token(&self.token, &head.headers) {
            return refuse(&problem);
        }
        let body = match read(body).await {
            Ok(body) => body,
            Err(problem) => return refuse(&problem),
        };
        let served = tokio::task::spawn_blocking(move || {
            let path = head.uri.path().strip_prefix(PREFIX).unwrap_or_default();
            let path: Vec<&str> = path.split('/').skip(1).collect();
            let arguments = head.uri.query().unwrap_or_default();
            self.serve(head.method.as_str(), &path, arguments, &body)
        });
        let defect = "the mock failed; please report this request as a bug";
        let served = served.await.unwrap_or(Err(Problem::new(500, defect)));
        match served {
            Ok(value) => respond(200, JSON, value.to_string()),
            Err(problem) => refuse(&problem),
        }
    }

    /// Answers a request of the service.
    pub fn answer(&self, request: &Parts) -> Answer {
        match check_host(&request.headers) {
            Ok(()) => self.service.answer(request),
            Err(problem) => {
                // No mistake of a client: a website may send it.
                let main = self.service.main();
                main.note(Some(request), Target::UNKNOWN, problem.status, None);
                refuse(&problem)
            }
        }
    }

    /// Notes a request that was not HTTP, or too large, and was already refused with this status.
    pub fn malformed(&self, status: u16) {
        let main = self.service.main();
        main.note(None, Target::UNKNOWN, status, Some("malformed"));
    }
}

/// A file of the inspector: its content type and text. It contains no data, so it needs no token.
fn file(path: &str) -> Option<(&'static str, &'static str)> {
    Some(match path {
        "/" => ("text/html; charset=utf-8", include_str!("inspector.html")),
        "/inspector.js" => (
            "text/javascript; charset=utf-8",
            include_str!("inspector.js"),
        ),
        "/inspector.css" => ("text/css; charset=utf-8", include_str!("inspector.css")),
        "/inspector.svg" => ("image/svg+xml", include_str!("inspector.svg")),
        _ => return None,
    })
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
        let problem = format!("the body is larger than {LARGEST_BODY} bytes");
        return Err(Problem::new(413, problem));
    }
    Ok(kept)
}

/// The response for a problem.
fn refuse(problem: &Problem) -> Answer {
    let mut answer = respond(problem.status, JSON, problem.body().to_string());
    let allow = problem.allow.map(|allow| ("allow", allow.into()));
    let wanted = (problem.status == 401).then(|| ("www-authenticate", "Bearer".into()));
    answer.headers.extend(allow.into_iter().chain(wanted));
    answer
}

fn respond(status: u16, content_type: HeaderValue, body: impl Into<Chunks>) -> Answer {
    let headers = [
        ("cache-control", "no-store"),
        ("content-security-policy", POLICY),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ];
    Answer {
        content_type,
        headers: headers.map(|(name, value)| (name, value.into())).into(),
        ..Answer::json(status, body)
    }
}

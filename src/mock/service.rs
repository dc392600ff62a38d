//! From a request to an answer, with no socket in between.
//!
//! The checks come in this order, and the first that fails answers: path, method, secret, Accept,
//! query, look-up.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION};
use hyper::{HeaderMap, Method, Uri};

use super::chunks::Chunks;
use super::counters::Counters;
use super::refusal::Refusal;
use super::routes::{PageRequest, Route, Target, refuse_query};
use super::world::{View, World, text};

/// The interface as an OpenAPI 3.1 document, answered at `/openapi.json`.
pub const OPENAPI: &str = include_str!("../../python/backread/openapi.json");

/// A page of users takes about this many bytes, so one allocation holds most pages.
const PAGE_BYTES: usize = 48 * 1024;

/// What the mock looks at in a request.
#[derive(Clone, Copy, Debug)]
pub struct Call<'request> {
    pub method: &'request Method,
    pub uri: &'request Uri,
    pub headers: &'request HeaderMap,
}

/// What goes back; the socket layer adds framing only.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// Headers besides Content-Type, which is JSON's for every answer.
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

/// One faked service: a world and who may read it.
#[derive(Debug)]
pub struct Service {
    world: Arc<World>,
    secret: String,
    authorization: String,
    vendor: String,
    media_type: String,
    pub counters: Counters,
}

impl Service {
    /// A service that answers from `world` to those who send `secret` and name `vendor`.
    #[must_use]
    pub fn new(world: Arc<World>, secret: String, vendor: String) -> Self {
        Self {
            world,
            authorization: format!("Bearer {secret}"),
            secret,
            media_type: format!("application/vnd.{vendor}.v1+json"),
            vendor,
            counters: Counters::default(),
        }
    }

    /// The secret that requests must carry.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The vendor word of the media type.
    #[must_use]
    pub fn vendor(&self) -> &str {
        &self.vendor
    }

    /// Answers one request, and counts it.
    pub fn answer(&self, call: Call<'_>) -> Answer {
        let target = Target::read(call.uri.path());
        let mut answer = match self
            .check(call, target)
            .and_then(|()| self.look_up(call, target))
        {
            Ok(body) => Answer {
                status: 200,
                headers: Vec::new(),
                body,
            },
            Err(refusal) => refuse(&refusal),
        };
        answer
            .headers
            .push(("x-request-id", self.counters.next_request().to_string()));
        self.counters.count(target.route(), answer.status);
        answer
    }

    fn check(&self, call: Call<'_>, target: Target) -> Result<(), Refusal> {
        if target == Target::Unknown {
            return Err(Refusal::unknown_path(call.uri.path()));
        }
        if call.method != Method::GET {
            return Err(Refusal::wrong_method(call.method.as_str()));
        }
        if target.route() == Route::OpenApi {
            return Ok(());
        }
        let mut given = call.headers.get_all(AUTHORIZATION).iter();
        let right = given
            .next()
            .is_some_and(|value| value == self.authorization.as_str());
        if !right || given.next().is_some() {
            return Err(Refusal::unauthorized());
        }
        if !accepts(call.headers, &self.media_type) {
            return Err(Refusal::not_acceptable(&self.media_type));
        }
        Ok(())
    }

    fn look_up(&self, call: Call<'_>, target: Target) -> Result<Bytes, Refusal> {
        let mut out = Vec::new();
        match target {
            Target::Unknown => return Err(Refusal::unknown_path(call.uri.path())),
            Target::OpenApi => {
                refuse_query(call.uri)?;
                return Ok(Bytes::from_static(OPENAPI.as_bytes()));
            }
            Target::Users => {
                let page = PageRequest::read(call.uri)?;
                let view = self.world.view();
                open_envelope(page, view.total_users(), "users", &mut out);
                let mut rows = Chunks::default();
                view.write_users(page.offset, page.limit, &mut rows);
                close_envelope(rows, &mut out);
            }
            Target::Messages { user_id } => {
                let page = PageRequest::read(call.uri)?;
                let view = self.world.view();
                let total = view.total_messages(user_id);
                let total = total.ok_or_else(|| Refusal::unknown_user(user_id))?;
                open_envelope(page, total, "messages", &mut out);
                let mut rows = Chunks::default();
                view.write_messages(user_id, page.offset, page.limit, &mut rows);
                close_envelope(rows, &mut out);
            }
            Target::User { user_id } => {
                refuse_query(call.uri)?;
                if !self.world.view().write_user(user_id, &mut out) {
                    return Err(Refusal::unknown_user(user_id));
                }
            }
            Target::Message {
                user_id,
                message_id,
            } => {
                refuse_query(call.uri)?;
                let view = self.world.view();
                if !view.write_message(user_id, message_id, &mut out) {
                    return Err(missing(&view, user_id, message_id));
                }
            }
        }
        Ok(Bytes::from(out))
    }
}

fn missing(view: &View, user_id: u64, message_id: u64) -> Refusal {
    match view.total_messages(user_id) {
        Some(_) => Refusal::unknown_message(user_id, message_id),
        None => Refusal::unknown_user(user_id),
    }
}

/// Writes the envelope of interface 2.3 up to the first item.
fn open_envelope(page: PageRequest, total: u64, items: &str, out: &mut Vec<u8>) {
    let rows = (page.limit as u64).min(total.saturating_sub(page.offset));
    out.reserve(if rows > 50 {
        PAGE_BYTES
    } else {
        128 + 500 * rows as usize
    });
    out.extend_from_slice(b"{\"limit\":");
    text::number(page.limit as u64, out);
    out.extend_from_slice(b",\"offset\":");
    text::number(page.offset, out);
    out.extend_from_slice(b",\"total\":");
    text::number(total, out);
    out.extend_from_slice(b",\"");
    out.extend_from_slice(items.as_bytes());
    out.extend_from_slice(b"\":[");
}

/// Writes the items and the end of the envelope.
fn close_envelope(rows: Chunks, out: &mut Vec<u8>) {
    for piece in rows {
        out.extend_from_slice(&piece);
    }
    out.extend_from_slice(b"]}");
}

/// Whether an Accept header names the media type itself (interface 5.3), with a weight above 0.
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let lists = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(media_type));
        named && !parts.any(is_refusing_weight)
    })
}

/// Whether a parameter is a weight of zero (RFC 9110, section 12.4.2).
fn is_refusing_weight(parameter: &str) -> bool {
    parameter
        .split_once('=')
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
        .is_some_and(|(_, weight)| {
            weight
                .trim()
                .parse::<f32>()
                .is_ok_and(|weight| weight <= 0.0)
        })
}

fn refuse(refusal: &Refusal) -> Answer {
    let headers = match refusal.status {
        401 => vec![("www-authenticate", "Bearer".to_owned())],
        405 => vec![("allow", "GET".to_owned())],
        _ => Vec::new(),
    };
    Answer {
        status: refusal.status,
        headers,
        body: Bytes::from(refusal.body()),
    }
}

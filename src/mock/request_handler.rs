//! How a lane answers a request.
//!
//! The checks are made in this order, and the first that fails determines the response: path,
//! method, secret, Accept, query, rate, faults, look-up.

use std::sync::Arc;

use hyper::header::ACCEPT;
use hyper::{HeaderMap, Method};

use super::dialect::{Dialect, Order, PastEnd, ShortPages, Strict, Total};
use super::journal::{Entry, PageArguments, Served};
use super::lane::Lane;
use super::page;
use super::query::{read_page, refuse_query};
use super::refusal::Refusal;
use super::request_key::{Purpose, RequestKey};
use super::routes::{Route, Target};
use super::world::draw::Digest;
use super::world::{List, View};
use crate::chunks::Chunks;
use crate::dialect::order::Sequence;
use crate::dialect::row_mutation::RowMutation;
use crate::faults::delivery::{Change, Delivery};
use crate::http::exchange::{Answer, Call};

/// A well-formed request.
struct Request {
    target: Target,
    /// For lists, the page.
    asked: Option<PageArguments>,
    key: RequestKey,
    attempt: u64,
    mutation: RowMutation,
}

/// A response, and its rows if it is a page.
type Reply = (Answer, Option<Served>);

impl Lane {
    /// Answers a request, counts it and adds it to the journal; `known` says whether it carries
    /// this lane's secret.
    pub fn answer(self: &Arc<Self>, call: Call<'_>, target: Target, known: bool) -> Answer {
        let dialect = self.dialect();
        let asked = match self.check(call, target, known, &dialect) {
            Ok(asked) => asked,
            Err(refusal) => return self.refuse(call, target, &refusal),
        };
        let key = RequestKey::new(target, asked);
        let request = Request {
            target,
            asked,
            key,
            attempt: self.attempts.next(&key),
            mutation: RowMutation {
                dialect,
                seed: self.seed,
            },
        };
        let (refusal, headers) = match self.bucket().as_mut() {
            Some(bucket) => {
                let turn = bucket.take(self.clock.now(), self.clock.wall());
                let status = bucket.rate.status;
                let refusal = (!turn.admitted).then(|| Refusal::rate_limited(status));
                (refusal, turn.headers)
            }
            None => (None, Vec::new()),
        };
        let delivery = if refusal.is_none() {
            self.rules.choose(self.seed, &key)
        } else {
            Delivery::default()
        };
        let (answer, mut served) = match (&refusal, &delivery.change) {
            (Some(refusal), _) => (refused(refusal), None),
            (None, Some(Change::Answer { .. })) => (Answer::json(200, Chunks::default()), None),
            (None, Some(Change::ContentType(_)) | None) => self.look_up(&request),
        };
        let whole = served.is_some() && delivery.is_whole(answer.body.length() as u64);
        // If sending takes time, the client may disconnect before it is done.
        let (now, later) = (whole && !delivery.is_late(), whole && delivery.is_late());
        if let Some(served) = &mut served {
            served.whole = now;
        }
        let faults = delivery.rules.clone();
        let mut answer = answer.delivered(delivery, &self.clock);
        self.counters.count(target.route, answer.status);
        let number = self.journal.add(Entry {
            page: asked,
            attempt: request.attempt,
            faults,
            served,
            ..self.entry(Some(call), target, answer.status)
        });
        if now {
            self.drifts.page(&self.world, target, &request.mutation);
        }
        if let Some(sending) = answer.sending.as_mut().filter(|_| later) {
            let (lane, mutation) = (Arc::clone(self), request.mutation);
            sending.sent = Some(Box::new(move || {
                lane.journal.sent(number);
                lane.drifts.page(&lane.world, target, &mutation);
            }));
        }
        answer.headers.extend(headers);
        let id = key.chance(self.seed, Purpose::RequestId, request.attempt);
        answer.headers.push(("x-request-id", format!("{id:016x}")));
        answer
    }

    /// Counts and records a request that needs no look-up; `call` is `None` if it was not HTTP.
    pub(super) fn note(
        &self,
        call: Option<Call<'_>>,
        target: Target,
        status: u16,
        unexpected: Option<&'static str>,
    ) {
        self.counters.count(target.route, status);
        self.journal.add(Entry {
            unexpected,
            ..self.entry(call, target, status)
        });
    }

    /// Refuses a request, counts it and adds it to the journal.
    pub(super) fn refuse(&self, call: Call<'_>, target: Target, refusal: &Refusal) -> Answer {
        self.note(Some(call), target, refusal.status, refusal.unexpected());
        let mut digest = Digest::new();
        digest.number(self.seed);
        digest.text(call.method.as_str());
        digest.text(call.uri.path());
        digest.text(call.uri.query().unwrap_or_default());
        let mut answer = refused(refusal);
        answer.headers.push(("x-request-id", digest.hex()));
        answer
    }

    fn entry(&self, call: Option<Call<'_>>, target: Target, status: u16) -> Entry {
        let path = call.and_then(|call| call.uri.path_and_query());
        Entry {
            number: 0,
            at: self.clock.wall(),
            method: call.map_or(Method::GET, |call| call.method.clone()),
            path: path.map_or_else(String::new, |path| path.as_str().to_owned()),
            target,
            page: None,
            attempt: 0,
            status,
            faults: Vec::new(),
            unexpected: None,
            served: None,
        }
    }

    fn check(
        &self,
        call: Call<'_>,
        target: Target,
        known: bool,
        dialect: &Dialect,
    ) -> Result<Option<PageArguments>, Refusal> {
        if target == Target::UNKNOWN {
            return Err(Refusal::unknown_path(call.uri.path()));
        }
        if call.method != Method::GET {
            return Err(Refusal::wrong_method(call.method.as_str()));
        }
        if target.route == Route::OpenApi {
            return refuse_query(call.uri).map(|()| None);
        }
        let strict = dialect.strict == Strict::Yes;
        if strict && !known {
            return Err(Refusal::unauthorized());
        }
        if strict && !accepts(call.headers, &self.media_type) {
            return Err(Refusal::not_acceptable(&self.media_type));
        }
        match target.route {
            Route::Users | Route::Messages => read_page(call.uri, dialect).map(Some),
            _ if strict => refuse_query(call.uri).map(|()| None),
            _ => Ok(None),
        }
    }

    fn look_up(&self, request: &Request) -> Reply {
        let view = self.world.view();
        let mutation = &request.mutation;
        let Target { user, message, .. } = request.target;
        let found = match (request.asked, user, message) {
            (Some(asked), ..) => {
                return self
                    .list(request, asked, view)
                    .unwrap_or_else(|refusal| (refused(&refusal), None));
            }
            (None, Some(user), None) => page::user(&view, user, mutation),
            (None, Some(user), Some(message)) => page::message(&view, user, message, mutation),
            (None, None, _) => Err(Refusal::unknown_path("")),
        };
        let answer = found.map_or_else(|refusal| refused(&refusal), |row| Answer::json(200, row));
        (answer, None)
    }

    fn list(&self, request: &Request, asked: PageArguments, view: View) -> Result<Reply, Refusal> {
        let Request {
            key,
            attempt,
            mutation,
            target,
            ..
        } = request;
        let dialect = &mutation.dialect;
        let chance = |purpose| key.chance(self.seed, purpose, *attempt);
        let unknown = || Refusal::unknown_user(target.user.unwrap_or(0));
        let user = match target.user {
            None => None,
            Some(sent) => Some(mutation.own_id(sent).ok_or_else(unknown)?),
        };
        let rows = view.list(user).map_err(|_| unknown())?.total();
        let mut offset = asked.offset;
        if offset > 0 && offset >= rows {
            match dialect.past_end {
                PastEnd::Empty => {}
                PastEnd::NotFound => return Err(Refusal::past_end(offset, rows)),
                PastEnd::LastPage => offset = rows.saturating_sub(1) / asked.limit * asked.limit,
            }
        }
        let mut count = asked.limit.min(rows.saturating_sub(offset));
        if dialect.short_pages == ShortPages::Some && count > 1 {
            let bits = chance(Purpose::ShortPage);
            if bits.is_multiple_of(3) {
                count -= 1 + (bits >> 32) % (count / 2);
            }
        }
        let served = Served {
            sequence: Sequence {
                order: dialect.order,
                total: rows,
                chance: match dialect.order {
                    Order::Id | Order::Newest => 0,
                    Order::Ties | Order::Shuffled => chance(Purpose::Order),
                },
            },
            view,
            first: offset,
            rows: count,
            whole: true,
        };
        let total = match dialect.total {
            Total::Exact => Some(rows),
            Total::Stale => Some(self.began.list(user).map_or(rows, List::total)),
            Total::Capped => Some(rows.min(dialect.total_cap.get())),
            Total::Null => None,
            Total::Low => Some(rows.saturating_sub(1 + rows / 10)),
            Total::High => Some(rows + 1 + rows / 10),
        };
        let sent = PageArguments {
            offset,
            limit: asked.limit,
        };
        let body = page::body(&served, user, sent, total, mutation).map_err(|_| unknown())?;
        Ok((Answer::json(200, body), Some(served)))
    }
}

fn refused(refusal: &Refusal) -> Answer {
    let mut answer = Answer::json(refusal.status, refusal.body());
    match refusal.status {
        401 => answer
            .headers
            .push(("www-authenticate", "Bearer".to_owned())),
        405 => answer.headers.push(("allow", "GET".to_owned())),
        _ => {}
    }
    answer
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

//! How a lane answers a request.
//!
//! The checks are made in this order, and the first that fails determines the response: path,
//! method, secret, Accept, query, rate, faults, look-up.

use std::sync::Arc;

use http::request::Parts;
use hyper::header::ACCEPT;
use hyper::{HeaderMap, Method};

use super::dialect::{Dialect, Order, PastEnd, ShortPages, Strict, Total};
use super::journal::{Entry, Served};
use super::lane::Lane;
use super::lock;
use super::page;
use super::query::{read_page, refuse_query};
use super::refusal::Refusal;
use super::routes::{Purpose, Route, Target};
use super::world::List;
use super::world::draw::Digest;
use crate::chunks::Chunks;
use crate::dialect::order::Sequence;
use crate::dialect::row_mutation::RowMutation;
use crate::faults::delivery::{Change, Delivery};
use crate::http::exchange::Answer;

/// A response, and its rows if it is a page.
type Reply = (Answer, Option<Served>);

impl Lane {
    /// Answers a request, counts it and adds it to the journal; `known` says whether it carries
    /// this lane's secret.
    pub fn answer(self: &Arc<Self>, request: &Parts, target: Target, known: bool) -> Answer {
        let mutation = self.mutation();
        let target = match self.check(request, target, known, &mutation.dialect) {
            Ok(target) => target,
            Err(refusal) => return self.refuse(request, target, &refusal),
        };
        let attempt = self.attempts.next(&target);
        let (refusal, headers) = match lock(&self.bucket).as_mut() {
            Some(bucket) => {
                let turn = bucket.take(self.clock.now(), self.clock.wall());
                let status = bucket.rate.status;
                let refusal = (!turn.admitted).then(|| Refusal::rate_limited(status));
                (refusal, turn.headers)
            }
            None => (None, Vec::new()),
        };
        let delivery = if refusal.is_none() {
            self.rules.choose(self.seed, &target)
        } else {
            Delivery::default()
        };
        let (answer, mut served) = match (&refusal, &delivery.change) {
            (Some(refusal), _) => (refused(refusal), None),
            (None, Some(Change::Answer { .. })) => (Answer::json(200, Chunks::default()), None),
            (None, Some(Change::ContentType(_)) | None) => self
                .look_up(target, attempt, &mutation)
                .unwrap_or_else(|refusal| (refused(&refusal), None)),
        };
        let whole = served.is_some() && delivery.is_whole(answer.body.length() as u64);
        // If sending takes time, the client may disconnect before it is done.
        let (now, later) = (whole && !delivery.is_late(), whole && delivery.is_late());
        if let Some(served) = &mut served {
            served.whole = now;
        }
        let faults = delivery.rules.clone();
        let mut answer = answer.delivered(delivery, &self.clock);
        let number = self.journal.add(Entry {
            attempt,
            faults,
            served,
            ..self.entry(Some(request), target, answer.status)
        });
        if now {
            self.drifts.page(&self.world, target, &mutation);
        }
        if let Some(sending) = answer.sending.as_mut().filter(|_| later) {
            let lane = Arc::clone(self);
            sending.sent = Some(Box::new(move || {
                lane.journal.sent(number);
                lane.drifts.page(&lane.world, target, &mutation);
            }));
        }
        answer.headers.extend(headers);
        let id = target.chance(self.seed, Purpose::RequestId, attempt);
        answer.headers.push(("x-request-id", format!("{id:016x}")));
        answer
    }

    /// Records a request that needs no look-up; `None` if it was not HTTP.
    pub(super) fn note(
        &self,
        request: Option<&Parts>,
        target: Target,
        status: u16,
        unexpected: Option<&'static str>,
    ) {
        self.journal.add(Entry {
            unexpected,
            ..self.entry(request, target, status)
        });
    }

    /// Refuses a request, and adds it to the journal.
    pub(super) fn refuse(&self, request: &Parts, target: Target, refusal: &Refusal) -> Answer {
        self.note(Some(request), target, refusal.status, refusal.unexpected());
        let mut digest = Digest::new();
        digest.number(self.seed);
        digest.text(request.method.as_str());
        digest.text(request.uri.path());
        digest.text(request.uri.query().unwrap_or_default());
        let mut answer = refused(refusal);
        answer.headers.push(("x-request-id", digest.hex()));
        answer
    }

    fn entry(&self, request: Option<&Parts>, target: Target, status: u16) -> Entry {
        let path = request.and_then(|request| request.uri.path_and_query());
        Entry {
            number: 0,
            at: self.clock.wall(),
            method: request.map_or(Method::GET, |request| request.method.clone()),
            path: path.map_or_else(String::new, |path| path.as_str().to_owned()),
            target,
            attempt: 0,
            status,
            faults: Vec::new(),
            unexpected: None,
            served: None,
        }
    }

    /// The target with its page.
    fn check(
        &self,
        request: &Parts,
        target: Target,
        known: bool,
        dialect: &Dialect,
    ) -> Result<Target, Refusal> {
        if target == Target::UNKNOWN {
            return Err(Refusal::unknown_path(request.uri.path()));
        }
        if request.method != Method::GET {
            return Err(Refusal::wrong_method(request.method.as_str()));
        }
        if matches!(target.route, Route::OpenApi | Route::File) {
            return refuse_query(&request.uri).map(|()| target);
        }
        let strict = dialect.strict == Strict::Yes;
        if strict && !known {
            return Err(Refusal::unauthorized());
        }
        if strict && !accepts(&request.headers, &self.media_type) {
            return Err(Refusal::not_acceptable(&self.media_type));
        }
        match target.route {
            Route::Users | Route::Messages => read_page(target, &request.uri, dialect),
            _ if strict => refuse_query(&request.uri).map(|()| target),
            _ => Ok(target),
        }
    }

    fn look_up(
        &self,
        target: Target,
        attempt: u64,
        mutation: &RowMutation,
    ) -> Result<Reply, Refusal> {
        let view = self.world.view();
        let (Some(mut offset), Some(limit)) = (target.offset, target.limit) else {
            let row = page::row(&view, target, mutation)?;
            return Ok((Answer::json(200, row), None));
        };
        let dialect = &mutation.dialect;
        let chance = |purpose| target.chance(self.seed, purpose, attempt);
        let unknown = || Refusal::unknown_user(target.user.unwrap_or(0));
        let user = match target.user {
            None => None,
            Some(sent) => Some(mutation.own_id(sent).ok_or_else(unknown)?),
        };
        let rows = view.list(user).map_err(|_| unknown())?.total();
        if offset > 0 && offset >= rows {
            match dialect.past_end {
                PastEnd::Empty => {}
                PastEnd::NotFound => return Err(Refusal::past_end(offset, rows)),
                PastEnd::LastPage => offset = rows.saturating_sub(1) / limit * limit,
            }
        }
        let mut count = limit.min(rows.saturating_sub(offset));
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
        let body = page::body(&served, user, limit, total, mutation).map_err(|_| unknown())?;
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

/// Whether an Accept header names the media type itself (interface 5.3).
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let lists = headers.get_all(ACCEPT).iter();
    let ranges = lists.filter_map(|list| list.to_str().ok());
    ranges.flat_map(|list| list.split(',')).any(|range| {
        let name = range.split(';').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case(media_type)
    })
}

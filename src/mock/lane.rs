//! One lane: a world, the habits of the service that serves it, and what was asked of it.
//!
//! The checks come in this order, and the first that fails answers: path, method, secret, Accept,
//! query, rate, faults, look-up.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use hyper::header::ACCEPT;
use hyper::{HeaderMap, Method};

use super::audit::{self, Audit, List};
use super::bend::Bend;
use super::chunks::Chunks;
use super::counters::Counters;
use super::dialect::{Dialect, Order, PastEnd, ShortPages, Strict, Total};
use super::drift::Drifts;
use super::fault::ErrorCode;
use super::journal::{Asked, CAPACITY, Entry, Journal, Served};
use super::key::{Attempts, Purpose, RequestKey};
use super::manner::{Change, Manner};
use super::order::Sequence;
use super::page;
use super::query::{read_page, refuse_query};
use super::rate::{Bucket, Rate};
use super::refusal::Refusal;
use super::routes::{Route, Target};
use super::rule::Rule;
use super::rules::Rules;
use super::service::{Answer, Call};
use super::world::draw::Digest;
use super::world::{View, World};
use crate::clock::Clock;

/// What a lane is made of.
#[derive(Debug)]
pub struct Parts {
    pub name: String,
    pub secret: String,
    pub vendor: String,
    pub world: Arc<World>,
    pub habits: Habits,
}

/// How a lane answers at first; all of it can be changed later but the journal's length.
#[derive(Clone, Debug)]
pub struct Habits {
    /// What all chance in the lane is drawn from; `None` for the world's seed.
    pub seed: Option<u64>,
    pub dialect: Dialect,
    pub rate: Option<Rate>,
    pub rules: Vec<Rule>,
    /// How many requests the journal keeps.
    pub journal: usize,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            seed: None,
            dialect: Dialect::DOCUMENTED,
            rate: None,
            rules: Vec::new(),
            journal: CAPACITY,
        }
    }
}

/// One lane of a server.
#[derive(Debug)]
pub struct Lane {
    name: String,
    secret: String,
    media_type: String,
    world: Arc<World>,
    seed: u64,
    dialect: ArcSwap<Dialect>,
    bucket: Mutex<Option<Bucket>>,
    attempts: Attempts,
    /// The world before the first request, or when the journal was cleared.
    before: ArcSwap<View>,
    pub rules: Rules,
    pub drifts: Drifts,
    pub clock: Clock,
    pub journal: Journal,
    pub counters: Counters,
}

/// What one request is answered with, and what the journal notes of it.
struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Chunks,
    served: Option<Served>,
}

impl Lane {
    /// A lane whose clock is the machine's, until it is switched.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts {
            name,
            secret,
            vendor,
            world,
            habits,
        } = parts;
        let clock = Clock::switchable();
        let rules = Rules::default();
        for rule in habits.rules {
            rules.add(rule);
        }
        Self {
            name,
            secret,
            media_type: format!("application/vnd.{vendor}.v1+json"),
            before: ArcSwap::from_pointee(world.view()),
            seed: habits.seed.unwrap_or(world.seed()),
            world,
            dialect: ArcSwap::from_pointee(habits.dialect),
            bucket: Mutex::new(habits.rate.map(|rate| Bucket::new(rate, clock.now()))),
            attempts: Attempts::default(),
            rules,
            drifts: Drifts::default(),
            clock,
            journal: Journal::new(habits.journal),
            counters: Counters::default(),
        }
    }

    /// What the lane goes by in the inspector.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The secret that its requests carry.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    #[must_use]
    pub const fn world(&self) -> &Arc<World> {
        &self.world
    }

    #[must_use]
    pub fn dialect(&self) -> Dialect {
        **self.dialect.load()
    }

    /// Speaks another dialect from the next request on.
    pub fn set_dialect(&self, dialect: Dialect) {
        self.dialect.store(Arc::new(dialect));
    }

    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.bucket().map(|bucket| bucket.rate)
    }

    /// Limits the rate from now on, with a full bucket; `None` for no limit.
    pub fn set_rate(&self, rate: Option<Rate>) {
        *self.bucket() = rate.map(|rate| Bucket::new(rate, self.clock.now()));
    }

    fn bucket(&self) -> std::sync::MutexGuard<'_, Option<Bucket>> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was asked: journal, counts and attempts begin anew, and so do audits.
    pub fn forget(&self) {
        self.journal.clear();
        self.counters.clear();
        self.attempts.clear();
        self.before.store(Arc::new(self.world.view()));
    }

    /// Compares the ids that a reader holds, as they were sent, with what was there.
    #[must_use]
    pub fn audit(&self, list: List, held: &[u64]) -> Audit {
        let (entries, forgotten) = self.journal.all();
        let entries: Vec<Entry> = entries
            .into_iter()
            .filter(|entry| match list {
                List::Users => entry.target == Target::Users,
                List::Messages { user_id } => {
                    entry.target.route() == Route::Messages
                        && entry.target.user().and_then(|id| self.bend().own_id(id))
                            == Some(user_id)
                }
            })
            .collect();
        let first = entries.iter().find_map(|entry| entry.served.as_ref());
        let before = match first.filter(|_| !forgotten) {
            Some(served) => served.view.clone(),
            None => (**self.before.load()).clone(),
        };
        let bend = self.bend();
        // An id that was never sent is kept as it is, and found nowhere.
        let held: Vec<u64> = held
            .iter()
            .map(|id| bend.own_id(*id).unwrap_or(*id))
            .collect();
        audit::audit(list, &held, before, entries, self.world.view())
    }

    fn bend(&self) -> Bend {
        Bend {
            dialect: self.dialect(),
            seed: self.seed,
        }
    }

    /// Answers one request, counts it and notes it; `known` says whether it carries this lane's
    /// secret.
    pub fn answer(&self, call: Call<'_>, target: Target, known: bool) -> Answer {
        let dialect = self.dialect();
        let asked = match self.check(call, target, known, &dialect) {
            Ok(asked) => asked,
            Err(refusal) => return self.refuse(call, target, &refusal),
        };
        let key = RequestKey::new(target, asked.map_or(0, |asked| asked.offset));
        let attempt = self.attempts.next(&key);
        let turn = self
            .bucket()
            .as_mut()
            .map(|bucket| bucket.take(self.clock.now(), self.clock.wall()));
        let (reply, manner) = match turn {
            Some(turn) if !turn.admitted => (
                reply_to(&Refusal::rate_limited(), turn.headers),
                Manner::default(),
            ),
            turn => {
                let limit = asked.map_or(1, |asked| asked.limit);
                let manner = self.rules.choose(self.seed, &key, limit);
                let mut reply = match &manner.change {
                    Some(Change::Status {
                        code,
                        retry_after,
                        body,
                    }) => failure(*code, *retry_after, body.as_deref()),
                    Some(Change::Garbage(text)) => one(Bytes::from(text.clone())),
                    Some(Change::ContentType(_)) | None => {
                        self.look_up(target, asked, &key, attempt, &dialect)
                    }
                };
                reply
                    .headers
                    .extend(turn.map(|turn| turn.headers).unwrap_or_default());
                (reply, manner)
            }
        };
        let mut served = reply.served;
        if let Some(served) = &mut served {
            served.whole = manner.is_whole();
            if served.whole {
                self.drifts.page(&self.world, target, dialect.order);
            }
        }
        self.counters.count(target.route(), reply.status);
        self.journal.add(Entry {
            page: asked,
            attempt,
            faults: manner.rules.clone(),
            served,
            ..self.entry(call, target, reply.status)
        });
        let mut headers = reply.headers;
        let id = key.chance(self.seed, Purpose::RequestId, attempt);
        headers.push(("x-request-id", format!("{id:016x}")));
        Answer {
            status: reply.status,
            headers,
            body: reply.body,
            manner,
            clock: self.clock.clone(),
        }
    }

    fn refuse(&self, call: Call<'_>, target: Target, refusal: &Refusal) -> Answer {
        self.counters.count(target.route(), refusal.status);
        self.journal.add(Entry {
            unexpected: Some(refusal.code),
            ..self.entry(call, target, refusal.status)
        });
        let mut reply = reply_to(refusal, Vec::new());
        let mut digest = Digest::new();
        digest.number(self.seed);
        digest.text(call.method.as_str());
        digest.text(call.uri.path());
        digest.text(call.uri.query().unwrap_or_default());
        reply.headers.push(("x-request-id", digest.hex()));
        Answer {
            status: reply.status,
            headers: reply.headers,
            body: reply.body,
            manner: Manner::default(),
            clock: self.clock.clone(),
        }
    }

    fn entry(&self, call: Call<'_>, target: Target, status: u16) -> Entry {
        let path = call.uri.path_and_query();
        Entry {
            number: 0,
            at: self.clock.wall(),
            method: call.method.clone(),
            path: path
                .map(|path| path.as_str().to_owned())
                .unwrap_or_default(),
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
    ) -> Result<Option<Asked>, Refusal> {
        if target == Target::Unknown {
            return Err(Refusal::unknown_path(call.uri.path()));
        }
        if call.method != Method::GET {
            return Err(Refusal::wrong_method(call.method.as_str()));
        }
        let strict = dialect.strict == Strict::Yes && target != Target::OpenApi;
        if strict && !known {
            return Err(Refusal::unauthorized());
        }
        if strict && !accepts(call.headers, &self.media_type) {
            return Err(Refusal::not_acceptable(&self.media_type));
        }
        match target {
            Target::OpenApi => refuse_query(call.uri).map(|()| None),
            Target::Users | Target::Messages { .. } => read_page(call.uri, dialect).map(Some),
            _ if strict => refuse_query(call.uri).map(|()| None),
            _ => Ok(None),
        }
    }

    fn look_up(
        &self,
        target: Target,
        asked: Option<Asked>,
        key: &RequestKey,
        attempt: u64,
        dialect: &Dialect,
    ) -> Reply {
        let bend = Bend {
            dialect: *dialect,
            seed: self.seed,
        };
        let view = self.world.view();
        let found = match (target, asked) {
            (Target::User { user_id }, _) => page::user(&view, user_id, &bend).map(one),
            (
                Target::Message {
                    user_id,
                    message_id,
                },
                _,
            ) => page::message(&view, user_id, message_id, &bend).map(one),
            (_, Some(asked)) => self.list(target, asked, key, attempt, &bend, view),
            (_, None) => Err(Refusal::unknown_path("")),
        };
        found.unwrap_or_else(|refusal| reply_to(&refusal, Vec::new()))
    }

    fn list(
        &self,
        target: Target,
        asked: Asked,
        key: &RequestKey,
        attempt: u64,
        bend: &Bend,
        view: View,
    ) -> Result<Reply, Refusal> {
        let dialect = &bend.dialect;
        let sent_user = target.user();
        let user = match sent_user {
            None => None,
            Some(sent) => Some(
                bend.own_id(sent)
                    .ok_or_else(|| Refusal::unknown_user(sent))?,
            ),
        };
        let rows = page::total(&view, user)
            .ok_or_else(|| Refusal::unknown_user(sent_user.unwrap_or(0)))?;
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
            let bits = key.chance(self.seed, Purpose::ShortPage, attempt);
            if bits.is_multiple_of(3) {
                count -= 1 + (bits >> 32) % (count / 2);
            }
        }
        let chance = match dialect.order {
            Order::Id | Order::Newest => 0,
            Order::Ties | Order::Shuffled => key.chance(self.seed, Purpose::Order, attempt),
        };
        let served = Served {
            sequence: Sequence {
                order: dialect.order,
                total: rows,
                chance,
            },
            view,
            first: offset,
            rows: count,
            whole: true,
        };
        let total = match dialect.total {
            Total::Exact => Some(rows),
            Total::Stale => Some(page::total(&self.before.load(), user).unwrap_or(rows)),
            Total::Capped => Some(rows.min(dialect.total_cap)),
            Total::Null => None,
            Total::Low => Some(rows.saturating_sub(1 + rows / 10)),
            Total::High => Some(rows + 1 + rows / 10),
        };
        let sent = Asked {
            offset,
            limit: asked.limit,
        };
        Ok(Reply {
            status: 200,
            headers: Vec::new(),
            body: page::body(&served, user, sent, total, bend),
            served: Some(served),
        })
    }
}

fn one(body: Bytes) -> Reply {
    Reply {
        status: 200,
        headers: Vec::new(),
        body: Chunks::from(body),
        served: None,
    }
}

fn reply_to(refusal: &Refusal, mut headers: Vec<(&'static str, String)>) -> Reply {
    match refusal.status {
        401 => headers.push(("www-authenticate", "Bearer".to_owned())),
        405 => headers.push(("allow", "GET".to_owned())),
        _ => {}
    }
    Reply {
        status: refusal.status,
        headers,
        body: Chunks::from(Bytes::from(refusal.body())),
        served: None,
    }
}

/// The answer of a fault with a status; without a body of its own, one that says where it is from.
fn failure(code: ErrorCode, retry_after: Option<u64>, body: Option<&str>) -> Reply {
    let refusal = Refusal::injected(code);
    let mut reply = reply_to(&refusal, Vec::new());
    if let Some(seconds) = retry_after {
        reply.headers.push(("retry-after", seconds.to_string()));
    }
    if let Some(body) = body {
        reply.body = Chunks::from(Bytes::from(body.to_owned()));
    }
    reply
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

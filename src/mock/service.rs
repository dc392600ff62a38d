//! From a request to an answer, with no socket in between: each request finds its lane by the
//! secret that it carries.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use hyper::Method;
use hyper::header::AUTHORIZATION;

use super::exchange::{Answer, Call, Responder};
use super::lane::Lane;
use super::query::refuse_query;
use super::routes::Target;

/// The interface as an OpenAPI 3.1 document, answered at `/openapi.json`.
pub const OPENAPI: &str = include_str!("../../python/backread/openapi.json");

type Lanes = HashMap<Vec<u8>, Arc<Lane>>;

/// One faked service: its lanes by the value of the Authorization header.
#[derive(Debug)]
pub struct Service {
    vendor: String,
    main: Arc<Lane>,
    lanes: ArcSwap<Lanes>,
    changing: Mutex<()>,
    numbered: AtomicU64,
}

impl Service {
    /// A service whose requests go to `main` unless they carry another lane's secret.
    #[must_use]
    pub fn new(vendor: String, main: Arc<Lane>) -> Self {
        let lanes = HashMap::from([(authorization(&main), Arc::clone(&main))]);
        Self {
            vendor,
            main,
            lanes: ArcSwap::from_pointee(lanes),
            changing: Mutex::new(()),
            numbered: AtomicU64::new(0),
        }
    }

    /// The vendor word of the media type.
    #[must_use]
    pub fn vendor(&self) -> &str {
        &self.vendor
    }

    /// The lane of the server's own secret, which also takes what no lane can be found for.
    #[must_use]
    pub const fn main(&self) -> &Arc<Lane> {
        &self.main
    }

    /// All lanes: the main one first, the others by name.
    #[must_use]
    pub fn lanes(&self) -> Vec<Arc<Lane>> {
        let mut lanes: Vec<Arc<Lane>> = self.lanes.load().values().map(Arc::clone).collect();
        lanes.sort_by_key(|lane| (!Arc::ptr_eq(lane, &self.main), lane.name().to_owned()));
        lanes
    }

    /// A number that no other lane of this service has.
    pub fn next_lane(&self) -> u64 {
        self.numbered.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Opens a lane; one of the same secret makes room.
    pub fn open(&self, lane: Arc<Lane>) {
        self.change(|lanes| drop(lanes.insert(authorization(&lane), lane)));
    }

    /// Closes a lane: its secret is unknown from now on. The main one stays.
    pub fn close(&self, lane: &Arc<Lane>) {
        if !Arc::ptr_eq(lane, &self.main) {
            self.change(|lanes| lanes.retain(|_, open| !Arc::ptr_eq(open, lane)));
        }
    }

    fn change(&self, change: impl FnOnce(&mut Lanes)) {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lanes = Lanes::clone(&self.lanes.load());
        change(&mut lanes);
        self.lanes.store(Arc::new(lanes));
    }

    fn openapi(&self) -> Answer {
        self.main.counters.count(Target::OpenApi.route(), 200);
        Answer::json(200, Bytes::from_static(OPENAPI.as_bytes()))
    }
}

impl Responder for Service {
    fn answer(&self, call: Call<'_>) -> Answer {
        let target = Target::read(call.uri.path());
        if target == Target::OpenApi && call.method == Method::GET && refuse_query(call.uri).is_ok()
        {
            return self.openapi();
        }
        let mut given = call.headers.get_all(AUTHORIZATION).iter();
        let lanes = self.lanes.load();
        let lane = given
            .next()
            .and_then(|value| lanes.get(value.as_bytes()))
            .filter(|_| given.next().is_none());
        match lane {
            Some(lane) => lane.answer(call, target, true),
            None => self.main.answer(call, target, false),
        }
    }

    fn malformed(&self) {
        self.main.counters.count(Target::Unknown.route(), 400);
    }
}

fn authorization(lane: &Lane) -> Vec<u8> {
    format!("Bearer {}", lane.secret()).into_bytes()
}

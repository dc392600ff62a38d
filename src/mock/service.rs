//! From a request to a response, without a socket: each request finds its lane by the secret that
//! it carries.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use hyper::Method;
use hyper::header::AUTHORIZATION;

use super::lane::{Lane, LaneOptions, media_type};
use super::query::refuse_query;
use super::refusal::Refusal;
use super::routes::{Route, Target};
use super::secret;
use super::world::World;
use crate::http::exchange::{Answer, Call};

/// The interface as an OpenAPI 3.1 document, for the vendor word [`DEFAULT_VENDOR`].
pub const OPENAPI: &str = include_str!("../../python/backread/openapi.json");

/// The default vendor word, which [`OPENAPI`] has.
pub const DEFAULT_VENDOR: &str = "example";

/// How many closed lanes are remembered, for late requests.
const REMEMBERED: usize = 16;

type Lanes = HashMap<Vec<u8>, Arc<Lane>>;

/// A fake service: its lanes by the value of the Authorization header.
#[derive(Debug)]
pub struct Service {
    vendor: String,
    /// What `/openapi.json` answers: [`OPENAPI`] with this vendor's media type.
    openapi: Bytes,
    main: Arc<Lane>,
    lanes: ArcSwap<Lanes>,
    changing: Mutex<()>,
    closed: Mutex<VecDeque<Arc<Lane>>>,
    numbered: AtomicU64,
}

impl Service {
    /// A service whose requests go to `main` unless they carry another lane's secret.
    #[must_use]
    pub fn new(vendor: String, main: Arc<Lane>) -> Self {
        let lanes = HashMap::from([(authorization(&main), Arc::clone(&main))]);
        let openapi = OPENAPI.replace(&media_type(DEFAULT_VENDOR), &media_type(&vendor));
        Self {
            vendor,
            openapi: openapi.into(),
            main,
            lanes: ArcSwap::from_pointee(lanes),
            changing: Mutex::new(()),
            closed: Mutex::default(),
            numbered: AtomicU64::new(0),
        }
    }

    /// The vendor word of the media type.
    #[must_use]
    pub fn vendor(&self) -> &str {
        &self.vendor
    }

    /// The lane of the server's own secret; requests that match no lane also go to it.
    #[must_use]
    pub const fn main(&self) -> &Arc<Lane> {
        &self.main
    }

    /// All lanes: the main one first, the others by name.
    #[must_use]
    pub fn lanes(&self) -> Vec<Arc<Lane>> {
        let mut lanes: Vec<Arc<Lane>> = self.lanes.load().values().map(Arc::clone).collect();
        lanes.sort_by_key(|lane| (!Arc::ptr_eq(lane, &self.main), lane.name.clone()));
        lanes
    }

    /// Opens a lane with its own secret. Without a name it gets a number, without a world a copy of
    /// the main lane's.
    ///
    /// # Errors
    /// What is wrong with the name, which may have letters, digits, `-` and `_`, and must differ
    /// from all open lanes. Also if the system provides no random bytes for its secret.
    pub fn open_lane(
        &self,
        name: Option<String>,
        world: Option<Arc<World>>,
        options: LaneOptions,
    ) -> Result<Arc<Lane>, String> {
        let number = self.numbered.fetch_add(1, Ordering::Relaxed) + 1;
        let name = name.unwrap_or_else(|| format!("lane-{number}"));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(format!("name: letters, digits, - and _, not {name:?}"));
        }
        let random = secret::draw().map_err(|error| format!("no secret could be made: {error}"))?;
        let secret = format!("mock_{name}_{random}");
        let world = world.unwrap_or_else(|| Arc::new(self.main.world.fork()));
        let lane = Arc::new(Lane::new(name, secret, &self.vendor, world, options));
        self.change(|lanes| {
            if lanes.values().any(|open| open.name == lane.name) {
                return Err(format!("name: a lane {:?} is open already", lane.name));
            }
            lanes.insert(authorization(&lane), Arc::clone(&lane));
            Ok(Arc::clone(&lane))
        })
    }

    /// Closes a lane: from now on its secret is unknown. The main one stays.
    pub fn close(&self, lane: &Arc<Lane>) {
        let open = self.lanes.load().get(&authorization(lane)).is_some();
        if Arc::ptr_eq(lane, &self.main) || !open {
            return;
        }
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.truncate(REMEMBERED - 1);
        closed.push_front(Arc::clone(lane));
        self.change(|lanes| lanes.remove(&authorization(lane)));
    }

    /// The recently closed lane that had this secret: requests that its client sent before stopping
    /// belong to no other lane.
    fn closed(&self, given: &[u8]) -> Option<Arc<Lane>> {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lanes = closed.iter();
        lanes
            .find(|lane| authorization(lane) == given)
            .map(Arc::clone)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Lanes) -> T) -> T {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lanes = Lanes::clone(&self.lanes.load());
        let changed = change(&mut lanes);
        self.lanes.store(Arc::new(lanes));
        changed
    }

    /// Answers one request.
    pub fn answer(&self, call: Call<'_>) -> Answer {
        let target = Target::read(call.uri.path());
        let openapi = target.route == Route::OpenApi && call.method == Method::GET;
        if openapi && refuse_query(call.uri).is_ok() {
            self.main.note(Some(call), target, 200, None);
            return Answer::json(200, Bytes::clone(&self.openapi));
        }
        let mut given = call.headers.get_all(AUTHORIZATION).iter();
        let secret = given.next().filter(|_| given.next().is_none());
        let secret = secret.map(|value| value.as_bytes());
        let lanes = self.lanes.load();
        if let Some(lane) = secret.and_then(|secret| lanes.get(secret)) {
            return lane.answer(call, target, true);
        }
        match secret.and_then(|secret| self.closed(secret)) {
            Some(lane) => lane.refuse(call, target, &Refusal::unauthorized()),
            None => self.main.answer(call, target, false),
        }
    }
}

fn authorization(lane: &Lane) -> Vec<u8> {
    format!("Bearer {}", lane.secret).into_bytes()
}

//! From a request to a response, without a socket: each request finds its lane by the secret that
//! it carries.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::request::Parts;
use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderValue};

use super::lane::{Lane, LaneOptions, media_type};
use super::lock;
use super::page;
use super::query::refuse_query;
use super::refusal::Refusal;
use super::routes::{Route, Target};
use super::world::World;
use crate::http::exchange::Answer;

/// The interface as an OpenAPI 3.1 document, for the vendor word [`DEFAULT_VENDOR`].
pub const OPENAPI: &str = include_str!("../../python/backread/openapi.json");

/// The default vendor word, which [`OPENAPI`] has.
pub const DEFAULT_VENDOR: &str = "example";

/// How many closed lanes are remembered, for late requests.
const REMEMBERED: usize = 16;

/// A fake service: its lanes by the value of the Authorization header.
#[derive(Debug)]
pub struct Service {
    vendor: String,
    /// What `/openapi.json` answers: [`OPENAPI`] with this vendor's media type.
    openapi: Bytes,
    main: Arc<Lane>,
    lanes: Mutex<Lanes>,
}

#[derive(Debug, Default)]
struct Lanes {
    open: HashMap<Vec<u8>, Arc<Lane>>,
    /// The lanes closed last: requests that a client sent before it stopped belong to no other lane.
    closed: VecDeque<Arc<Lane>>,
    /// How many lanes were opened.
    numbered: u64,
}

impl Service {
    /// A service whose requests go to `main` unless they carry another lane's secret.
    pub fn new(vendor: String, main: Arc<Lane>) -> Self {
        let openapi = OPENAPI.replace(&media_type(DEFAULT_VENDOR), &media_type(&vendor));
        let lanes = Lanes {
            open: HashMap::from([(authorization(&main), Arc::clone(&main))]),
            ..Lanes::default()
        };
        Self {
            vendor,
            openapi: openapi.into(),
            main,
            lanes: Mutex::new(lanes),
        }
    }

    /// The vendor word of the media type.
    pub fn vendor(&self) -> &str {
        &self.vendor
    }

    /// The lane of the server's own secret; requests that match no lane also go to it.
    pub const fn main(&self) -> &Arc<Lane> {
        &self.main
    }

    /// All lanes: the main one first, the others by name.
    pub fn lanes(&self) -> Vec<Arc<Lane>> {
        let mut lanes: Vec<_> = lock(&self.lanes).open.values().map(Arc::clone).collect();
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
        let mut lanes = lock(&self.lanes);
        lanes.numbered += 1;
        let name = name.unwrap_or_else(|| format!("lane-{}", lanes.numbered));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(format!("name: letters, digits, - and _, not {name:?}"));
        }
        if lanes.open.values().any(|open| open.name == name) {
            return Err(format!("name: a lane {name:?} is open already"));
        }
        let random =
            random_secret().map_err(|error| format!("no secret could be made: {error}"))?;
        let secret = format!("mock_{name}_{random}");
        let world = world.unwrap_or_else(|| Arc::new(self.main.world.fork()));
        let lane = Arc::new(Lane::new(name, secret, &self.vendor, world, options));
        lanes.open.insert(authorization(&lane), Arc::clone(&lane));
        Ok(lane)
    }

    /// Closes a lane: from now on its secret is unknown. The main one stays.
    pub fn close(&self, lane: &Arc<Lane>) {
        let mut lanes = lock(&self.lanes);
        if !Arc::ptr_eq(lane, &self.main) && lanes.open.remove(&authorization(lane)).is_some() {
            lanes.closed.truncate(REMEMBERED - 1);
            lanes.closed.push_front(Arc::clone(lane));
        }
    }

    /// Answers one request.
    pub fn answer(&self, request: &Parts) -> Answer {
        let target = Target::read(request.uri.path());
        let openapi = target.route == Route::OpenApi && request.method == Method::GET;
        if openapi && refuse_query(&request.uri).is_ok() {
            self.main.note(Some(request), target, 200, None);
            return Answer::json(200, Bytes::clone(&self.openapi));
        }
        if target.route == Route::File
            && request.method == Method::GET
            && let [.., folder, name] = *request.uri.path().split('/').collect::<Vec<_>>()
        {
            self.main.note(Some(request), target, 200, None);
            let (media_type, content) = page::file(folder, name);
            return Answer {
                content_type: HeaderValue::from_static(media_type),
                ..Answer::json(200, content)
            };
        }
        let mut given = request.headers.get_all(AUTHORIZATION).iter();
        let secret = given.next().filter(|_| given.next().is_none());
        let secret = secret.map(|value| value.as_bytes());
        let lanes = lock(&self.lanes);
        if let Some(lane) = secret
            .and_then(|secret| lanes.open.get(secret))
            .map(Arc::clone)
        {
            drop(lanes);
            return lane.answer(request, target, true);
        }
        let mut closed = lanes.closed.iter();
        let closed = closed.find(|lane| secret.is_some_and(|secret| authorization(lane) == secret));
        match closed {
            Some(lane) => lane.refuse(request, target, &Refusal::unauthorized()),
            None => self.main.answer(request, target, false),
        }
    }
}

/// 128 random bits, as 32 hexadecimal digits.
///
/// # Errors
/// If the system provides no random bytes.
pub fn random_secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn authorization(lane: &Lane) -> Vec<u8> {
    format!("Bearer {}", lane.secret).into_bytes()
}

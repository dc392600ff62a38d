//! The native client: each operation once, for the sync and the async API.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyDict};
use pythonize::pythonize;
use ring::hmac;
use secrecy::ExposeSecret;

use super::arguments::{WalkOptions, from_dict, natural, page_limit};
use super::convert::errors::to_python;
use super::convert::{page, single};
use super::downloads::NativeDownloads;
use super::prepare;
use super::runtime::{run, run_often};
use super::sync::{NativeSyncRun, SyncLimits, SyncOptions};
use super::telemetry::CallObserver;
use super::walk::NativeWalk;
use crate::py::testing::clock::Clock;
use backread_core::api::{List, Natural, Resource};
use backread_core::client::Client;
use backread_core::client::attachments::{Attachment, Limits};
use backread_core::config::Settings;
use backread_core::probe::probe;
use backread_core::walk::Walk;
use backread_core::walk::all_messages::all_messages;
use backread_core::walk::crawl::Users;
use backread_core::walk::shard_users::{ShardUsers, shard_users};

#[pyclass(frozen, module = "backread._backread")]
pub struct NativeClient {
    client: Client,
    /// Whether requests tell the service which trace they belong to.
    traceparent: bool,
}

#[pymethods]
impl NativeClient {
    #[new]
    fn new(py: Python<'_>, arguments: &Bound<'_, PyDict>) -> PyResult<Self> {
        let settings: Settings = from_dict(arguments, "")?;
        let secret = settings.api_secret.as_ref();
        let options = from_dict(arguments, secret.map_or("", ExposeSecret::expose_secret))?;
        prepare(py)?;
        let client = Client::new(settings, options);
        Ok(Self {
            client: client.map_err(|error| to_python(py, &error))?,
            traceparent: false,
        })
    }

    fn with_options(&self, options: &Bound<'_, PyDict>, traceparent: bool) -> PyResult<Self> {
        let secret = self.client.origin().api_secret.expose_secret();
        let options = from_dict(options, secret)?;
        Ok(Self {
            client: self.client.with(|call| call.options = options),
            traceparent,
        })
    }

    /// The text, redacted where it repeats the secret.
    fn redacted(&self, text: &str) -> String {
        self.client.redactor().redact(text)
    }

    fn on_clock(&self, clock: &Clock) -> Self {
        Self {
            client: self.client.with(|call| call.clock = clock.0.clone()),
            traceparent: self.traceparent,
        }
    }

    #[getter]
    fn base_url(&self) -> &str {
        &self.client.origin().base_url
    }

    #[getter]
    fn vendor(&self) -> &str {
        &self.client.origin().vendor
    }

    /// Places that were not valid Unicode in all that was read.
    #[getter]
    fn repaired_text(&self) -> u64 {
        self.client.repaired_text_of_all()
    }

    /// The mark of the secret for a mirror with this key.
    fn secret_mark(&self, key: [u8; 16]) -> String {
        self.client.origin().secret_mark(key)
    }

    /// A user, or a message of that user.
    fn get(
        &self,
        py: Python<'_>,
        user_id: i64,
        message_id: Option<i64>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let user_id = natural(py, "user_id", user_id)?;
        let message_id = message_id.map(|id| natural(py, "message_id", id));
        let message_id = message_id.transpose()?;
        let (name, list, id) = match message_id {
            None => ("users.get", List::Users, user_id),
            Some(message_id) => ("messages.get", List::Messages { user_id }, message_id),
        };
        let (observer, client) = self.observed(py, name)?;
        let read = async move { client.get(list, id, &client.budget()).await };
        let user_id = message_id.map(|_| user_id.signed());
        let convert =
            observer.ending(move |py: Python<'_>, read| single(py, &read, user_id, as_dict));
        run_often(py, blocking, &observer, read, convert)
    }

    /// A page of users, or of a user's messages.
    fn page(
        &self,
        py: Python<'_>,
        user_id: Option<i64>,
        offset: i64,
        limit: i64,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let list = list_of(py, user_id)?;
        let offset = natural(py, "offset", offset)?.get();
        let limit = page_limit(py, "limit", limit)?;
        let (name, user_id) = match list {
            List::Users => ("users.page", None),
            List::Messages { user_id } => ("messages.page", Some(user_id.signed())),
        };
        let (observer, client) = self.observed(py, name)?;
        let read = async move { client.page(list, offset, limit, &client.budget()).await };
        let convert =
            observer.ending(move |py: Python<'_>, read| page(py, &read, user_id, as_dict));
        run(py, blocking, &observer, read, convert)
    }

    /// Walks the list of users, or of a user's messages.
    fn walk(
        &self,
        py: Python<'_>,
        user_id: Option<i64>,
        options: WalkOptions,
    ) -> PyResult<NativeWalk> {
        let list = list_of(py, user_id)?;
        let settings = options.settings(py)?;
        let name = match list {
            List::Users => "users.list",
            List::Messages { .. } => "messages.list",
        };
        let (observer, client) = self.observed(py, name)?;
        let walk = Walk::new(client, list, settings);
        Ok(NativeWalk::new(walk, list.resource(), observer))
    }

    fn walk_all_messages(
        &self,
        py: Python<'_>,
        users: Option<Vec<i64>>,
        options: WalkOptions,
    ) -> PyResult<NativeWalk> {
        let settings = options.settings(py)?;
        let users = match users {
            None => Users::Listed,
            Some(users) => Users::Given(naturals(py, users)?.into_iter().collect()),
        };
        let (observer, client) = self.observed(py, "messages.all")?;
        let walk = all_messages(client, users, settings);
        Ok(NativeWalk::new(walk, Resource::Messages, observer))
    }

    /// The users of a plan, the first of whom was at that offset; without one their messages, where
    /// users that are gone are counted and are not an error.
    fn walk_planned(
        &self,
        py: Python<'_>,
        offset: Option<i64>,
        users: Vec<i64>,
        options: WalkOptions,
    ) -> PyResult<NativeWalk> {
        let settings = options.settings(py)?;
        let ids = naturals(py, users)?;
        let (observer, client) = self.observed(py, "shard.read")?;
        let Some(offset) = offset else {
            let walk = all_messages(client, Users::Planned(ids.into_iter().collect()), settings);
            return Ok(NativeWalk::new(walk, Resource::Messages, observer));
        };
        let offset = natural(py, "offset", offset)?.get();
        let walk = shard_users(client, ShardUsers { offset, ids }, settings);
        Ok(NativeWalk::new(walk, Resource::Users, observer))
    }

    fn sync_run(
        &self,
        py: Python<'_>,
        known: &Bound<'_, PyAny>,
        options: SyncOptions<'_>,
        limits: SyncLimits,
    ) -> PyResult<NativeSyncRun> {
        let (observer, client) = self.observed(py, "mirror.sync")?;
        NativeSyncRun::new(client, observer, known, options, &limits)
    }

    fn ask_rows(
        &self,
        py: Python<'_>,
        candidates: &Bound<'_, PyAny>,
        limits: SyncLimits,
    ) -> PyResult<NativeSyncRun> {
        let (observer, client) = self.observed(py, "mirror.sync")?;
        NativeSyncRun::fetch_rows(client, observer, candidates, &limits)
    }

    /// Starts downloads of links into new files.
    fn downloads(
        &self,
        py: Python<'_>,
        links: Vec<(String, PathBuf)>,
        max_file_bytes: u64,
        max_bytes: Option<u64>,
    ) -> PyResult<NativeDownloads> {
        let (observer, client) = self.observed(py, "mirror.fetch_files")?;
        let links = links.into_iter();
        let attachments = links
            .map(|(link, path)| Attachment { link, path })
            .collect();
        let limits = Limits {
            max_file_bytes,
            max_bytes: max_bytes.unwrap_or(u64::MAX),
        };
        let downloads = client.attachments(attachments, limits);
        let downloads = downloads.map_err(|error| to_python(py, &error))?;
        Ok(NativeDownloads::new(downloads, observer))
    }

    /// What the probe measured, as a dict for `backread.profile`.
    fn probe(
        &self,
        py: Python<'_>,
        max_requests: u64,
        sample: usize,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let (observer, client) = self.observed(py, "probe")?;
        // Boxed because it is large, and passed on to the thread that waits.
        let measure = Box::pin(async move { probe(&client, max_requests, sample).await });
        let convert =
            observer.ending(|py: Python<'_>, profile| Ok(pythonize(py, &profile)?.unbind()));
        run(py, blocking, &observer, measure, convert)
    }

    /// A key derived from the secret: HMAC-SHA256 of ``label``, which differs for each use.
    fn derived_key<'py>(&self, py: Python<'py>, label: &[u8]) -> Bound<'py, PyBytes> {
        let secret = self.client.origin().api_secret.expose_secret();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        PyBytes::new(py, hmac::sign(&key, label).as_ref())
    }

    #[getter]
    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    fn close(&self) {
        self.client.close();
    }
}

impl NativeClient {
    /// Observes an operation of that name, which begins now; with the client for it.
    fn observed(&self, py: Python<'_>, name: &str) -> PyResult<(CallObserver, Client)> {
        let observer = CallObserver::begin(py, name, &self.client, self.traceparent)?;
        let client = observer.client(&self.client);
        Ok((observer, client))
    }
}

fn list_of(py: Python<'_>, user_id: Option<i64>) -> PyResult<List> {
    Ok(match user_id {
        None => List::Users,
        Some(user_id) => List::Messages {
            user_id: natural(py, "user_id", user_id)?,
        },
    })
}

fn naturals(py: Python<'_>, users: Vec<i64>) -> PyResult<Vec<Natural>> {
    let ids = users.into_iter();
    ids.map(|id| natural(py, "a user id in users", id))
        .collect()
}

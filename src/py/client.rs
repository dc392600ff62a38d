//! The native client: each operation once, for the sync and the async API.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyBytes, PyDict};
use ring::hmac;
use secrecy::ExposeSecret;

use super::arguments::{Whole, from_dict, walk_settings};
use super::convert::errors::to_python;
use super::convert::{page, single};
use super::downloads::NativeDownloads;
use super::prepare;
use super::privacy::NativePrivacy;
use super::probe;
use super::runtime::{run, run_often};
use super::sync::{NativeSyncRun, SyncOptions};
use super::telemetry::CallObserver;
use super::walk::NativeWalk;
use crate::py::testing::clock::Clock;
use backread_core::api::{List, Natural, Resource};
use backread_core::client::Client;
use backread_core::client::attachments::{Attachment, Limits};
use backread_core::config::Settings;
use backread_core::walk::all_messages::all_messages;
use backread_core::walk::crawl::Users;
use backread_core::walk::shard_users::{ShardUsers, shard_users};
use backread_core::walk::{Walk, WalkSettings};

#[pyclass(frozen, module = "backread._backread")]
pub struct NativeClient {
    client: Client,
    /// Whether requests tell the service which trace they belong to.
    traceparent: bool,
}

impl From<Client> for NativeClient {
    fn from(client: Client) -> Self {
        Self {
            client,
            traceparent: false,
        }
    }
}

#[pymethods]
impl NativeClient {
    #[new]
    fn new(py: Python<'_>, arguments: &Bound<'_, PyDict>) -> PyResult<Self> {
        let settings: Settings = from_dict(arguments, "")?;
        let secret = settings.api_secret.as_ref();
        let options = from_dict(arguments, secret.map_or("", ExposeSecret::expose_secret))?;
        prepare(py)?;
        Client::new(settings, options)
            .map(Self::from)
            .map_err(|error| to_python(py, &error))
    }

    fn with_options(&self, options: &Bound<'_, PyDict>, traceparent: bool) -> PyResult<Self> {
        let secret = self.client.origin().api_secret.expose_secret();
        let options = from_dict(options, secret)?;
        Ok(Self {
            traceparent,
            ..self.client.with(|call| call.options = options).into()
        })
    }

    /// The text, redacted where it repeats the secret.
    fn redacted(&self, text: &str) -> String {
        self.client.redactor().redact(text)
    }

    fn on_clock(&self, clock: &Clock) -> Self {
        Self {
            traceparent: self.traceparent,
            ..self.client.with(|call| call.clock = clock.0.clone()).into()
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

    fn user(
        &self,
        py: Python<'_>,
        user_id: Whole<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let user_id = user_id.natural(py, "user_id")?;
        let observer = self.observer(py, "users.get")?;
        let client = observer.client(&self.client);
        let read = async move { client.user(user_id).await };
        let convert = observer.ending(move |py: Python<'_>, read| single(py, &read, None, as_dict));
        run_often(py, blocking, &observer, read, convert)
    }

    fn message(
        &self,
        py: Python<'_>,
        user_id: Whole<'_>,
        message_id: Whole<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let user_id = user_id.natural(py, "user_id")?;
        let message_id = message_id.natural(py, "message_id")?;
        let observer = self.observer(py, "messages.get")?;
        let client = observer.client(&self.client);
        let read = async move { client.message(user_id, message_id).await };
        let user_id = Some(user_id.signed());
        let convert =
            observer.ending(move |py: Python<'_>, read| single(py, &read, user_id, as_dict));
        run_often(py, blocking, &observer, read, convert)
    }

    fn users_page(
        &self,
        py: Python<'_>,
        offset: Whole<'_>,
        limit: Whole<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        self.page(py, List::Users, offset, limit, as_dict, blocking)
    }

    fn messages_page(
        &self,
        py: Python<'_>,
        user_id: Whole<'_>,
        offset: Whole<'_>,
        limit: Whole<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let user_id = user_id.natural(py, "user_id")?;
        let list = List::Messages { user_id };
        self.page(py, list, offset, limit, as_dict, blocking)
    }

    #[pyo3(signature = (strict, page_size, max_items, ends_unread=false))]
    fn walk_users(
        &self,
        py: Python<'_>,
        strict: bool,
        page_size: Whole<'_>,
        max_items: Option<Whole<'_>>,
        ends_unread: bool,
    ) -> PyResult<NativeWalk> {
        let settings = WalkSettings {
            ends_unread,
            ..walk_settings(py, strict, page_size, max_items)?
        };
        let observer = self.observer(py, "users.list")?;
        let walk = Walk::new(observer.client(&self.client), List::Users, settings);
        Ok(NativeWalk::new(walk, Resource::Users, observer))
    }

    fn walk_messages(
        &self,
        py: Python<'_>,
        user_id: Whole<'_>,
        strict: bool,
        page_size: Whole<'_>,
        max_items: Option<Whole<'_>>,
    ) -> PyResult<NativeWalk> {
        let user_id = user_id.natural(py, "user_id")?;
        let settings = walk_settings(py, strict, page_size, max_items)?;
        let observer = self.observer(py, "messages.list")?;
        let list = List::Messages { user_id };
        let walk = Walk::new(observer.client(&self.client), list, settings);
        Ok(NativeWalk::new(walk, Resource::Messages, observer))
    }

    fn walk_all_messages(
        &self,
        py: Python<'_>,
        users: Option<Vec<Bound<'_, PyAny>>>,
        strict: bool,
        page_size: Whole<'_>,
        max_items: Option<Whole<'_>>,
    ) -> PyResult<NativeWalk> {
        let settings = walk_settings(py, strict, page_size, max_items)?;
        let users = match users {
            None => Users::Listed,
            Some(users) => Users::Given(naturals(py, users)?.into_iter().collect()),
        };
        let observer = self.observer(py, "messages.all")?;
        let walk = all_messages(observer.client(&self.client), users, settings);
        Ok(NativeWalk::new(walk, Resource::Messages, observer))
    }

    /// The messages of a plan's users; users that are gone are counted and are not an error.
    fn walk_planned_messages(
        &self,
        py: Python<'_>,
        users: Vec<Bound<'_, PyAny>>,
        strict: bool,
        page_size: Whole<'_>,
    ) -> PyResult<NativeWalk> {
        let settings = walk_settings(py, strict, page_size, None)?;
        let users = Users::Planned(naturals(py, users)?.into_iter().collect());
        let observer = self.observer(py, "shard.read")?;
        let walk = all_messages(observer.client(&self.client), users, settings);
        Ok(NativeWalk::new(walk, Resource::Messages, observer))
    }

    /// The users of a plan, the first of whom was at that offset.
    fn walk_planned_users(
        &self,
        py: Python<'_>,
        offset: Whole<'_>,
        users: Vec<Bound<'_, PyAny>>,
        strict: bool,
        page_size: Whole<'_>,
    ) -> PyResult<NativeWalk> {
        let settings = walk_settings(py, strict, page_size, None)?;
        let planned = ShardUsers {
            offset: offset.natural(py, "offset")?.get(),
            ids: naturals(py, users)?,
        };
        let observer = self.observer(py, "shard.read")?;
        let walk = shard_users(observer.client(&self.client), planned, settings);
        Ok(NativeWalk::new(walk, Resource::Users, observer))
    }

    fn sync_run(
        &self,
        py: Python<'_>,
        known: &Bound<'_, PyAny>,
        options: SyncOptions<'_>,
    ) -> PyResult<NativeSyncRun> {
        let observer = self.observer(py, "mirror.sync")?;
        let client = observer.client(&self.client);
        NativeSyncRun::new(client, observer, known, options)
    }

    fn ask_rows(
        &self,
        py: Python<'_>,
        candidates: &Bound<'_, PyAny>,
        max_requests: Option<u64>,
        max_seconds: Option<f64>,
        privacy: Option<Py<NativePrivacy>>,
    ) -> PyResult<NativeSyncRun> {
        let observer = self.observer(py, "mirror.sync")?;
        let client = observer.client(&self.client);
        let limits = (max_requests, max_seconds);
        NativeSyncRun::fetch_rows(client, observer, candidates, limits, privacy)
    }

    /// Starts downloads of links into new files.
    fn downloads(
        &self,
        py: Python<'_>,
        links: Vec<(String, PathBuf)>,
        max_file_bytes: u64,
        max_bytes: Option<u64>,
    ) -> PyResult<NativeDownloads> {
        let observer = self.observer(py, "mirror.fetch_files")?;
        let links = links.into_iter();
        let attachments = links
            .map(|(link, path)| Attachment { link, path })
            .collect();
        let limits = Limits {
            max_file_bytes,
            max_bytes: max_bytes.unwrap_or(u64::MAX),
        };
        let client = observer.client(&self.client);
        let downloads = client.attachments(attachments, limits);
        let downloads = downloads.map_err(|error| to_python(py, &error))?;
        Ok(NativeDownloads::new(downloads, observer))
    }

    fn probe(
        &self,
        py: Python<'_>,
        max_requests: u64,
        sample: usize,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let observer = self.observer(py, "probe")?;
        let client = observer.client(&self.client);
        probe::profile(py, client, &observer, (max_requests, sample), blocking)
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
    /// Observes an operation of that name, which begins now.
    fn observer(&self, py: Python<'_>, name: &str) -> PyResult<CallObserver> {
        CallObserver::begin(py, name, &self.client, self.traceparent)
    }

    fn page(
        &self,
        py: Python<'_>,
        list: List,
        offset: Whole<'_>,
        limit: Whole<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let offset = offset.natural(py, "offset")?.get();
        let limit = limit.limit(py, "limit")?;
        let (name, user_id) = match list {
            List::Users => ("users.page", None),
            List::Messages { user_id } => ("messages.page", Some(user_id.signed())),
        };
        let observer = self.observer(py, name)?;
        let client = observer.client(&self.client);
        let read = async move { client.page(list, offset, limit, &client.budget()).await };
        let convert =
            observer.ending(move |py: Python<'_>, read| page(py, &read, user_id, as_dict));
        run(py, blocking, &observer, read, convert)
    }
}

fn naturals(py: Python<'_>, users: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Natural>> {
    users
        .into_iter()
        .map(|user_id| Whole(user_id).natural(py, "a user id in users"))
        .collect()
}

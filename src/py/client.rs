//! The native client: each operation stands here once, for both faces.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyAny;
use secrecy::SecretString;

use super::convert::{ReadPage, Single, dict, envelope};
use super::errors::to_python;
use super::runtime::run;
use super::sync::NativeSyncRun;
use super::walk::NativeWalk;
use crate::core::client::Client;
use crate::core::config::{self, Options, Settings};
use crate::core::crawl::{Users, all_messages};
use crate::core::error::Error;
use crate::core::interface::{Limit, List, Natural, Resource};
use crate::core::walk::{Walk, WalkSettings};

#[pyclass(frozen, module = "backread._backread")]
pub struct NativeClient {
    client: Client,
}

#[allow(clippy::too_many_arguments)]
#[pymethods]
impl NativeClient {
    #[new]
    #[pyo3(signature = (*, base_url, api_secret, vendor, timeout, deadline, max_retries,
        max_concurrency, rate_limit, on_rate_limit, max_response_bytes, proxy, ca_bundle,
        allow_http, user_agent))]
    fn new(
        py: Python<'_>,
        base_url: Option<String>,
        api_secret: Option<String>,
        vendor: Option<String>,
        timeout: Option<f64>,
        deadline: Option<f64>,
        max_retries: i64,
        max_concurrency: i64,
        rate_limit: Option<f64>,
        on_rate_limit: &str,
        max_response_bytes: i64,
        proxy: Option<String>,
        ca_bundle: Option<PathBuf>,
        allow_http: bool,
        user_agent: Option<String>,
    ) -> PyResult<Self> {
        let settings = Settings {
            base_url,
            api_secret: api_secret.map(SecretString::from),
            vendor,
            proxy,
            ca_bundle,
            allow_http,
            user_agent,
        };
        let options = options(
            timeout,
            deadline,
            max_retries,
            max_concurrency,
            rate_limit,
            on_rate_limit,
            max_response_bytes,
        );
        options
            .and_then(|options| Client::new(settings, options))
            .map(|client| Self { client })
            .map_err(|error| to_python(py, &error))
    }

    #[pyo3(signature = (*, timeout, deadline, max_retries, max_concurrency, rate_limit,
        on_rate_limit, max_response_bytes))]
    fn with_options(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        deadline: Option<f64>,
        max_retries: i64,
        max_concurrency: i64,
        rate_limit: Option<f64>,
        on_rate_limit: &str,
        max_response_bytes: i64,
    ) -> PyResult<Self> {
        let options = options(
            timeout,
            deadline,
            max_retries,
            max_concurrency,
            rate_limit,
            on_rate_limit,
            max_response_bytes,
        );
        options
            .and_then(|options| self.client.with_options(options))
            .map(|client| Self { client })
            .map_err(|error| to_python(py, &error))
    }

    #[getter]
    fn base_url(&self) -> &str {
        &self.client.origin().base_url
    }

    #[getter]
    fn vendor(&self) -> &str {
        &self.client.origin().vendor
    }

    fn user(
        &self,
        py: Python<'_>,
        user_id: Id<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let (client, user_id) = (self.client.clone(), user_id.natural(py, "user_id")?);
        let read = async move {
            Ok(match as_dict {
                true => Single::Dict(client.user(user_id).await?),
                false => Single::User(client.user(user_id).await?),
            })
        };
        run(py, blocking, read, |py, single| single.into_python(py))
    }

    fn message(
        &self,
        py: Python<'_>,
        user_id: Id<'_>,
        message_id: Id<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let client = self.client.clone();
        let user_id = user_id.natural(py, "user_id")?;
        let message_id = message_id.natural(py, "message_id")?;
        let read = async move {
            Ok(match as_dict {
                true => Single::Dict(client.message(user_id, message_id).await?),
                false => {
                    let message = client.message(user_id, message_id).await?;
                    Single::Message(signed(user_id), message)
                }
            })
        };
        run(py, blocking, read, |py, single| single.into_python(py))
    }

    fn users_page(
        &self,
        py: Python<'_>,
        offset: Id<'_>,
        limit: Id<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        self.page(py, List::Users, offset, limit, as_dict, blocking)
    }

    fn messages_page(
        &self,
        py: Python<'_>,
        user_id: Id<'_>,
        offset: Id<'_>,
        limit: Id<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let user_id = user_id.natural(py, "user_id")?;
        let list = List::Messages { user_id };
        self.page(py, list, offset, limit, as_dict, blocking)
    }

    fn walk_users(
        &self,
        py: Python<'_>,
        strict: bool,
        page_size: Id<'_>,
        max_items: Option<Id<'_>>,
    ) -> PyResult<NativeWalk> {
        let settings = walk_settings(py, strict, page_size, max_items)?;
        let walk = Walk::new(self.client.clone(), List::Users, settings);
        Ok(NativeWalk::new(walk, Resource::Users))
    }

    fn walk_messages(
        &self,
        py: Python<'_>,
        user_id: Id<'_>,
        strict: bool,
        page_size: Id<'_>,
        max_items: Option<Id<'_>>,
    ) -> PyResult<NativeWalk> {
        let user_id = user_id.natural(py, "user_id")?;
        let settings = walk_settings(py, strict, page_size, max_items)?;
        let walk = Walk::new(self.client.clone(), List::Messages { user_id }, settings);
        Ok(NativeWalk::new(walk, Resource::Messages))
    }

    fn walk_all_messages(
        &self,
        py: Python<'_>,
        users: Option<Vec<Bound<'_, PyAny>>>,
        strict: bool,
        page_size: Id<'_>,
        max_items: Option<Id<'_>>,
    ) -> PyResult<NativeWalk> {
        let settings = walk_settings(py, strict, page_size, max_items)?;
        let users = match users {
            None => Users::Listed,
            Some(users) => Users::Given(
                users
                    .into_iter()
                    .map(|user_id| Id(user_id).natural(py, "a user id in users"))
                    .collect::<PyResult<_>>()?,
            ),
        };
        let walk = all_messages(self.client.clone(), users, settings);
        Ok(NativeWalk::new(walk, Resource::Messages))
    }

    fn sync_run(&self, done: Vec<i64>) -> NativeSyncRun {
        NativeSyncRun::new(self.client.clone(), done)
    }

    fn close(&self) {
        self.client.close();
    }
}

impl NativeClient {
    fn page(
        &self,
        py: Python<'_>,
        list: List,
        offset: Id<'_>,
        limit: Id<'_>,
        as_dict: bool,
        blocking: bool,
    ) -> PyResult<Py<PyAny>> {
        let client = self.client.clone();
        let offset = offset.natural(py, "offset")?.get();
        let limit = limit.limit(py, "limit")?;
        let read = async move {
            let page = client.page(list, offset, limit, &client.budget()).await?;
            Ok(match as_dict {
                true => Response::Dict(envelope(&page)?),
                false => {
                    let user_id = match list {
                        List::Users => None,
                        List::Messages { user_id } => Some(signed(user_id)),
                    };
                    Response::Page(ReadPage::from_response(&page, list.resource(), user_id)?)
                }
            })
        };
        run(py, blocking, read, |py, response| match response {
            Response::Page(page) => page.into_python(py),
            Response::Dict(object) => dict(py, &object).map(Bound::unbind),
        })
    }
}

enum Response {
    Page(ReadPage),
    Dict(crate::core::model::Extra),
}

/// A whole number from Python; one too large for any service is out of range, not an overflow.
struct Id<'py>(Bound<'py, PyAny>);

impl<'a, 'py> FromPyObject<'a, 'py> for Id<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.to_owned()))
    }
}

impl Id<'_> {
    fn integer(&self, py: Python<'_>, name: &str) -> PyResult<i64> {
        use pyo3::exceptions::{PyOverflowError, PyTypeError};
        use pyo3::types::{PyBool, PyInt};

        if !self.0.is_instance_of::<PyInt>() || self.0.is_instance_of::<PyBool>() {
            let given = self.0.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "{name} must be an int, not {given}; nothing was sent"
            )));
        }
        self.0.extract().map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(py) {
                let message = format!("{name} must fit 64 bits; nothing was sent");
                return to_python(py, &Error::invalid_argument(message));
            }
            error
        })
    }

    fn natural(&self, py: Python<'_>, name: &str) -> PyResult<Natural> {
        Natural::new(name, self.integer(py, name)?).map_err(|error| to_python(py, &error))
    }

    fn limit(&self, py: Python<'_>, name: &str) -> PyResult<Limit> {
        Limit::new(name, self.integer(py, name)?).map_err(|error| to_python(py, &error))
    }
}

fn signed(id: Natural) -> i64 {
    id.get().try_into().unwrap_or(i64::MAX)
}

fn walk_settings(
    py: Python<'_>,
    strict: bool,
    page_size: Id<'_>,
    max_items: Option<Id<'_>>,
) -> PyResult<WalkSettings> {
    Ok(WalkSettings {
        strict,
        page_size: page_size.limit(py, "page_size")?,
        max_items: match max_items {
            None => None,
            Some(most) => Some(most.natural(py, "max_items")?.get()),
        },
    })
}

fn options(
    timeout: Option<f64>,
    deadline: Option<f64>,
    max_retries: i64,
    max_concurrency: i64,
    rate_limit: Option<f64>,
    on_rate_limit: &str,
    max_response_bytes: i64,
) -> Result<Options, Error> {
    let length = |name: &str, seconds: Option<f64>| -> Result<Option<Duration>, Error> {
        seconds
            .map(|seconds| config::duration(name, seconds))
            .transpose()
    };
    Ok(Options {
        timeout: length("timeout", timeout)?,
        deadline: length("deadline", deadline)?,
        max_retries: config::count("max_retries", max_retries)?,
        max_concurrency: config::count("max_concurrency", max_concurrency)?,
        rate_limit,
        on_rate_limit: config::on_rate_limit(on_rate_limit)?,
        max_response_bytes: config::count("max_response_bytes", max_response_bytes)?,
    })
}

//! The handler of a connection's requests.

use std::sync::Arc;

use super::admin::Admin;
use super::service::Service;
use crate::http::exchange::{Answer, Call};

/// Answers requests, and provides the handler of admin requests.
pub trait Responder: Send + Sync + 'static {
    /// Answers one request.
    fn answer(&self, call: Call<'_>) -> Answer;

    /// Notified of a request that was not HTTP, or too large, and was already refused with this status.
    fn malformed(&self, status: u16);

    /// The handler of requests below `/__mock`, if there is one.
    fn admin(&self) -> Option<&Arc<Admin>> {
        None
    }
}

impl Responder for Service {
    fn answer(&self, call: Call<'_>) -> Answer {
        self.answer(call)
    }

    fn malformed(&self, status: u16) {
        self.malformed(status);
    }
}

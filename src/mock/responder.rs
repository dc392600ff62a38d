//! Who answers the requests of a connection.

use std::sync::Arc;

use super::admin::Admin;
use super::service::Service;
use crate::mock::http::exchange::{Answer, Call};

/// Answers each request, and says who answers those of the administration.
pub trait Responder: Send + Sync + 'static {
    /// Answers one request.
    fn answer(&self, call: Call<'_>) -> Answer;

    /// Hears of a request that was no HTTP; it was refused already.
    fn malformed(&self);

    /// Who answers what is asked below `/__mock`, if somebody does.
    fn admin(&self) -> Option<&Arc<Admin>> {
        None
    }
}

impl Responder for Service {
    fn answer(&self, call: Call<'_>) -> Answer {
        self.answer(call)
    }

    fn malformed(&self) {
        self.malformed();
    }
}

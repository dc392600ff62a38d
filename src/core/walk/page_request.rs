//! The requests that were sent to read one page, and all their attempts.

use std::time::Duration;

use crate::core::api::{Limit, List};
use crate::core::budget::Budget;
use crate::core::client::{Client, Read};
use crate::core::decode::page::Page;
use crate::core::error::{Attempt, Error};
use crate::core::retry::{OnRateLimit, retry_after};

/// The first wait after a 429 that states none.
const FIRST_WAIT: Duration = Duration::from_millis(500);

pub struct PageRequest<'a> {
    client: &'a Client,
    pub list: List,
    budget: &'a Budget,
    pub attempts: Vec<Attempt>,
}

impl<'a> PageRequest<'a> {
    pub fn new(client: &'a Client, list: List, budget: &'a Budget) -> Self {
        Self {
            client,
            list,
            budget,
            attempts: Vec::new(),
        }
    }

    /// Sends one, and retries it as usual.
    pub async fn send(&mut self, offset: u64, limit: Limit) -> Result<Page, Error> {
        let response = self.client.page(self.list, offset, limit, self.budget);
        let response = response.await;
        self.note(response)
    }

    /// Sends one without retries, except after a 429, which says nothing about the page.
    pub async fn send_once(&mut self, offset: u64, limit: Limit) -> Result<Page, Error> {
        let once = self.client.without_retries();
        let options = self.client.options();
        let retries = match options.on_rate_limit {
            OnRateLimit::Wait => options.max_retries,
            OnRateLimit::Raise => 0,
        };
        let mut unstated = FIRST_WAIT;
        for _ in 0..retries {
            let response = once.page(self.list, offset, limit, self.budget).await;
            match self.note(response) {
                Err(error) if error.status() == Some(429) => {
                    // RFC 9110 section 10.2.3: how long to wait before the next request.
                    self.wait(retry_after(&error.kind).unwrap_or(unstated))
                        .await;
                    unstated = unstated.saturating_mul(2);
                }
                response => return response,
            }
        }
        let response = once.page(self.list, offset, limit, self.budget).await;
        self.note(response)
    }

    /// Waits, but not past the deadline.
    async fn wait(&self, wait: Duration) {
        let clock = self.client.clock();
        let remaining = self.budget.remaining(clock).unwrap_or(wait);
        clock.sleep(wait.min(remaining)).await;
    }

    /// Takes the response to one that was sent.
    pub fn note(&mut self, response: Result<Read<Page>, Error>) -> Result<Page, Error> {
        match response {
            Ok(mut read) => {
                self.attempts.append(&mut read.sent.attempts);
                Ok(read.value)
            }
            Err(error) => {
                self.attempts.extend(error.attempts.iter().cloned());
                Err(error)
            }
        }
    }
}

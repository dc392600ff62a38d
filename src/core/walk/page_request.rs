//! The requests that were sent to read one page, and all their attempts.

use crate::api::{Limit, List};
use crate::budget::Budget;
use crate::client::{Client, Read};
use crate::decode::page::Page;
use crate::error::{Attempt, Error};

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
        let once = self.client.with(|call| call.refusals_alone = true);
        let response = once.page(self.list, offset, limit, self.budget).await;
        self.note(response)
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

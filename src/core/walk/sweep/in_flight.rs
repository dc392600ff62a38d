//! The requests in flight, and pages whose turn has not come.

use std::collections::{HashMap, VecDeque};

use super::page_arrival::PageArrival;
use super::request::{Fetch, Request};

/// The requests without a response, and the pages whose turn has not come.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    sent: u64,
    taken: u64,
    /// The one request in flight when the walk is not sweeping.
    single: Option<u64>,
    /// Requests of the sweep whose pages were not joined yet, in the list's order.
    ahead: VecDeque<u64>,
    arrived: HashMap<u64, PageArrival>,
}

impl InFlight {
    /// A request that nothing else may accompany until its response is taken.
    pub fn send_single(&mut self, fetch: Fetch) -> Request {
        let request = self.number(fetch);
        self.single = Some(request.number);
        request
    }

    /// A request for the page that follows those already in flight.
    pub fn send_ahead(&mut self, fetch: Fetch) -> Request {
        let request = self.number(fetch);
        self.ahead.push_back(request.number);
        request
    }

    fn number(&mut self, fetch: Fetch) -> Request {
        self.sent += 1;
        Request {
            number: self.sent,
            fetch,
            taken_before: self.taken,
        }
    }

    pub fn awaits_single(&self) -> bool {
        self.single.is_some()
    }

    pub fn is_single(&self, request: &Request) -> bool {
        self.single == Some(request.number)
    }

    /// Pages of the sweep that were requested and not joined yet.
    pub fn pages_ahead(&self) -> u64 {
        self.ahead.len() as u64
    }

    /// The number of responses taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Counts a response; whether it answers the single request.
    pub fn take(&mut self, request: &Request) -> bool {
        self.taken += 1;
        let single = self.is_single(request);
        if single {
            self.single = None;
        }
        single
    }

    /// Stores a page until those before it have come, if it is needed.
    pub fn store(&mut self, number: u64, page: PageArrival) {
        if self.ahead.contains(&number) {
            self.arrived.insert(number, page);
        }
    }

    /// The next page in the list's order, if it has arrived.
    pub fn next_in_order(&mut self) -> Option<PageArrival> {
        let page = self.arrived.remove(self.ahead.front()?)?;
        self.ahead.pop_front();
        Some(page)
    }

    /// Drops the pages that are not needed any more.
    pub fn clear(&mut self) {
        self.arrived.clear();
        self.ahead.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Limit;
    use crate::walk::sweep::testing::page;

    fn fetch(offset: u64) -> Fetch {
        Fetch::Page {
            offset,
            limit: Limit::LARGEST,
        }
    }

    #[test]
    fn pages_come_out_in_the_order_in_which_they_were_requested() {
        let mut in_flight = InFlight::default();
        let requests = [0, 99, 198].map(|offset| in_flight.send_ahead(fetch(offset)));
        for (request, offset) in requests.iter().zip([0, 99, 198]).rev() {
            assert!(in_flight.next_in_order().is_none());
            assert!(!in_flight.take(request));
            in_flight.store(request.number, page(offset, &[], 0));
        }
        let order = std::iter::from_fn(|| in_flight.next_in_order());
        assert_eq!(
            order.map(|page| page.offset).collect::<Vec<_>>(),
            [0, 99, 198]
        );
        assert_eq!(in_flight.pages_ahead(), 0);
    }

    #[test]
    fn a_single_request_is_awaited_until_its_response_is_taken() {
        let mut in_flight = InFlight::default();
        let request = in_flight.send_single(Fetch::Row { id: 1 });
        assert!(in_flight.awaits_single() && in_flight.is_single(&request));
        assert!(in_flight.take(&request));
        assert!(!in_flight.awaits_single());
        // Later requests know how many responses came before them.
        assert_eq!(in_flight.send_ahead(fetch(0)).taken_before, 1);
    }
}

//! Rows on their way to the reader: each once, and no more than `max_items`.

use std::collections::VecDeque;

use roaring::RoaringTreemap;

use super::checkpoint::Checkpoint;
use super::page_arrival::PageArrival;
use super::unreadable::Unreadables;
use crate::api::List;
use crate::client::Sent;
use crate::decode::page::Row;
use crate::report::WalkReport;
use crate::walk::WalkedPage;

/// What was delivered, and what waits for the reader.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// The user whose messages these are; `None` for users.
    user_id: Option<i64>,
    max_items: Option<u64>,
    delivered: u64,
    known: RoaringTreemap,
    unnamed_rows: u64,
    unreadable: Unreadables,
    ready: VecDeque<WalkedPage>,
}

/// The rows of a page that were delivered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    /// Rows that were not known.
    pub fresh: u64,
    /// Whether any row has no id.
    pub unnamed: bool,
}

impl Delivery {
    pub fn new(list: List, max_items: Option<u64>) -> Self {
        Self {
            user_id: match list {
                List::Users => None,
                List::Messages { user_id } => user_id.get().try_into().ok(),
            },
            max_items,
            ..Self::default()
        }
    }

    /// The ids of all rows delivered so far.
    pub fn known(&self) -> &RoaringTreemap {
        &self.known
    }

    pub fn knows_all_of(&self, page: &PageArrival) -> bool {
        let known = |id: i64| self.known.contains(id.cast_unsigned());
        page.rows.iter().all(|row| row.id.is_some_and(known))
    }

    /// Whether rows came that have no id, so that they may have come before.
    pub fn has_unnamed_rows(&self) -> bool {
        self.unnamed_rows > 0
    }

    pub fn unreadable(&self) -> &Unreadables {
        &self.unreadable
    }

    /// How many more rows the caller wants; `None` for all.
    pub fn room(&self) -> Option<u64> {
        self.max_items
            .map(|most| most.saturating_sub(self.delivered))
    }

    /// Queues a page for the reader without rows that were delivered before.
    pub fn deliver(&mut self, page: PageArrival, report: &mut WalkReport) -> Delivered {
        let received = page.was_received();
        let mut rows = page.rows;
        let mut fresh = 0;
        let mut unnamed = false;
        rows.retain(|row| {
            match row.id {
                None if !received => {}
                None => {
                    self.unnamed_rows += 1;
                    unnamed = true;
                }
                Some(id) if is_new(&mut self.known, id) => fresh += 1,
                Some(_) => {
                    report.repeats += 1;
                    // An earlier walk, which this one resumes, may have ended before it noted it.
                    if row.unreadable.is_some() && !self.unreadable.any() {
                        report.unreadable_rows += u64::from(self.unreadable.take(page.offset, row));
                    }
                    return false;
                }
            }
            report.unreadable_rows += u64::from(self.unreadable.take(page.offset, row));
            report.odd_values += row.odd_values;
            received
        });
        report.distinct += fresh;
        if let Some(sent) = page.sent {
            let said = [page.said_limit, page.said_offset, page.said_total];
            self.queue(said, rows, sent, report);
        }
        Delivered { fresh, unnamed }
    }

    /// Queues a row that was found by its id.
    pub fn deliver_found(&mut self, row: Row, sent: Sent, report: &mut WalkReport) {
        is_new(&mut self.known, row.id.unwrap_or_default());
        report.rows += 1;
        report.distinct += 1;
        report.evidence.rows_found_by_id += 1;
        self.queue([None; 3], vec![row], sent, report);
    }

    fn queue(
        &mut self,
        [limit, offset, total]: [Option<i64>; 3],
        mut rows: Vec<Row>,
        sent: Sent,
        report: &WalkReport,
    ) {
        if let Some(room) = self.room() {
            rows.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        }
        self.delivered += rows.len() as u64;
        self.ready.push_back(WalkedPage {
            limit,
            offset,
            total,
            rows,
            user_id: self.user_id,
            counts: report.counts(),
            sent,
            checkpoint: None,
            held: None,
        });
    }

    /// The next page to read.
    pub fn next_page(&mut self) -> Option<WalkedPage> {
        self.ready.pop_front()
    }

    /// The page queued last.
    pub fn last_page(&mut self) -> Option<&mut WalkedPage> {
        self.ready.back_mut()
    }

    pub fn save(&self, checkpoint: &mut Checkpoint) {
        checkpoint.unnamed_rows = self.unnamed_rows;
        checkpoint.unreadable = self.unreadable.clone();
    }

    pub fn resume(&mut self, checkpoint: &Checkpoint, known: RoaringTreemap) {
        self.known = known;
        self.unnamed_rows = checkpoint.unnamed_rows;
        self.unreadable = checkpoint.unreadable.clone();
    }
}

/// Adds an id; returns whether it was not known. Most ids are larger than all before, for which
/// `try_push` takes 110 instructions, and `insert` takes 190.
fn is_new(known: &mut RoaringTreemap, id: i64) -> bool {
    let id = id.cast_unsigned();
    known.try_push(id).is_ok() || known.insert(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::Timestamp;
    use crate::walk::sweep::testing::{arrival, arrival_of, page};

    fn report() -> WalkReport {
        WalkReport::start(Timestamp::now())
    }

    fn ids(delivery: &mut Delivery) -> Vec<Vec<i64>> {
        let pages = std::iter::from_fn(|| delivery.next_page());
        let ids = |page: WalkedPage| page.rows.iter().filter_map(|row| row.id).collect();
        pages.map(ids).collect()
    }

    #[test]
    fn each_row_is_delivered_once() {
        let (mut delivery, mut report) = (Delivery::new(List::Users, None), report());
        delivery.deliver(page(0, &[1, 2, 3], 9), &mut report);
        assert!(delivery.knows_all_of(&page(1, &[2, 3], 9)));
        assert!(!delivery.knows_all_of(&page(1, &[2, 4], 9)));
        let second = delivery.deliver(page(1, &[2, 3, 4, 4], 9), &mut report);
        let unnamed = false;
        assert_eq!(second, Delivered { fresh: 1, unnamed });
        assert_eq!((report.distinct, report.repeats), (4, 3));
        assert_eq!(ids(&mut delivery), [vec![1, 2, 3], vec![4]]);
    }

    #[test]
    fn no_more_rows_than_wanted_are_delivered() {
        let (mut delivery, mut report) = (Delivery::new(List::Users, Some(4)), report());
        delivery.deliver(page(0, &[1, 2, 3], 9), &mut report);
        assert_eq!(delivery.room(), Some(1));
        delivery.deliver(page(3, &[4, 5], 9), &mut report);
        assert_eq!(delivery.room(), Some(0));
        assert_eq!(ids(&mut delivery), [vec![1, 2, 3], vec![4]]);
        assert_eq!(Delivery::new(List::Users, None).room(), None);
    }

    #[test]
    fn rows_without_an_id_are_all_delivered() {
        let (mut delivery, mut report) = (Delivery::new(List::Users, None), report());
        let body = serde_json::json!({"total": 2, "users": [{"id": "a"}, {"id": "a"}]});
        for _ in 0..2 {
            assert!(delivery.deliver(arrival(0, &body), &mut report).unnamed);
        }
        assert!(delivery.has_unnamed_rows());
        assert_eq!(delivery.next_page().map(|page| page.rows.len()), Some(2));
        assert_eq!(delivery.next_page().map(|page| page.rows.len()), Some(2));
        assert_eq!(report.distinct, 0);
    }

    #[test]
    fn a_row_that_an_earlier_walk_delivered_is_still_one_that_cannot_be_read() {
        let mut delivery = Delivery::new(List::Users, None);
        delivery.resume(&Checkpoint::default(), RoaringTreemap::from_iter([1, 2]));
        let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
        let text = format!(r#"{{"total":2,"users":[{{"id":1}},{{"id":2,"name":{deep}}}]}}"#);
        let mut report = report();
        for _ in 0..2 {
            let page = arrival_of(0, text.clone());
            assert_eq!(delivery.deliver(page, &mut report).fresh, 0);
        }
        assert_eq!(report.unreadable_rows, 1);
        assert!(delivery.unreadable().in_words().contains("id 2"));
    }

    #[test]
    fn a_page_carries_the_counts_up_to_its_own_rows() {
        let (mut delivery, mut report) = (Delivery::new(List::Users, None), report());
        delivery.deliver(page(0, &[1, 2], 3), &mut report);
        delivery.deliver(page(2, &[3], 3), &mut report);
        let pages = std::iter::from_fn(|| delivery.next_page());
        let distinct: Vec<u64> = pages.map(|page| page.counts.distinct).collect();
        assert_eq!(distinct, [2, 3]);
    }
}

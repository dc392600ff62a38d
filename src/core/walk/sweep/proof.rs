//! What a walk has proved, and in words why it is not more.

use super::{Stage, Sweep};
use crate::api::List;
use crate::error::Error;
use crate::report::Certificate;
use crate::walk::OLD_PAGES;

/// Reasons for doubt, in words.
#[derive(Default)]
struct Doubts(Vec<String>);

impl Doubts {
    // The words are only made for doubts that hold: most lists have none.
    fn add_if<T: Into<String>>(&mut self, holds: bool, words: impl FnOnce() -> T) {
        if holds {
            self.0.push(words().into());
        }
    }
}

impl Sweep {
    /// One response held the whole list.
    pub(super) fn is_snapshot(&self) -> bool {
        self.counting.is_in_one_response()
            && self.paging.at_end()
            && self.totals.constant()
            && !self.linking.strayed()
            && !self.delivery.unreadable().any()
            && self.report.evidence.inversions == 0
    }

    /// Messages are only added, and a response later than all known rows counts as many.
    pub(super) fn is_counted(&self) -> bool {
        let totals = &self.totals;
        let known = self.report.distinct;
        let of_messages = matches!(self.list, List::Messages { .. });
        let honest = !totals.fell && !totals.too_small && !totals.missing;
        of_messages
            && totals.last == Some(known)
            && honest
            && !self.linking.strayed()
            && !self.delivery.unreadable().any()
            && !self.total_disagrees()
            && !self.look_ups.are_of_any_user()
            // No total counted the rows that were found after all pages.
            && (totals.constant() && self.report.evidence.rows_found_by_id == 0
                || self.counting.is_late(known))
    }

    /// Whether the last page ends the list, whatever the totals of other pages say.
    fn ends_linked(&self) -> bool {
        self.end_is_proved() || self.list_end.is_at_total()
    }

    /// Whether the end is proved, but the total disagrees.
    pub(super) fn total_disagrees(&self) -> bool {
        self.list_end.has_other_total() && self.end_is_proved()
    }

    /// Where it ended, if more rows are promised there, or if nothing says that the list ends there.
    pub fn cut_off_at(&self) -> Option<u64> {
        let end = self.paging.end();
        let promised = self.totals.last.is_none_or(|total| total > end);
        let cut_off = promised && !self.cut && !self.paging.at_end() && !self.ends_linked();
        cut_off.then_some(end)
    }

    /// Whether rows were read, so that the list can end after them.
    pub fn has_rows(&self) -> bool {
        self.paging.end() > 0
    }

    /// The list ends before a page that can never be read.
    pub fn end_before(&mut self, error: &Error) {
        let reason = format!(
            "{}; {}: {}",
            self.shortfall(),
            self.refuses_the_rest(),
            error.without_content()
        );
        self.report.doubt(reason);
    }

    fn refuses_the_rest(&self) -> String {
        format!("the service refuses offsets above {}", self.paging.end())
    }

    /// Records how many more rows the last total counts than are known.
    pub fn note_short(&mut self) {
        self.report.evidence.rows_short = self.totals.short(self.report.distinct);
    }

    pub(super) fn certify(&mut self) {
        self.note_short();
        self.stage = Stage::Over;
        if self.cut {
            return;
        }
        if self.has_old_pages {
            return self.report.doubt(OLD_PAGES.to_owned());
        }
        let doubts = self.doubts();
        if self.is_snapshot() {
            self.report.certify(Certificate::Snapshot);
        } else if self.is_counted() {
            self.report.certify(Certificate::Counted);
        } else if doubts.is_empty() {
            self.report.certify(Certificate::Linked);
        } else {
            // Deleted rows still count as held: once the total fell, it does not tell what is
            // missing.
            if self.totals.fell {
                self.report.evidence.rows_short = None;
            }
            let reason = format!("{}; {}", self.shortfall(), doubts.join("; "));
            self.report.doubt(reason);
        }
    }

    /// Reasons why the pages may not be linked.
    pub(super) fn doubts(&self) -> Vec<String> {
        let mut doubts = Doubts::default();
        self.doubt_order(&mut doubts);
        self.doubt_requests(&mut doubts);
        self.doubt_end(&mut doubts);
        doubts.0
    }

    /// Doubts whether the rows kept their order.
    fn doubt_order(&self, doubts: &mut Doubts) {
        let evidence = &self.report.evidence;
        let unreadable = self.delivery.unreadable();
        doubts.add_if(unreadable.any(), || unreadable.in_words());
        doubts.add_if(
            self.linking.strayed(),
            || "a page came from another offset than requested",
        );
        doubts.add_if(evidence.inversions > 0, || {
            format!(
                "the order changed between requests (seen {} times)",
                evidence.inversions
            )
        });
        let untraced = self.look_ups.untraced_moves();
        doubts.add_if(untraced > 0, || {
            format!(
                "{} moved with unchanged content",
                rows(untraced, "has", "have")
            )
        });
        doubts.add_if(
            self.linking.compares_by_id(),
            || "rows that were read twice differ each time, so only their ids were compared",
        );
        doubts.add_if(evidence.missing_links > 0, || {
            format!("{} with the pages before", pages(evidence.missing_links))
        });
    }

    /// Doubts from what other requests found, and from those that were not sent or not answered.
    fn doubt_requests(&self, doubts: &mut Doubts) {
        let found = self.passes.found();
        doubts.add_if(found > 0, || {
            format!("another pass found {}", rows(found, "more", "more"))
        });
        let found = self.report.evidence.rows_found_by_id;
        doubts.add_if(found > 0, || {
            format!(
                "{} found by fetching ids between the known ones",
                rows(found, "was", "were")
            )
        });
        doubts.add_if(
            self.look_ups.are_of_any_user(),
            || "the service ignores the user in a message's address, so rows fetched by id may belong to \
             other users",
        );
        let vanished = self.look_ups.unexplained(self.totals.fallen());
        doubts.add_if(vanished > 0, || {
            format!(
                "{} no longer listed and not fetched by id",
                rows(vanished, "was", "were")
            )
        });
        let refusals = self.passes.refusals();
        doubts.add_if(refusals > 0, || {
            format!("{refusals} requests for proof were refused")
        });
        if let Some((offset, status)) = self.list_end.refused_below_total() {
            doubts.add_if(true, || {
                format!("offset {offset} was refused with status {status}")
            });
        }
    }

    /// Doubts whether the list ended where the rows do.
    fn doubt_end(&self, doubts: &mut Doubts) {
        let totals = &self.totals;
        let at_end = self.paging.at_end();
        let linked = self.ends_linked();
        let told = totals.last.is_some();
        doubts.add_if(
            totals.too_small && !linked,
            || "there are more rows than the total says",
        );
        let before_total = totals.last.is_some_and(|total| total > self.paging.end());
        doubts.add_if(!at_end && told && !totals.too_small && !linked, || {
            if before_total && self.list_end.was_refused() {
                self.refuses_the_rest()
            } else if before_total {
                "the rows end before the total does".to_owned()
            } else {
                "no page ended exactly at the total".to_owned()
            }
        });
        doubts.add_if(
            totals.missing && told && !linked,
            || "some responses gave no total that is a number",
        );
        doubts.add_if(!told && !linked, || "nothing says where the list ends");
        let short = self.short();
        let unexplained = short.is_some_and(|short| short > totals.grown());
        doubts.add_if(
            unexplained && at_end && !self.total_disagrees(),
            || "the list grew by less than that meanwhile",
        );
    }

    /// How many rows a walk is short by.
    fn shortfall(&self) -> String {
        let held = self.report.distinct;
        match self.report.total_last {
            None => {
                format!("{held} rows were read, and the service gave no total that is a number")
            }
            Some(total) => {
                let held = i64::try_from(held).unwrap_or(i64::MAX);
                match total.saturating_sub(held) {
                    0 => format!("{held} rows were read, as many as the total"),
                    short @ 1.. => {
                        format!("{held} rows were read of a total of {total}: {short} short")
                    }
                    _ if self.totals.fell => format!(
                        "{held} rows were read, and the total fell to {total} meanwhile: how many \
                         of those are gone is unknown"
                    ),
                    more => format!(
                        "{held} rows were read, {} more than the total",
                        more.unsigned_abs()
                    ),
                }
            }
        }
    }
}

fn rows(count: u64, one: &str, several: &str) -> String {
    if count == 1 {
        format!("1 row {one}")
    } else {
        format!("{count} rows {several}")
    }
}

fn pages(count: u64) -> String {
    if count == 1 {
        "1 page shares no unchanged rows".to_owned()
    } else {
        format!("{count} pages share no unchanged rows")
    }
}

//! What a walk has proved, and in words why it is not more.

use super::pass::Pass;
use super::{ListWalk, Stage};
use crate::api::List;
use crate::error::Error;
use crate::report::Certificate;
use crate::walk::OLD_PAGES;

const READ_AGAIN: &str = "read the list again when fewer rows change";
const ASK_THE_OPERATOR: &str = "reading again will not help: ask the service's operator";
const IF_THE_SAME_ROWS: &str = "if the same rows are named again, ask the service's operator";

const STRAYED: &str = "a page came from another offset than requested";
const ONLY_BY_ID: &str =
    "rows that were read twice differ each time, so only their ids were compared";
const ANY_USERS: &str = "the service ignores the user in a message's address, so rows fetched by id may \
                         belong to other users";

// Passes over a list, while rows are missing.
const MOST_PASSES: u64 = 8;
// Of them, in a row, that find none, if its order changes.
const MOST_FRUITLESS: u64 = 2;

impl ListWalk {
    /// A pass is over: looks up rows, reads once more, or ends.
    pub(super) fn close(&mut self) {
        for page in std::mem::take(&mut self.pass.pool) {
            self.deliver(page);
        }
        if self.cut {
            return;
        }
        if matches!(self.stage, Stage::Sweep) {
            self.fruitless = if self.pass.found > 0 {
                0
            } else {
                self.fruitless + 1
            };
        }
        if self.pass.proved {
            (self.linked_once, self.at_total) = (true, self.pass.at_total);
        }
        self.certify();
        let provable = self.may_prove()
            && self.doubts.failed_proofs == 0
            && !self.doubts.old_pages
            && !self.delivery.unnamed
            && self.delivery.unreadable.left_out() == 0
            && self.pass.until.is_none();
        let next = match self.report.certificate {
            _ if !provable => None,
            Certificate::Linked => match self.next_vanished() {
                None if self.wants_to_read_the_start() => return self.begin_another_pass(),
                vanished => vanished,
            },
            Certificate::Uncertified => match self.begin_gaps(self.plain_requests()) {
                None if self.wants_another_pass() => return self.begin_another_pass(),
                None => self.begin_gaps(u64::MAX),
                gap => gap,
            },
            Certificate::Snapshot | Certificate::Counted => None,
        };
        self.stage = next.map_or(Stage::Over, Stage::LookUp);
    }

    /// Whether rows moved to the start unread: more were inserted before the walk's position than the
    /// list grew by, and the total does not tell what is missing.
    fn wants_to_read_the_start(&self) -> bool {
        let grown = if self.at_total { self.totals.grown } else { 0 };
        self.pass.shifted > grown && self.total_tells_nothing() && self.report.sweeps == 1
    }

    /// Whether the total does not tell how many rows are missing: there is none, it is wrong, or it
    /// fell, because rows that are gone still count as held.
    pub(super) fn total_tells_nothing(&self) -> bool {
        self.totals.last.is_none() || !self.at_total || self.totals.fell
    }

    fn begin_another_pass(&mut self) {
        self.report.sweeps += 1;
        self.pass = Pass::default();
        self.pass.chain.by_id = self.doubts.by_id;
        self.stage = Stage::Sweep;
    }

    /// Whether another pass may find rows that are missing.
    fn wants_another_pass(&self) -> bool {
        let evidence = &self.report.evidence;
        // Where rows move, those that the list grew by may be others than the new ones, and no total
        // counted those that were found by id.
        let uncounted = evidence.rows_found_by_id > 0 && self.is_of_messages();
        let incomplete = evidence.rows_short != Some(0) || uncounted;
        let unexplained = self.missing().is_some_and(|rows| rows > 0);
        if evidence.inversions > 0 || self.vanished.moved_unchanged > 0 {
            // Without a total, nothing says that rows are missing.
            let most = self.totals.last.map_or(2, |_| MOST_PASSES);
            incomplete && self.fruitless < MOST_FRUITLESS && self.report.sweeps < most
        } else if evidence.missing_links > 0 {
            incomplete && self.length.can_link() && self.fruitless == 0 && self.report.sweeps <= 2
        } else {
            self.at_total && unexplained && self.fruitless == 0 && self.report.sweeps < MOST_PASSES
        }
    }

    /// Determines what is proved.
    pub(super) fn certify(&mut self) {
        self.note_short();
        self.stage = Stage::Over;
        if self.cut {
            return;
        }
        if self.doubts.old_pages {
            return self.report.doubt(OLD_PAGES.to_owned());
        }
        let sound =
            !self.doubts.strayed && !self.doubts.any_users && self.delivery.unreadable.count == 0;
        let whole = self.totals.prove_snapshot() && self.pass.proved;
        if sound && whole && self.report.evidence.inversions == 0 {
            self.report.certify(Certificate::Snapshot);
        } else if sound && self.are_all_counted() {
            self.report.certify(Certificate::Counted);
        } else {
            self.certify_linked();
        }
    }

    fn is_of_messages(&self) -> bool {
        matches!(self.list, List::Messages { .. })
    }

    /// Whether all rows of a list to which rows are only added are held: messages.
    pub(super) fn are_all_counted(&self) -> bool {
        // If the end is proved elsewhere than at the total, the total counts something else.
        let total_is_right = !self.linked_once || self.at_total;
        let found = self.report.evidence.rows_found_by_id;
        self.is_of_messages() && total_is_right && self.totals.count(self.report.distinct, found)
    }

    fn certify_linked(&mut self) {
        let reasons = self.reasons();
        let Some((advice, _)) = reasons.first() else {
            return self.report.certify(Certificate::Linked);
        };
        // Deleted rows still count as held: once the total fell, it does not tell what is missing.
        if self.totals.fell {
            self.report.evidence.rows_short = None;
        }
        let what: Vec<&str> = reasons.iter().map(|(_, what)| what.as_str()).collect();
        let (shortfall, what) = (self.shortfall(), what.join("; "));
        self.report.doubt(format!("{shortfall}; {what}; {advice}"));
    }

    /// Records how many more rows the last total counts than are held.
    pub fn note_short(&mut self) {
        let short = |total: u64| total.saturating_sub(self.report.distinct);
        self.report.evidence.rows_short = self.totals.last.map(short);
    }

    /// Reasons why the list may not be linked, the most telling one first: what to do about it, and what
    /// it is.
    fn reasons(&self) -> Vec<(&'static str, String)> {
        let (evidence, doubts) = (&self.report.evidence, &self.doubts);
        let unreadable = &self.delivery.unreadable;
        let (inversions, broken) = (evidence.inversions, evidence.missing_links);
        let (moved, found) = (self.vanished.moved_unchanged, evidence.rows_found_by_id);
        let failed = doubts.failed_proofs;
        let refused = doubts.refused_at.is_some() && !self.linked_once;
        let unexplained = self.at_total && self.missing().is_some_and(|rows| rows > 0);
        let explained = unreadable.left_out() > 0 || refused || broken > 0 || inversions > 0;
        let reasons = [
            (
                unreadable.count > 0,
                IF_THE_SAME_ROWS,
                unreadable.in_words(),
            ),
            (refused, ASK_THE_OPERATOR, self.refuses_the_rest()),
            (doubts.strayed, ASK_THE_OPERATOR, STRAYED.to_owned()),
            (
                inversions > 0,
                READ_AGAIN,
                format!("the order changed between requests (seen {inversions} times)"),
            ),
            (
                moved > 0,
                READ_AGAIN,
                counted(moved, "row moved", "rows moved", "with unchanged content"),
            ),
            (doubts.by_id, ASK_THE_OPERATOR, ONLY_BY_ID.to_owned()),
            (
                found > 0,
                READ_AGAIN,
                counted(
                    found,
                    "row was",
                    "rows were",
                    "found by fetching ids between the known ones",
                ),
            ),
            (doubts.any_users, ASK_THE_OPERATOR, ANY_USERS.to_owned()),
            (
                failed > 0,
                READ_AGAIN,
                format!("{failed} requests for proof were refused"),
            ),
            (
                !self.linked_once && broken > 0,
                READ_AGAIN,
                counted(
                    broken,
                    "page shares",
                    "pages share",
                    "no unchanged rows with the pages before",
                ),
            ),
            (
                unexplained,
                READ_AGAIN,
                "the list grew by less than that meanwhile".to_owned(),
            ),
            (
                !self.linked_once && !explained,
                ASK_THE_OPERATOR,
                self.why_the_end_is_open().to_owned(),
            ),
        ];
        let holding = reasons.into_iter().filter(|(holds, ..)| *holds);
        holding.map(|(_, advice, what)| (advice, what)).collect()
    }

    fn why_the_end_is_open(&self) -> &'static str {
        match self.totals.last {
            None => "nothing says where the list ends",
            Some(total) if total > self.pass.end => "the rows end before the total does",
            Some(_) => "no page shows that the list ends there",
        }
    }

    fn refuses_the_rest(&self) -> String {
        format!("the service refuses offsets above {}", self.pass.end)
    }

    /// Whether rows were read, so that the list can end after them.
    pub fn has_rows(&self) -> bool {
        self.pass.end > 0
    }

    /// The list ends before a page that can never be read.
    pub fn end_before(&mut self, error: &Error) {
        let (shortfall, rest) = (self.shortfall(), self.refuses_the_rest());
        let error = error.without_content();
        self.report.doubt(format!("{shortfall}; {rest}: {error}"));
    }

    /// How many rows a walk is short by.
    fn shortfall(&self) -> String {
        let held = self.report.distinct;
        let Some(total) = self.report.total_last else {
            return format!(
                "{held} rows were read, and the service gave no total that is a number"
            );
        };
        match total.saturating_sub(i64::try_from(held).unwrap_or(i64::MAX)) {
            0 => format!("{held} rows were read, as many as the total"),
            short @ 1.. => format!("{held} rows were read of a total of {total}: {short} short"),
            _ if self.totals.fell => format!(
                "{held} rows were read, and the total fell to {total} meanwhile: how many of those are \
                 gone is unknown"
            ),
            more => format!(
                "{held} rows were read, {} more than the total",
                more.unsigned_abs()
            ),
        }
    }
}

/// "1 row was found", "2 rows were found".
fn counted(count: u64, one: &str, more: &str, rest: &str) -> String {
    let what = if count == 1 { one } else { more };
    format!("{count} {what} {rest}")
}

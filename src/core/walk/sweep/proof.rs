//! What a walk has proved, and in words why it is not more.

use super::{Stage, Sweep};
use crate::core::api::List;
use crate::core::report::Certificate;

impl Sweep {
    /// One response held the whole list.
    pub(super) fn is_snapshot(&self) -> bool {
        self.held_it_all
            && self.at_end
            && self.fresh_pages <= 1
            && self.totals.constant()
            && !self.strayed
            && !self.unreadable.any()
            && self.report.evidence.inversions == 0
    }

    /// Messages are only added, and a response later than all known rows counts as many.
    pub(super) fn is_counted(&self) -> bool {
        let totals = &self.totals;
        let of_messages = matches!(self.list, List::Messages { .. });
        let as_many = totals.last == Some(self.report.distinct);
        let honest = !totals.fell && !totals.too_small && !totals.missing && !self.strayed;
        of_messages
            && as_many
            && honest
            && !self.unreadable.any()
            && !self.total_disagrees()
            && self.is_counted_late()
    }

    /// Whether the last total is from an instant after all rows had come, or never differed.
    fn is_counted_late(&self) -> bool {
        let [last, before] = self.last_fresh;
        self.totals.constant()
            || self.latest.is_some_and(|latest| {
                let fresh = if last == latest.taken { before } else { last };
                fresh <= latest.taken_before
                    && latest.total.and_then(|total| u64::try_from(total).ok())
                        == Some(self.report.distinct)
            })
    }

    /// Records how many more rows the last total counts than are known.
    pub fn note_short(&mut self) {
        self.report.evidence.rows_short = self.totals.short(self.report.distinct);
    }

    /// Deleted rows still count as held: once the total fell, it does not tell what is missing.
    fn note_unknown(&mut self) {
        if self.totals.fell {
            self.report.evidence.rows_short = None;
        }
    }

    pub(super) fn certify(&mut self) {
        self.note_short();
        self.stage = Stage::Over;
        if self.cut {
            return;
        }
        let doubts = self.doubts();
        if self.is_snapshot() {
            self.report.certify(Certificate::Snapshot);
        } else if self.is_counted() {
            self.report.certify(Certificate::Counted);
        } else if doubts.is_empty() {
            self.report.certify(Certificate::Linked);
        } else {
            self.note_unknown();
            let reason = format!("{}; {}", self.shortfall(), doubts.join("; "));
            self.report.doubt(reason);
        }
    }

    /// Reasons why the pages may not be linked.
    pub(super) fn doubts(&self) -> Vec<String> {
        let evidence = &self.report.evidence;
        let totals = &self.totals;
        let short = totals.short(self.report.distinct);
        let unexplained = short.is_some_and(|short| short > totals.grown());
        let ends_linked = self.ends_linked();
        let mut doubts = Vec::new();
        let mut doubt = |holds: bool, words: String| {
            if holds {
                doubts.push(words);
            }
        };
        doubt(self.unreadable.any(), self.unreadable.in_words());
        doubt(
            self.strayed,
            "a page came from another offset than asked for".to_owned(),
        );
        doubt(
            evidence.inversions > 0,
            format!(
                "the order changed between requests (seen {} times)",
                evidence.inversions
            ),
        );
        doubt(
            self.untraced_moves > 0,
            format!(
                "{} moved and nothing in them says so",
                rows(self.untraced_moves, "has", "have")
            ),
        );
        doubt(
            evidence.missing_links > 0,
            format!("{} with those before", pages(evidence.missing_links)),
        );
        doubt(
            self.found_again > 0,
            format!(
                "another pass found {}",
                rows(self.found_again, "more", "more")
            ),
        );
        doubt(
            evidence.rows_found_by_id > 0,
            format!(
                "{} found by looking up ids between those held",
                rows(evidence.rows_found_by_id, "was", "were")
            ),
        );
        let not_asked = self.not_looked_up + self.vanished.len() as u64;
        // As many rows as the total fell by may well be gone.
        let vanished = self.looked_up.len() as u64 + self.not_looked_up;
        doubt(
            not_asked > 0 && totals.fallen() < vanished,
            format!(
                "{} no longer shown and not asked for by id",
                rows(not_asked, "was", "were")
            ),
        );
        doubt(
            self.unanswered > 0,
            format!("{} requests for proof were refused", self.unanswered),
        );
        if let Some((offset, status)) = self.refused_at {
            doubt(
                true,
                format!("offset {offset} was refused with status {status}"),
            );
        }
        doubt(
            totals.too_small && !ends_linked,
            "there are more rows than the total says".to_owned(),
        );
        let before_total = totals.last.is_some_and(|total| total > self.end);
        let end = match before_total {
            true => "the rows end before the total does",
            false => "no page ended just where its total says that the list does",
        };
        doubt(
            !self.at_end && totals.last.is_some() && !totals.too_small && !ends_linked,
            end.to_owned(),
        );
        doubt(
            totals.missing && totals.last.is_some() && !ends_linked,
            "some responses gave no total".to_owned(),
        );
        doubt(
            totals.last.is_none() && !ends_linked,
            "nothing says where the list ends".to_owned(),
        );
        doubt(
            unexplained && self.at_end && !self.total_disagrees(),
            "nothing that came meanwhile explains it".to_owned(),
        );
        doubts
    }

    /// How many rows a walk is short by.
    fn shortfall(&self) -> String {
        let held = self.report.distinct;
        match self.report.total_last {
            None => format!("{held} rows are held, and the service gave no total"),
            Some(total) => {
                let held = i64::try_from(held).unwrap_or(i64::MAX);
                match total.saturating_sub(held) {
                    0 => format!("{held} rows are held, as many as the total"),
                    short @ 1.. => {
                        format!("{held} rows are held of a total of {total}: {short} short")
                    }
                    _ if self.totals.fell => format!(
                        "{held} rows are held, and the total fell to {total} meanwhile: how many of \
                         those held are gone is not known"
                    ),
                    more => format!(
                        "{held} rows are held, {} more than the total",
                        more.unsigned_abs()
                    ),
                }
            }
        }
    }
}

fn rows(count: u64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 row {one}"),
        _ => format!("{count} rows {several}"),
    }
}

fn pages(count: u64) -> String {
    match count {
        1 => "1 page shares no unchanged rows".to_owned(),
        _ => format!("{count} pages share no unchanged rows"),
    }
}

//! Lists of users and of messages: their order, their end, and how true their `total` is.

use serde_json::Value;

use super::Probe;
use super::asker::{Asked, Listed, Missed, unmeasured};
use super::ends::{self, End};
use super::order::{self, STABLE_ROWS, in_sequence, is_stable};
use super::people::{Sampled, askable};
use super::profile::{ListProfile, Order};
use crate::core::error::Error;
use crate::core::interface::List;

/// Rows that two pages share, so that their sequence can be compared.
const OVERLAP: u64 = 10;

impl Probe {
    /// More pages of users: the first again, one that overlaps it, the middle, the end.
    pub(super) async fn users(&mut self, pages: &mut Vec<Listed>) -> Result<Option<bool>, Error> {
        let stable = self.stability(List::Users, pages).await;
        let stable = self.note("users.stable", stable)?;
        let length = u64::from(self.limit.get());
        let total = pages
            .iter()
            .filter_map(|page| page.total)
            .max()
            .unwrap_or(0);
        let middle = (total > 3 * length).then_some(total / 2);
        let end = (total > length).then(|| total - length);
        for offset in middle.into_iter().chain(end) {
            // Not to have it costs no finding of its own.
            match self.asker.page(List::Users, offset, self.limit).await {
                Ok(page) => pages.push(page),
                Err(Missed::Ends(error)) => return Err(error),
                Err(Missed::Unmeasured(_)) => {}
            }
        }
        Ok(stable)
    }

    /// Whether the start of a list has its rows in the same sequence when it is asked for again, and
    /// in a page that overlaps it.
    async fn stability(&mut self, list: List, pages: &mut Vec<Listed>) -> Asked<bool> {
        let longest = pages
            .iter()
            .filter(|page| page.asked == 0)
            .max_by_key(|page| page.len());
        let Some(first) = longest.map(Listed::identities) else {
            return unmeasured("no page of such a list could be read");
        };
        if first.len() < STABLE_ROWS {
            return unmeasured("no list that was read has enough rows");
        }
        let again = self.asker.page(list, 0, self.limit).await?;
        let of_page = is_stable(&first, &again.identities());
        let overlap = (again.len() >= 2 * OVERLAP).then(|| again.len() - OVERLAP);
        let more = again.total.is_none_or(|total| total > again.len());
        let tail = again
            .identities()
            .split_off(overlap.map_or(0, |at| at as usize));
        pages.push(again);
        let mut of_overlap = None;
        if let Some(offset) = overlap.filter(|_| more) {
            let next = self.asker.page(list, offset, self.limit).await?;
            let head: Vec<String> = next.identities().into_iter().take(tail.len()).collect();
            of_overlap = is_stable(&tail, &head);
            pages.push(next);
        }
        match (of_page, of_overlap) {
            (None, None) => unmeasured("no list that was read has enough rows"),
            (of_page, of_overlap) => Ok(of_page != Some(false) && of_overlap != Some(false)),
        }
    }

    /// The messages of the chosen users: the first page of each list, and the last one.
    pub(super) async fn sample(&mut self, chosen: Vec<Value>) -> Result<Vec<Sampled>, Error> {
        let mut sample = Vec::new();
        for user in chosen {
            let Some(user_id) = askable(&user) else {
                let reason = "a user's id is not a whole number from 0, so it cannot be asked for";
                self.explain(true, "messages", reason);
                continue;
            };
            let list = List::Messages { user_id };
            let first = self.asker.page(list, 0, self.limit).await;
            let Some(first) = self.note("messages", first)? else {
                continue;
            };
            let end = first.total.filter(|total| *total > first.len());
            let mut pages = vec![first];
            if let Some(total) = end {
                let offset = total.saturating_sub(self.limit.get().into());
                let last = self.asker.page(list, offset.max(1), self.limit).await;
                pages.extend(self.note("messages", last)?);
            }
            sample.push(Sampled {
                user,
                user_id,
                pages,
            });
        }
        Ok(sample)
    }

    /// What the lists of messages have in common, the longest one looked at more closely.
    pub(super) async fn messages(&mut self, sample: &mut [Sampled]) -> Result<ListProfile, Error> {
        let path = "messages";
        let longest = sample.iter_mut().max_by_key(|each| each.size());
        let Some(longest) = longest else {
            let nothing = "no messages were read";
            return self.list_profile(path, None, None, unmeasured(nothing), 0, false);
        };
        let list = List::Messages {
            user_id: longest.user_id,
        };
        let stable = self.stability(list, &mut longest.pages).await;
        let stable = self.note("messages.stable", stable)?;
        let end = ends::find(&mut self.asker, list, self.limit, &mut longest.pages).await;
        let mut short = end
            .as_ref()
            .ok()
            .and_then(|end| ends::short_pages(&longest.pages, end.at));
        let exact = end.as_ref().is_ok_and(|end| end.total == Some(end.at));
        for page in sample.iter().flat_map(|each| &each.pages) {
            if let Some(total) = page.total.filter(|_| exact) {
                let of_page = ends::short_pages(std::slice::from_ref(page), total);
                short = short.map_or(of_page, |short| Some(short || of_page == Some(true)));
            }
        }
        let lists: Vec<Vec<&Value>> = sample
            .iter()
            .map(|each| {
                in_sequence(
                    each.pages
                        .iter()
                        .map(|page| (page.asked, page.rows.as_slice())),
                )
            })
            .collect();
        let rows = lists.iter().map(|rows| rows.len() as u64).sum();
        let order = order::find(&lists);
        let understated = sample.iter().flat_map(|each| &each.pages).any(|page| {
            page.is_in_place()
                && page.total.is_some_and(|total| total < page.end())
                && page.len() > 0
        });
        let mut profile = self.list_profile(path, order, short, end, rows, understated)?;
        profile.stable = stable;
        Ok(profile)
    }

    pub(super) async fn list(
        &mut self,
        path: &str,
        list: List,
        pages: &mut Vec<Listed>,
        stable: Option<bool>,
    ) -> Result<ListProfile, Error> {
        let end = ends::find(&mut self.asker, list, self.limit, pages).await;
        let short = end
            .as_ref()
            .ok()
            .and_then(|end| ends::short_pages(pages, end.at));
        let rows = in_sequence(pages.iter().map(|page| (page.asked, page.rows.as_slice())));
        let count = rows.len() as u64;
        let order = order::find(&[rows]);
        let mut profile = self.list_profile(path, order, short, end, count, false)?;
        profile.stable = stable;
        Ok(profile)
    }

    fn list_profile(
        &mut self,
        path: &str,
        order: Option<Order>,
        short_pages: Option<bool>,
        end: Asked<End>,
        rows: u64,
        understated: bool,
    ) -> Result<ListProfile, Error> {
        let at = |name: &str| format!("{path}.{name}");
        let end = self.note(&at("total_exact"), end)?;
        let total = end.as_ref().and_then(|end| end.total);
        let total_error = end.as_ref().zip(total).and_then(|(end, total)| {
            i64::try_from(total)
                .ok()?
                .checked_sub(i64::try_from(end.at).ok()?)
        });
        let past_end = end.as_ref().and_then(|end| end.past.clone());
        let reason = match end {
            Some(_) => None,
            None => self.notes.get(&at("total_exact")).cloned(),
        };
        let or = |other: &str| reason.clone().unwrap_or_else(|| other.to_owned());
        let no_total = or("the list has no total that is a number");
        self.explain(total_error.is_none(), &at("total_error"), &no_total);
        self.explain(
            past_end.is_none(),
            &at("past_end"),
            &or("the list is empty"),
        );
        self.explain(
            short_pages.is_none(),
            &at("short_pages"),
            &or("no page could show it"),
        );
        self.explain(
            order.is_none(),
            &at("order"),
            match rows {
                0..5 => "too few rows were read",
                _ => "the rows are in the order of none of their fields",
            },
        );
        Ok(ListProfile {
            rows,
            order,
            stable: None,
            total_exact: end.map(|end| total == Some(end.at) && !understated),
            total_error,
            short_pages,
            past_end,
        })
    }
}

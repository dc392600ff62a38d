//! Lists of users and of messages: their order, their end, and whether their `total` is right.

use std::{iter, slice};

use serde_json::Value;

use super::Probe;
use super::ends::{self, End, short_pages};
use super::order::{self, STABLE_ROWS, in_sequence, is_stable};
use super::probe_client::{Listed, Measured, Missed, unmeasured};
use super::profile::ListProfile;
use super::user_sample::{Sampled, requestable_id};
use crate::api::List;
use crate::error::Error;

/// Rows that two pages share, so that their order can be compared.
const OVERLAP: u64 = 10;
const LIST_FINDINGS: [&str; 6] = [
    "order",
    "stable",
    "total_exact",
    "total_error",
    "short_pages",
    "past_end",
];

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
            pages.extend(self.spare_page(List::Users, offset).await?);
        }
        Ok(stable)
    }

    /// Whether the start of a list has its rows in the same order when it is requested again, and
    /// in a page that overlaps it.
    async fn stability(&mut self, list: List, pages: &mut Vec<Listed>) -> Measured<bool> {
        let limit = u64::from(self.limit.get());
        let is_start = |page: &&Listed| page.requested_offset == 0 && page.limit == Some(limit);
        let from_start = pages.iter().rfind(is_start);
        let first = match from_start {
            Some(page) => page.identities(),
            None => {
                let page = self.probe_client.page(list, 0, self.limit).await?;
                let first = page.identities();
                pages.push(page);
                first
            }
        };
        if first.len() < STABLE_ROWS {
            return unmeasured("no list that was read has enough rows");
        }
        let again = self.probe_client.page(list, 0, self.limit).await?;
        let of_page = is_stable(&first, &again.identities());
        let overlap = (again.len() >= 2 * OVERLAP).then(|| again.len() - OVERLAP);
        let more = again.total.is_none_or(|total| total > again.len());
        let tail = again
            .identities()
            .split_off(overlap.map_or(0, |at| at as usize));
        pages.push(again);
        let mut of_overlap = None;
        if let Some(offset) = overlap.filter(|_| more) {
            let next = self.probe_client.page(list, offset, self.limit).await?;
            let head: Vec<String> = next.identities().into_iter().take(tail.len()).collect();
            of_overlap = is_stable(&tail, &head);
            pages.push(next);
        }
        match (of_page, of_overlap) {
            (None, None) => unmeasured("no list that was read has enough rows"),
            (of_page, of_overlap) => Ok(of_page != Some(false) && of_overlap != Some(false)),
        }
    }

    /// The messages of the chosen users: the first and the last page of each list.
    pub(super) async fn sample(&mut self, chosen: Vec<Value>) -> Result<Vec<Sampled>, Error> {
        let mut sample = Vec::new();
        let mut missed = None;
        for user in chosen {
            let Some(user_id) = requestable_id(&user) else {
                missed = Some("no sampled user has a whole number from 0 as its id".to_owned());
                continue;
            };
            let list = List::Messages { user_id };
            let first = match self.probe_client.page(list, 0, self.limit).await {
                Ok(first) => first,
                Err(Missed::Ends(error)) => return Err(error),
                Err(Missed::Unmeasured(reason)) => {
                    missed = Some(reason);
                    continue;
                }
            };
            let total = first.total.filter(|total| *total > first.len());
            let mut pages = vec![first];
            if let Some(total) = total {
                let offset = total.saturating_sub(self.limit.get().into()).max(1);
                pages.extend(self.spare_page(list, offset).await?);
            }
            sample.push(Sampled {
                user,
                user_id,
                pages,
            });
        }
        self.unread = missed.filter(|_| sample.is_empty());
        Ok(sample)
    }

    /// A page that no finding requires.
    async fn spare_page(&mut self, list: List, offset: u64) -> Result<Option<Listed>, Error> {
        match self.probe_client.page(list, offset, self.limit).await {
            Ok(page) => Ok(Some(page)),
            Err(Missed::Ends(error)) => Err(error),
            Err(Missed::Unmeasured(_)) => Ok(None),
        }
    }

    /// The lists of messages; examines the longest one more closely.
    pub(super) async fn messages(
        &mut self,
        sample: &mut Vec<Sampled>,
    ) -> Result<ListProfile, Error> {
        let lists = sample.iter().enumerate();
        let longest = lists.max_by_key(|(_, each)| each.size());
        let Some(place) = longest.map(|(place, _)| place) else {
            let reason = self.unread.take();
            let reason = reason.unwrap_or_else(|| "no user was read".to_owned());
            return self.unread_messages(&reason);
        };
        let mut longest = sample.swap_remove(place);
        let list = List::Messages {
            user_id: longest.user_id,
        };
        let stable = self.stability(list, &mut longest.pages).await;
        let stable = self.note("messages.stable", stable)?;
        let pages = &mut longest.pages;
        let profile = self.list("messages", list, pages, sample, stable).await?;
        sample.push(longest);
        Ok(profile)
    }

    fn unread_messages(&mut self, reason: &str) -> Result<ListProfile, Error> {
        for name in LIST_FINDINGS {
            self.explain(true, &format!("messages.{name}"), reason);
        }
        Ok(ListProfile {
            rows: 0,
            order: None,
            stable: None,
            total_exact: None,
            total_error: None,
            short_pages: None,
            past_end: None,
        })
    }

    /// What lists of one kind have in common. The end is searched in one of them; pages read for
    /// that are added to its `pages`.
    pub(super) async fn list(
        &mut self,
        path: &str,
        list: List,
        pages: &mut Vec<Listed>,
        others: &[Sampled],
        stable: Option<bool>,
    ) -> Result<ListProfile, Error> {
        let at = |name: &str| format!("{path}.{name}");
        let end = ends::find(&mut self.probe_client, list, self.limit, pages).await;
        let end = self.note(&at("total_exact"), end)?;
        let no_end = self.notes.get(&at("total_exact")).cloned();
        let or = |other: &str| no_end.clone().unwrap_or_else(|| other.to_owned());

        let total_error = end.as_ref().and_then(End::total_error);
        let no_total = or("the list has no total that is a number");
        self.explain(total_error.is_none(), &at("total_error"), &no_total);
        let past_end = end.as_ref().and_then(|end| end.past.clone());
        self.explain(
            past_end.is_none(),
            &at("past_end"),
            &or("the list is empty"),
        );

        let other_pages = || others.iter().flat_map(|each| &each.pages);
        let exact = total_error == Some(0) && !other_pages().any(Listed::is_understated);
        let short = end.as_ref().and_then(|end| short_pages(pages, end.at));
        let short = other_pages()
            .filter(|_| exact)
            .filter_map(|page| short_pages(slice::from_ref(page), page.total?))
            .chain(short)
            .reduce(|one, other| one || other);
        self.explain(
            short.is_none(),
            &at("short_pages"),
            &or("no page could show it"),
        );

        let lists: Vec<Vec<&Value>> = iter::once(pages.as_slice())
            .chain(others.iter().map(|each| each.pages.as_slice()))
            .map(in_sequence)
            .collect();
        let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
        let order = order::find(&lists);
        let no_order = match longest < STABLE_ROWS {
            true => "too few rows of one list were read",
            false => "the rows are in the order of none of their fields",
        };
        self.explain(order.is_none(), &at("order"), no_order);
        Ok(ListProfile {
            rows: lists.iter().map(|rows| rows.len() as u64).sum(),
            order,
            stable,
            total_exact: end.map(|_| exact),
            total_error,
            short_pages: short,
            past_end,
        })
    }
}

//! Lists of users and of messages: their order, their end, and whether their `total` is right.

use std::{iter, slice};

use serde_json::Value;

use super::Probe;
use super::ends::{self, End, short_pages};
use super::order::{self, STABLE_ROWS, in_sequence, is_stable};
use super::probe_client::{Finding, Listed, ProbeClient, unmeasured};
use super::profile::ListProfile;
use super::user_sample::{NO_USER, Sampled};
use crate::api::List;

/// Rows that two pages share, so that their order can be compared.
const OVERLAP: usize = 10;
const TOO_FEW: &str = "no list that was read has enough rows";
const NO_ORDER: &str = "the rows are in the order of none of their fields";

/// Reads the end of a list, as its `total` says, and the middle of a long list of users.
pub async fn far_pages(client: &mut ProbeClient, list: List, pages: &mut Vec<Listed>) {
    let length = u64::from(client.limit.get());
    let total = pages.iter().filter_map(|page| page.total).max();
    let total = total.unwrap_or(0);
    if list == List::Users && total > 3 * length {
        pages.extend(client.page(list, total / 2).await);
    }
    if pages.iter().all(|page| page.end() < total) {
        let offset = total.saturating_sub(length).max(1);
        pages.extend(client.page(list, offset).await);
    }
}

/// Whether the start of a list has its rows in the same order when it is requested again, and in a
/// page that overlaps it.
async fn stability(client: &mut ProbeClient, list: List, pages: &mut Vec<Listed>) -> Finding<bool> {
    let limit = u64::from(client.limit.get());
    let is_start = |page: &&Listed| page.requested_offset == 0 && page.limit == Some(limit);
    let first = match pages.iter().rfind(is_start) {
        Some(page) => page.identities(),
        None => {
            let page = client.page(list, 0).await?;
            let first = page.identities();
            pages.push(page);
            first
        }
    };
    if first.len() < STABLE_ROWS {
        return unmeasured(TOO_FEW);
    }
    let again = client.page(list, 0).await?;
    let rows = again.identities();
    let more = again.total.is_none_or(|total| total > again.len());
    pages.push(again);
    let of_page = is_stable(&first, &rows);
    let mut of_overlap = None;
    let tail = rows.len().saturating_sub(OVERLAP);
    if more && tail >= OVERLAP {
        let next = client.page(list, tail as u64).await?;
        let head: Vec<String> = next.identities().into_iter().take(OVERLAP).collect();
        of_overlap = is_stable(rows.get(tail..).unwrap_or_default(), &head);
        pages.push(next);
    }
    let compared = [of_page, of_overlap].into_iter().flatten();
    let stable = compared.reduce(|one, other| one && other);
    stable.ok_or_else(|| TOO_FEW.to_owned())
}

impl Probe {
    /// The messages of the chosen users.
    pub(super) async fn sample(&mut self, chosen: Vec<Value>) -> Vec<Sampled> {
        let mut sample = Vec::new();
        let mut reason = NO_USER.to_owned();
        for user in chosen {
            match Sampled::read(&mut self.client, user).await {
                Ok(sampled) => sample.push(sampled),
                Err(missed) => reason = missed,
            }
        }
        if sample.is_empty() {
            let paths = LIST_FINDINGS.map(|name| format!("messages.{name}"));
            self.notes.extend(paths.map(|path| (path, reason.clone())));
        }
        sample
    }

    /// The lists of messages; examines the longest one more closely.
    pub(super) async fn messages(&mut self, sample: &mut [Sampled]) -> ListProfile {
        sample.sort_by_key(Sampled::size);
        let Some((longest, others)) = sample.split_last_mut() else {
            return ListProfile::default();
        };
        let user_id = longest.user_id;
        let (list, pages) = (List::Messages { user_id }, &mut longest.pages);
        self.list("messages", list, pages, others).await
    }

    /// What lists of one kind have in common. One of them is examined more closely; pages read for
    /// that are added to its `pages`.
    pub(super) async fn list(
        &mut self,
        name: &str,
        list: List,
        pages: &mut Vec<Listed>,
        others: &[Sampled],
    ) -> ListProfile {
        let stable = stability(&mut self.client, list, pages).await;
        let end = ends::find(&mut self.client, list, pages).await;
        let total_error = end.clone().and_then(End::total_error);
        let other_pages = || others.iter().flat_map(|each| &each.pages);
        let exact = total_error == Ok(0) && !other_pages().any(Listed::is_understated);
        let short = end.clone().and_then(|end| {
            other_pages()
                .filter(|_| exact)
                .filter_map(|page| short_pages(slice::from_ref(page), page.total?))
                .chain(short_pages(pages, end.at))
                .reduce(|one, other| one || other)
                .ok_or_else(|| "no page could show it".to_owned())
        });

        let all = iter::once(&*pages).chain(others.iter().map(|each| &each.pages));
        let lists: Vec<Vec<&Value>> = all.map(|pages| in_sequence(pages)).collect();
        let is_longer = lists.iter().any(|rows| rows.len() >= STABLE_ROWS);
        let no_order = if is_longer { NO_ORDER } else { TOO_FEW };
        let order = order::find(&lists).ok_or_else(|| no_order.to_owned());
        let at = |finding: &str| format!("{name}.{finding}");
        ListProfile {
            rows: lists.iter().map(|rows| rows.len() as u64).sum(),
            order: self.note(&at("order"), order),
            stable: self.note(&at("stable"), stable),
            total_exact: self.note(&at("total_exact"), end.clone().map(|_| exact)),
            total_error: self.note(&at("total_error"), total_error),
            short_pages: self.note(&at("short_pages"), short),
            past_end: self.note(&at("past_end"), end.and_then(|end| end.past)),
        }
    }
}

const LIST_FINDINGS: [&str; 6] = [
    "order",
    "stable",
    "total_exact",
    "total_error",
    "short_pages",
    "past_end",
];

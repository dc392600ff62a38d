//! A sample of users with their messages, and whether users' timestamps follow these.

use std::collections::BTreeSet;

use serde_json::Value;

use super::lists::far_pages;
use super::probe_client::{Finding, Listed, ProbeClient};
use super::profile::{Follows, ListProfile};
use crate::api::{List, Natural};
use crate::timestamp::Timestamp;

pub const NO_USER: &str = "no user was read";
/// The digits of a share.
const DIGITS: f64 = 10_000.0;

/// One user, and the pages of their messages that were read.
#[derive(Debug)]
pub struct Sampled {
    pub user: Value,
    pub user_id: Natural,
    pub pages: Vec<Listed>,
}

impl Sampled {
    /// Reads the first and the last page of a user's messages.
    pub async fn read(client: &mut ProbeClient, user: Value) -> Finding<Self> {
        let user_id = requestable_id(&user)
            .ok_or_else(|| "no sampled user has a whole number from 0 as its id".to_owned())?;
        let list = List::Messages { user_id };
        let mut pages = vec![client.page(list, 0).await?];
        far_pages(client, list, &mut pages).await;
        Ok(Self {
            user,
            user_id,
            pages,
        })
    }

    /// The list's `total`, or else the number of rows read.
    pub fn size(&self) -> u64 {
        let read = self.pages.iter().map(Listed::end).max().unwrap_or(0);
        let total = self.pages.iter().filter_map(|page| page.total).max();
        total.unwrap_or(0).max(read)
    }

    pub fn messages(&self) -> impl Iterator<Item = &Value> {
        self.pages.iter().flat_map(|page| &page.rows)
    }

    /// When the newest message was written, if it was read for certain.
    fn newest(&self, lists: &ListProfile) -> Option<Timestamp> {
        // It is on the first or the last page, or the first page has them all.
        let is_at_an_end = lists.order.is_some() && lists.total_exact == Some(true);
        let is_whole = |first: &Listed| {
            let never_short = lists.short_pages == Some(false);
            !first.is_full() && (never_short || first.len() >= self.size())
        };
        if !is_at_an_end && !self.pages.first().is_some_and(is_whole) {
            return None;
        }
        self.messages()
            .filter_map(|message| instant(message, "created_at"))
            .max()
    }
}

/// Some of the rows, evenly spread over all of them.
pub fn spread<T>(rows: Vec<T>, wanted: usize) -> Vec<T> {
    let count = rows.len();
    let picked = wanted.min(count);
    let place = |number: usize| number * count.saturating_sub(1) / picked.saturating_sub(1).max(1);
    let chosen: BTreeSet<usize> = (0..picked).map(place).collect();
    let numbered = rows.into_iter().enumerate();
    let chosen = numbered.filter(|(place, _)| chosen.contains(place));
    chosen.map(|(_, row)| row).collect()
}

/// The number to request a row by: its id, even if it was sent as text.
pub fn requestable_id(row: &Value) -> Option<Natural> {
    let id = row.get("id")?;
    let number = id.as_u64().or_else(|| id.as_str()?.parse().ok())?;
    i64::try_from(number).ok().map(|_| Natural::from(number))
}

/// Whether a user's field is never behind the newest message, for users where both are known.
pub fn follows(sample: &[Sampled], field: &str, lists: &ListProfile) -> Finding<Follows> {
    let holds = |each: &Sampled| {
        let newest = each.newest(lists)?;
        Some(instant(&each.user, field)? >= newest)
    };
    let compared: Vec<bool> = sample.iter().filter_map(holds).collect();
    let (users, kept) = (
        compared.len(),
        compared.iter().filter(|holds| **holds).count(),
    );
    if users == 0 {
        return Err("no sampled user has both that field and a known newest message".to_owned());
    }
    Ok(Follows {
        holds: kept == users,
        share: (kept as f64 / users as f64 * DIGITS).round() / DIGITS,
        users: users as u64,
    })
}

fn instant(row: &Value, field: &str) -> Option<Timestamp> {
    Timestamp::parse(row.get(field)?.as_str()?)
}

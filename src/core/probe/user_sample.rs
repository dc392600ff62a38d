//! A sample of users with their messages, and findings that need both.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::fields::{is_word, share};
use super::probe_client::{Listed, identity};
use super::profile::Follows;
use crate::api::Natural;
use crate::timestamp::Timestamp;

const MOST_SENDER_TYPES: usize = 16;
const LONGEST_SENDER_TYPE: usize = 32;
const OTHER_SENDER_TYPE: &str = "(other)";

/// One user, and the pages of their messages that were read.
#[derive(Debug)]
pub struct Sampled {
    pub user: Value,
    pub user_id: Natural,
    pub pages: Vec<Listed>,
}

impl Sampled {
    /// The list's `total`, or else the number of rows read.
    pub fn size(&self) -> u64 {
        let read = self.pages.iter().map(Listed::end).max().unwrap_or(0);
        let total = self.pages.iter().filter_map(|page| page.total).max();
        total.unwrap_or(0).max(read)
    }

    pub fn messages(&self) -> impl Iterator<Item = &Value> {
        self.pages.iter().flat_map(|page| &page.rows)
    }

    /// Whether every message was read: the list fits in a page that has room for more.
    fn is_whole(&self, lists: ListTraits) -> bool {
        let first = self.pages.iter().find(|page| page.requested_offset == 0);
        first.is_some_and(|first| {
            !first.is_full() && (lists.never_short || first.len() >= self.size())
        })
    }
}

/// What is known of message lists, to tell whether the newest message was read.
#[derive(Debug, Clone, Copy)]
pub struct ListTraits {
    /// The newest message is on the first or last page of each list; both were read.
    pub newest_at_an_end: bool,
    /// A page with room for more rows is the last one.
    pub never_short: bool,
}

/// The number to request a row by: its id, even if it was sent as text.
pub fn requestable_id(row: &Value) -> Option<Natural> {
    let id = row.get("id")?;
    let number = id.as_u64().or_else(|| id.as_str()?.parse().ok())?;
    i64::try_from(number).ok().map(|_| Natural::from(number))
}

/// Some of the rows, evenly spread over all of them.
pub fn spread<T>(rows: Vec<T>, wanted: usize) -> Vec<T> {
    let count = rows.len();
    let chosen: BTreeSet<usize> = (0..wanted.min(count))
        .map(|number| match wanted.min(count) {
            1 => 0,
            picked => number * (count - 1) / (picked - 1),
        })
        .collect();
    let numbered = rows.into_iter().enumerate();
    numbered
        .filter(|(place, _)| chosen.contains(place))
        .map(|(_, row)| row)
        .collect()
}

/// Whether no message id occurs in two users' lists; `None` with fewer than two lists to compare.
pub fn ids_unique(sample: &[Sampled]) -> Option<bool> {
    let filled = sample
        .iter()
        .filter(|each| each.messages().next().is_some());
    if filled.count() < 2 {
        return None;
    }
    let mut owners: HashMap<String, Natural> = HashMap::new();
    let mut unique = true;
    for each in sample {
        for id in each.messages().map(identity) {
            unique &= *owners.entry(id).or_insert(each.user_id) == each.user_id;
        }
    }
    Some(unique)
}

/// The sender types; `None` if no message has one. A placeholder replaces values that look like
/// data, and all undocumented ones if they are too many to be types.
pub fn sender_types(sample: &[Sampled]) -> Option<Vec<String>> {
    let values: BTreeSet<&str> = sample
        .iter()
        .flat_map(Sampled::messages)
        .filter_map(|message| message.get("sender_type")?.as_str())
        .collect();
    let few = values.len() <= MOST_SENDER_TYPES;
    let types: BTreeSet<String> = values
        .into_iter()
        .map(|value| match value {
            "user" | "operator" => value.to_owned(),
            _ if few && is_word(value, LONGEST_SENDER_TYPE) => value.to_owned(),
            _ => OTHER_SENDER_TYPE.to_owned(),
        })
        .collect();
    (!types.is_empty()).then(|| types.into_iter().collect())
}

/// Whether a user's field is never behind the newest message, for users where both are known.
pub fn follows(sample: &[Sampled], field: &str, lists: ListTraits) -> Option<Follows> {
    let instant = |row: &Value, name: &str| Timestamp::parse(row.get(name)?.as_str()?);
    let compared: Vec<bool> = sample
        .iter()
        .filter(|each| lists.newest_at_an_end || each.is_whole(lists))
        .filter_map(|each| {
            let newest = each
                .messages()
                .filter_map(|message| instant(message, "created_at"))
                .max()?;
            Some(instant(&each.user, field)? >= newest)
        })
        .collect();
    let users = compared.len() as u64;
    let kept = compared.iter().filter(|holds| **holds).count() as u64;
    (users > 0).then(|| Follows {
        holds: kept == users,
        share: share(kept, users),
        users,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sampled(user: Value, messages: Vec<Value>) -> Sampled {
        let page = Listed {
            requested_offset: 0,
            limit: Some(99),
            offset: None,
            total: Some(messages.len() as u64),
            rows: messages,
        };
        Sampled {
            user_id: requestable_id(&user).unwrap(),
            user,
            pages: vec![page],
        }
    }

    #[test]
    fn a_sample_reaches_from_the_first_row_to_the_last() {
        assert_eq!(spread((0..100).collect(), 4), [0, 33, 66, 99]);
        assert_eq!(spread(vec![1, 2], 9), [1, 2]);
        assert_eq!(spread(vec![1, 2], 1), [1]);
        assert!(spread(vec![1, 2], 0).is_empty());
    }

    #[test]
    fn ids_that_two_users_share_are_not_unique() {
        let list = |user: u64, ids: &[u64]| {
            let rows = ids.iter().map(|id| json!({"id": id})).collect();
            sampled(json!({"id": user}), rows)
        };
        assert_eq!(ids_unique(&[list(1, &[1, 2]), list(2, &[3])]), Some(true));
        assert_eq!(ids_unique(&[list(1, &[1, 2]), list(2, &[2])]), Some(false));
        assert_eq!(ids_unique(&[list(1, &[1]), list(2, &[])]), None);
    }

    #[test]
    fn too_many_sender_types_are_no_categories() {
        let of = |count: u64| {
            let rows = (0..count).map(|number| json!({"sender_type": format!("name{number}")}));
            let rows = rows.chain([
                json!({"sender_type": "user"}),
                json!({"sender_type": "A B"}),
            ]);
            sender_types(&[sampled(json!({"id": 1}), rows.collect())]).unwrap()
        };
        assert_eq!(of(2), ["(other)", "name0", "name1", "user"]);
        assert_eq!(of(40), ["(other)", "user"]);
    }

    #[test]
    fn a_field_follows_if_it_is_never_behind() {
        let user = |at: &str| {
            let message = json!({"id": 1, "created_at": "2024-01-02T00:00:00Z"});
            sampled(json!({"id": 1, "updated_at": at}), vec![message])
        };
        let (ahead, behind) = (
            user("2024-01-02T00:00:00.000Z"),
            user("2024-01-01T00:00:00Z"),
        );
        let lists = ListTraits {
            newest_at_an_end: false,
            never_short: false,
        };
        let found = follows(&[ahead, behind], "updated_at", lists).unwrap();
        assert_eq!((found.holds, found.share, found.users), (false, 0.5, 2));
        assert_eq!(
            follows(&[user("2024-01-03T00:00:00Z")], "online_at", lists),
            None
        );
    }
}

//! What most programs do: `offset += limit` until `total`. The baseline for the walk.

use std::collections::HashSet;

use super::changing_list::{ChangingList, Served};
use crate::api::Limit;

// A list of some 1,600 rows takes 17 full pages.
const ENDLESS_ROWS: u64 = 200 * 99;

#[derive(Debug)]
pub struct PlainWalk {
    pub held: HashSet<i64>,
    pub requests: u64,
    /// It would never have ended.
    pub endless: bool,
}

pub fn plain_walk(list: &mut ChangingList, page_size: Limit) -> PlainWalk {
    let mut walk = PlainWalk {
        held: HashSet::new(),
        requests: 0,
        endless: false,
    };
    let size = u64::from(page_size.get());
    let mut offset = 0;
    while !walk.endless {
        walk.requests += 1;
        walk.endless = walk.requests * size >= ENDLESS_ROWS;
        let Served::Page {
            rows,
            fails_at: None,
            total,
            ..
        } = list.page(offset, page_size)
        else {
            break;
        };
        walk.held.extend(rows.iter().map(|row| row.id));
        offset += size;
        let over = match total {
            Some(total) => offset >= total as u64,
            None => rows.is_empty(),
        };
        if over {
            break;
        }
    }
    walk
}

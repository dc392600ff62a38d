//! What most programs do: `offset += limit` until `total`. The walk is measured against it.

use std::collections::HashSet;

use super::simulated::{Served, Simulated};
use crate::core::interface::Limit;

// A list of some 1,600 rows takes 17 requests.
const ENDLESS: u64 = 200;

#[derive(Debug)]
pub struct PlainWalk {
    pub held: HashSet<i64>,
    pub requests: u64,
    /// It would have gone on for ever.
    pub endless: bool,
}

pub fn plain_walk(list: &mut Simulated) -> PlainWalk {
    let mut walk = PlainWalk {
        held: HashSet::new(),
        requests: 0,
        endless: false,
    };
    let mut offset = 0;
    while !walk.endless {
        walk.requests += 1;
        walk.endless = walk.requests == ENDLESS;
        let Served::Page { rows, total, .. } = list.page(offset, Limit::LARGEST) else {
            break;
        };
        walk.held.extend(rows.iter().map(|row| row.id));
        offset += u64::from(Limit::LARGEST.get());
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

//! Audits of a plain pager, compared with counts by hand; without a socket.

use std::collections::{BTreeMap, BTreeSet};

use http::Request;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::drift::{Change, Drift, Which};
use crate::lane::Lane;
use crate::routes::{Route, Target};

pub fn lane(world: World, options: LaneOptions) -> Arc<Lane> {
    let (name, secret) = ("main".into(), "mock_secret".into());
    Arc::new(Lane::new(name, secret, "example", Arc::new(world), options))
}

fn lane_of(users: u64, dialect: &str, rules: &str) -> Arc<Lane> {
    lane(World::new(3, users, 5, 5).unwrap(), options(dialect, rules))
}

/// The ids in the response to one list request.
fn read(lane: &Arc<Lane>, path: &str) -> Vec<u64> {
    let request = Request::get(path).header("accept", "application/vnd.example.v1+json");
    let request = request.body(()).unwrap().into_parts().0;
    let answer = lane.answer(&request, Target::read(request.uri.path()), true);
    assert_eq!(answer.status, 200);
    let page: Value = serde_json::from_slice(&answer.body.to_vec()).unwrap();
    let rows = page["users"].as_array().unwrap().iter();
    rows.map(|row| row["id"].as_u64().unwrap()).collect()
}

/// Changes the users once their first page was sent.
fn after_one_page(lane: &Lane, change: Change) {
    lane.drifts.add(Drift {
        pages: 0,
        route: Route::Users,
        user: None,
        after: 1,
        change,
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn an_audit_names_just_the_rows_that_were_lost(
        users in 1_u64..80,
        limit in 1_usize..20,
        order in prop::sample::select(vec!["id", "newest", "ties", "shuffled"]),
        changes in prop::collection::vec((0_u64..4, 0_u64..3, any::<u64>()), 0..12),
    ) {
        let lane = lane_of(users, &format!("order={order}"), "");
        let alive = || lane.world.view().users().ids();
        let (mut held, mut stayed) = (Vec::new(), None::<BTreeSet<u64>>);
        let mut changes = changes.into_iter();
        loop {
            let now: BTreeSet<u64> = alive().into_iter().collect();
            stayed = Some(stayed.map_or(now.clone(), |stayed| &stayed & &now));
            let page = read(&lane, &format!("/external/users?offset={}&limit={limit}", held.len()));
            if page.is_empty() {
                break;
            }
            held.extend(page);
            if let Some((deleted, added, pick)) = changes.next() {
                for _ in 0..deleted {
                    let ids = alive();
                    if let Some(id) = ids.get(pick as usize % ids.len().max(1)) {
                        lane.world.remove(None, *id).unwrap();
                    }
                }
                lane.world.add(None, added).unwrap();
            }
        }
        let stayed = &stayed.unwrap() & &alive().into_iter().collect();
        let mut times: BTreeMap<u64, u64> = BTreeMap::new();
        for id in &held {
            *times.entry(*id).or_default() += 1;
        }
        let audit = lane.audit(None, &held).unwrap();
        let missing: BTreeSet<u64> = audit.missing.iter().map(|lost| lost.id).collect();
        let lost: BTreeSet<u64> = stayed.iter().copied().filter(|id| !times.contains_key(id)).collect();
        prop_assert_eq!(&missing, &lost);
        prop_assert_eq!(audit.expected, stayed.len() as u64);
        prop_assert_eq!(audit.unexpected, Vec::<u64>::new());
        // If the pager read to the end, some request lost each of them.
        prop_assert!(audit.missing.iter().all(|lost| lost.request.is_some()), "{:?}", audit.missing);
        let repeated: Vec<(u64, u64)> = audit.repeated.iter().map(|row| (row.id, row.times)).collect();
        let twice: Vec<(u64, u64)> = times.into_iter().filter(|(_, times)| *times > 1).collect();
        prop_assert_eq!(repeated, twice);
        for row in &audit.repeated {
            prop_assert_eq!(row.requests.len() as u64, row.times);
        }
    }
}

#[test]
fn a_change_goes_on_past_rows_that_are_gone_and_takes_ids_as_they_were_sent() {
    let lane = lane_of(9, "ids=large", "");
    let ids = read(&lane, "/external/users");
    lane.world
        .remove(None, lane.world.view().users().ids()[1])
        .unwrap();
    after_one_page(&lane, Change::Delete(Which::Ids(vec![ids[1], ids[2]])));
    read(&lane, "/external/users");
    let left = read(&lane, "/external/users");
    assert_eq!(left, [&ids[..1], &ids[3..]].concat());
}

#[test]
fn a_page_counts_once_all_of_it_was_sent() {
    let cut_behind_its_end = "users: truncate(at=1000000)\nusers: reset(after_bytes=1000000)";
    for (rules, waiting) in [(cut_behind_its_end, 0), ("users: latency(60000)", 1)] {
        let lane = lane_of(9, "documented", rules);
        after_one_page(&lane, Change::Add(1));
        let held = read(&lane, "/external/users");
        assert_eq!(lane.drifts.waiting(), waiting, "{rules}");
        assert!(lane.audit(None, &held).unwrap().missing.is_empty());
        let lost = &lane.audit(None, &[]).unwrap().missing[0];
        assert_eq!(
            lost.why.contains("was incomplete"),
            waiting == 1,
            "{}",
            lost.why
        );
    }
}

#[test]
fn an_audit_of_what_was_forgotten_is_refused() {
    let options = LaneOptions {
        journal: 2,
        ..LaneOptions::default()
    };
    let lane = lane(World::new(3, 9, 0, 0).unwrap(), options);
    for _ in 0..3 {
        read(&lane, "/external/users");
    }
    let refused = lane.audit(None, &[]).unwrap_err().to_string();
    assert!(refused.contains("last 2 requests"), "{refused}");
    lane.forget();
    let held = read(&lane, "/external/users");
    assert!(lane.audit(None, &held).unwrap().missing.is_empty());
}

//! The plan: no user is skipped or read twice, and a list is read at its end only if that is
//! conclusive.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::api::Natural;
use crate::list_state::{Ends, Grows, Hints};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn day(number: i64) -> Option<Timestamp> {
    Timestamp::from_microseconds(number * DAY.as_micros() as i64)
}

fn terms(mode: Mode, max_staleness: Option<Duration>) -> Terms {
    Terms {
        mode,
        max_staleness,
        now: day(100).unwrap(),
        all_users_first: false,
        most_end_pages: u64::MAX,
        seed: 1,
    }
}

/// A list of 300 messages that was proved to be complete a day ago.
fn list() -> ListState {
    ListState {
        rows: 300,
        certificate: Certificate::Counted,
        checked_at: day(99),
        swept_at: day(99),
        ends: Some(Ends {
            grows: Grows::End,
            first_ids: vec![1, 2, 3, 4],
            last_ids: vec![297, 298, 299, 300],
            unread_from: None,
        }),
        ..ListState::default()
    }
}

/// Whether a list with this state is read at its growing end.
fn asked_at_its_end(terms: Terms, user_id: i64, held: ListState) -> bool {
    let known = Known {
        lists: [(user_id, held)].into(),
        ..Known::default()
    };
    let (approach, _) = Plan::new(known, terms).approach(user_id);
    matches!(approach, Approach::GrowingEnd(_))
}

#[test]
fn a_long_list_that_was_proved_is_asked_at_its_end() {
    let incremental = terms(Mode::Incremental, Some(30 * DAY));
    assert!(asked_at_its_end(incremental, 7, list()));
    let otherwise: [fn(&mut ListState); 7] = [
        |list| list.rows = 98,
        |list| list.kind = Kind::Gone,
        |list| list.certificate = Certificate::Uncertified,
        |list| list.certificate = Certificate::Linked,
        |list| list.ends = None,
        |list| list.swept_at = None,
        |list| list.swept_at = day(70),
    ];
    for change in otherwise {
        let mut list = list();
        change(&mut list);
        assert!(!asked_at_its_end(incremental, 7, list.clone()), "{list:?}");
    }
    assert!(!asked_at_its_end(terms(Mode::Full, None), 7, list()));
    let never_swept = ListState {
        swept_at: None,
        ..list()
    };
    let never_due = terms(Mode::Incremental, None);
    assert!(asked_at_its_end(never_due, 7, never_swept));
}

#[test]
fn lists_that_were_swept_together_do_not_all_fall_due_together() {
    let due = |age: i64| {
        let incremental = terms(Mode::Incremental, Some(30 * DAY));
        let held = ListState {
            swept_at: day(100 - age),
            ..list()
        };
        let waiting = |user_id| asked_at_its_end(incremental, user_id, held.clone());
        (0..1_000).filter(|user_id| !waiting(*user_id)).count()
    };
    assert_eq!(due(14), 0);
    assert_eq!(due(30), 1_000);
    for age in 16..29 {
        let more = due(age + 1) - due(age);
        assert!(
            (20..140).contains(&more),
            "{more} fall due at the age of {age} days"
        );
    }
}

fn listed(id: u64, updated_at: Option<i64>, online_at: Option<i64>) -> ListedUser {
    let hints = Hints {
        updated_at: updated_at.and_then(day),
        online_at: online_at.and_then(day),
    };
    ListedUser {
        user_id: Natural::from(id),
        hints: Some(hints),
    }
}

fn ids(ready: &[Next]) -> Vec<i64> {
    ready.iter().map(|next| next.user.id()).collect()
}

#[test]
fn the_newest_news_come_first_and_what_failed_does_not_take_it_all() {
    let read = |age: i64, kind: Kind| ListState {
        checked_at: day(99 - age),
        kind,
        ..list()
    };
    let lists = [
        (1, read(3, Kind::Whole)),
        (2, read(4, Kind::End)),
        (3, read(2, Kind::Unread)),
        (4, read(3, Kind::Unread)),
        (5, read(1, Kind::Unread)),
    ];
    let known = Known {
        lists: lists.into(),
        half_read: [(6, HalfRead::default())].into(),
        forgotten: [9].into(),
        ..Known::default()
    };
    let users = [
        (1, None, None),
        (2, None, None),
        (3, None, Some(9)),
        (4, None, None),
        (5, None, None),
        (7, None, None),
        (8, Some(5), Some(7)),
        (9, Some(9), None),
        (10, Some(8), None),
        (11, Some(6), Some(1)),
    ];
    let terms = Terms {
        all_users_first: true,
        ..terms(Mode::Incremental, None)
    };
    let mut plan = Plan::new(known, terms);
    plan.begin();
    for (id, updated_at, online_at) in users {
        plan.see(listed(id, updated_at, online_at));
    }
    assert!(plan.take_ready().is_empty(), "all users come first");
    plan.know_all_users();
    let order = [6, 10, 8, 11, 7, 2, 1, 4, 3, 5];
    assert_eq!(ids(&plan.take_ready()), order);
}

#[test]
fn given_users_are_read_once_unless_they_are_done() {
    let known = Known {
        given: Some([3, 1, 3, 4, 2].map(Natural::from).to_vec()),
        done: [4].into(),
        ..Known::default()
    };
    let mut plan = Plan::new(known, terms(Mode::Incremental, None));
    plan.begin();
    plan.know_all_users();
    assert_eq!(ids(&plan.take_ready()), [1, 2, 3]);
    assert_eq!(plan.lists(), Some(4));
    // Until all users are known, the service's total counts them.
    let mut plan = Plan::new(Known::default(), terms(Mode::Incremental, None));
    plan.see(listed(7, None, None));
    assert_eq!(plan.lists(), None);
    plan.users_total = Some(5_000);
    assert_eq!(plan.lists(), Some(5_000));
}

fn hints() -> impl Strategy<Value = Hints> {
    (0_i64..3, 0_i64..3).prop_map(|(updated, online)| Hints {
        updated_at: day(updated),
        online_at: day(online),
    })
}

proptest! {
    #[test]
    fn nobody_is_left_out_and_nobody_comes_twice(
        listed in prop::collection::vec((0_u64..40, hints(), any::<bool>()), 0..60),
        held in prop::collection::btree_map(0_i64..40, (hints(), prop::option::of(0_i64..99)), 0..40),
        done in prop::collection::hash_set(0_i64..40, 0..20),
        half_read in prop::collection::hash_set(0_i64..40, 0..10),
    ) {
        let lists = held.iter().map(|(user_id, (hints, looked_at))| {
            let checked_at = looked_at.and_then(day);
            (*user_id, ListState { hints: *hints, checked_at, ..list() })
        });
        let known = Known {
            lists: lists.collect(),
            done: done.clone(),
            half_read: half_read.iter().map(|id| (*id, HalfRead::default())).collect(),
            ..Known::default()
        };
        let mut plan = Plan::new(known, terms(Mode::Incremental, None));
        plan.begin();
        let first = plan.take_ready();
        for (id, hints, shown) in &listed {
            plan.see(ListedUser {
                user_id: Natural::from(*id),
                hints: shown.then_some(*hints),
            });
        }
        let at_once = plan.take_ready();
        plan.know_all_users();
        let rest = plan.take_ready();

        let expected: BTreeSet<i64> = listed
            .iter()
            .map(|(id, ..)| *id as i64)
            .chain(half_read.iter().copied())
            .filter(|id| !done.contains(id))
            .collect();
        let order = ids(&[first, at_once.clone(), rest.clone()].concat());
        let read: BTreeSet<i64> = order.iter().copied().collect();
        prop_assert_eq!(read.len(), order.len(), "somebody comes twice");
        prop_assert_eq!(&read, &expected);
        prop_assert_eq!(plan.lists(), Some((expected.len() + done.len()) as u64));

        // Users who are new or have new messages do not wait for those who have none.
        for Next { user, .. } in at_once {
            let known = held.get(&user.id());
            prop_assert!(known.is_none_or(|(hints, _)| user.hints.is_some_and(|now| now != *hints)));
        }
        let looked_at: BTreeMap<i64, Option<i64>> =
            held.iter().map(|(id, (_, looked_at))| (*id, *looked_at)).collect();
        let ages: Vec<_> = ids(&rest).iter().map(|id| looked_at[id]).collect();
        prop_assert!(ages.is_sorted(), "{ages:?}");
    }
}

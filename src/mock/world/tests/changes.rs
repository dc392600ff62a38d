//! Random changes, snapshots and copies, compared with a plain list that is changed in the same
//! way.

use proptest::sample::Index;

use super::*;

#[derive(Clone, Debug)]
pub enum Step {
    Users(Row),
    Messages(Index, Row),
}

#[derive(Clone, Debug)]
pub enum Row {
    Add(u64),
    Remove(Index),
    Edit(Index, u8),
    Read,
}

pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let row = prop_oneof![
        (0_u64..80).prop_map(Row::Add),
        any::<Index>().prop_map(Row::Remove),
        any::<(Index, u8)>().prop_map(|(at, value)| Row::Edit(at, value)),
        Just(Row::Read),
    ];
    let step = prop_oneof![
        row.clone().prop_map(Step::Users),
        (any::<Index>(), row).prop_map(|(user, row)| Step::Messages(user, row)),
    ];
    prop::collection::vec(step, 0..most)
}

/// The id, the value that the row was edited to, and a user's messages.
type PlainRow = (u64, Option<u8>, Plain);

/// The rows of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plain(Vec<PlainRow>);

impl Plain {
    pub fn of(world: &World) -> Self {
        Self::of_list(world, None)
    }

    fn of_list(world: &World, user: Option<u64>) -> Self {
        let ids = world.view().list(user).map(List::ids).unwrap_or_default();
        Self::added(world, user, ids)
    }

    fn added(world: &World, user: Option<u64>, ids: Vec<u64>) -> Self {
        let rows = ids.into_iter().map(|id| {
            let messages = match user {
                None => Self::of_list(world, Some(id)),
                Some(_) => Self::default(),
            };
            (id, None, messages)
        });
        Self(rows.collect())
    }

    /// Makes the same changes to the world and to the list.
    pub fn change(&mut self, world: &World, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Users(change) => Self::change_rows(&mut self.0, world, None, change),
                Step::Messages(user, change) if !self.0.is_empty() => {
                    let user = user.index(self.0.len());
                    let (id, _, messages) = &mut self.0[user];
                    Self::change_rows(&mut messages.0, world, Some(*id), change);
                }
                Step::Messages(..) => {}
            }
        }
    }

    fn change_rows(rows: &mut Vec<PlainRow>, world: &World, user: Option<u64>, change: &Row) {
        match change {
            Row::Add(count) => {
                let added = world.add(user, *count).unwrap();
                rows.extend(Self::added(world, user, added).0);
            }
            Row::Remove(at) if !rows.is_empty() => {
                let (id, ..) = rows.remove(at.index(rows.len()));
                world.remove(user, id).unwrap();
            }
            Row::Edit(at, value) if !rows.is_empty() => {
                let row = at.index(rows.len());
                let edit = json!({"badge": value, "created_at": "1970-01-01T00:00:00.007Z"});
                world.edit(user, rows[row].0, fields(edit)).unwrap();
                rows[row].1 = Some(*value);
            }
            // So that its rows are cached.
            _ => drop(page(&world.view().list(user).unwrap(), 0, 99)),
        }
    }

    /// Checks every way of reading the world.
    pub fn check(&self, world: &World) {
        let view = world.view();
        self.check_list(&view, None);
        let messages = self.0.iter().map(|user| user.2.0.len() as u64);
        assert_eq!(world.total_messages(), messages.sum::<u64>());
        for (id, _, messages) in &self.0 {
            messages.check_list(&view, Some(*id));
        }
    }

    fn check_list(&self, view: &View, user: Option<u64>) {
        let list = view.list(user).unwrap();
        assert_eq!(list.total(), self.0.len() as u64);
        assert_eq!(
            list.ids(),
            self.0.iter().map(|row| row.0).collect::<Vec<u64>>()
        );
        assert_eq!(list.id_at(list.total()), None);
        let mut rows = Vec::new();
        for (position, (id, badge, _)) in (0..).zip(&self.0) {
            assert_eq!(list.id_at(position), Some(*id));
            assert_eq!(list.position(*id), Some(position));
            let row = list.at(position).unwrap();
            assert_eq!(view.read(user, *id), Ok(row.clone()));
            let read: Value = serde_json::from_slice(&row).unwrap();
            assert_eq!(read.get("badge"), badge.map(|badge| json!(badge)).as_ref());
            assert_eq!(read["id"], json!(id));
            rows.push(row);
        }
        for offset in [0, 1, 63, 64, 99, rows.len()] {
            let rows = rows.iter().skip(offset).take(99).map(|row| &**row);
            let joined = rows.collect::<Vec<&[u8]>>().join(&b',');
            assert_eq!(page(&list, offset as u64, 99), joined);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn a_world_and_its_copies_and_snapshots_read_like_plain_lists(
        seed: u64, users in prop_oneof![2 => 0_u64..12, 1 => 0_u64..140],
        before in steps(40), here in steps(8), there in steps(8),
    ) {
        let world = world(seed, users, 0, 70);
        let mut plain = Plain::of(&world);
        plain.change(&world, &before);
        plain.check(&world);
        let (copy, view, print) = (world.fork(), world.view(), world.fingerprint());
        prop_assert!(copy.view().same_as(&view));
        let (mut changed, mut copied) = (plain.clone(), plain.clone());
        changed.change(&world, &here);
        copied.change(&copy, &there);
        changed.check(&world);
        copied.check(&copy);
        prop_assert!(changed == plain || world.fingerprint() != print);
        prop_assert_eq!(world.restore(&view), Ok(()));
        prop_assert!(world.view().same_as(&view));
        prop_assert_eq!(world.fingerprint(), print);
        // What was restored is changed like any other.
        plain.change(&world, &here);
        plain.check(&world);
    }

    #[test]
    fn a_larger_world_has_the_rows_of_a_smaller_one(
        seed: u64, offset in 0_u64..300, limit in 0_u64..99, more in 1_u64..5_000,
    ) {
        let (small, large) = (world(seed, 300, 0, 300), world(seed, 300 + more, 0, 300));
        let (small_view, large_view) = (small.view(), large.view());
        // Twice, so that rows are rendered once and cached once.
        for _ in 0..2 {
            let limit = limit.min(300 - offset);
            let users = small_view.users();
            prop_assert_eq!(page(&users, offset, limit), page(&large_view.users(), offset, limit));
            let user = users.id_at(offset);
            let (few, many) = (small_view.list(user).unwrap(), large_view.list(user).unwrap());
            prop_assert_eq!(page(&few, offset / 2, limit), page(&many, offset / 2, limit));
            let alone = world(seed, 300, 0, 300).view();
            for id in few.ids() {
                prop_assert_eq!(large_view.read(user, id), alone.read(user, id));
            }
        }
    }
}

#[test]
fn a_snapshot_of_another_world_is_refused() {
    let (one, other) = (world(1, 5, 0, 5), world(1, 5, 0, 5));
    let refused = one.restore(&other.view()).err();
    assert!(refused.is_some_and(|error| error.to_string().starts_with("snapshot: ")));
    assert_eq!(one.restore(&one.fork().view()), Ok(()));
}

#[test]
fn a_view_is_the_same_until_something_changes() {
    let other_seed = world(2, 5, 1, 5);
    let world = world(1, 5, 1, 5);
    assert_ne!(world.fingerprint(), other_seed.fingerprint());
    let view = world.view();
    assert!(world.edit(None, 42, Fields::new()).is_ok() && world.add(None, 0).is_ok());
    assert!(world.remove(None, 1).is_err() && world.remove(Some(42), 0).is_err());
    assert!(world.edit(None, 42, fields(json!({"id": 1}))).is_err());
    assert!(world.edit(None, 1, Fields::new()).is_err());
    assert!(world.view().same_as(&view));
    assert!(world.remove(None, 42).is_ok());
    assert!(!world.view().same_as(&view));
    assert_eq!((view.users().total(), world.total_users()), (5, 4));
}

/// As long as a journal holds every instant of a world that changes all the time.
#[test]
fn an_instant_takes_little_memory() {
    let world = world(1, 20_000, 0, 3);
    for id in world.view().users().ids().into_iter().step_by(2) {
        world.edit(None, id, fields(json!({"badge": 1}))).unwrap();
    }
    let before = world.view();
    world.edit(None, 42, fields(json!({"badge": 2}))).unwrap();
    let after = world.view();
    let shared = |view: &View| std::ptr::from_ref(view.changes.users.fields.get(&10_000).unwrap());
    assert_eq!(shared(&before), shared(&after));
}

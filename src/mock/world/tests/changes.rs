//! Random changes, snapshots and copies, compared with a plain list that is changed in the same
//! way.

use proptest::sample::Index;

use super::*;

#[derive(Clone, Debug)]
pub enum Step {
    AddUsers(u64),
    AddMessages(Index, u64),
    RemoveUser(Index),
    RemoveMessage(Index, Index),
    EditUser(Index, u8),
    EditMessage(Index, Index, u8),
    /// Reads a page, so that its rows are cached.
    Read(Index),
}

pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_u64..70).prop_map(Step::AddUsers),
        (any::<Index>(), 0_u64..80).prop_map(|(user, count)| Step::AddMessages(user, count)),
        any::<Index>().prop_map(Step::RemoveUser),
        any::<(Index, Index)>().prop_map(|(user, message)| Step::RemoveMessage(user, message)),
        any::<(Index, u8)>().prop_map(|(user, value)| Step::EditUser(user, value)),
        any::<(Index, Index, u8)>()
            .prop_map(|(user, one, value)| Step::EditMessage(user, one, value)),
        any::<Index>().prop_map(Step::Read),
    ];
    prop::collection::vec(step, 0..most)
}

/// A message's id, and the value it was edited to.
type PlainMessage = (u64, Option<u8>);

/// The expected content of a world: ids in order, and the edits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plain {
    users: Vec<(u64, Option<u8>, Vec<PlainMessage>)>,
}

impl Plain {
    pub fn of(world: &World) -> Self {
        let view = world.view();
        let users = view.user_ids().into_iter().map(|id| {
            let messages = view.message_ids(id).unwrap_or_default();
            (
                id,
                None,
                messages.into_iter().map(|id| (id, None)).collect(),
            )
        });
        Self {
            users: users.collect(),
        }
    }

    pub fn change(&mut self, world: &World, step: &Step) {
        let count = self.users.len();
        let user_of = |at: &Index| (count > 0).then(|| at.index(count.max(1)));
        match step {
            Step::AddUsers(count) => {
                for id in world.add_users(*count).unwrap_or_default() {
                    let messages = world.view().message_ids(id).unwrap_or_default();
                    let messages = messages.into_iter().map(|id| (id, None)).collect();
                    self.users.push((id, None, messages));
                }
            }
            Step::AddMessages(user, count) => {
                let Some(user) = user_of(user).and_then(|at| self.users.get_mut(at)) else {
                    return;
                };
                let added = world.add_messages(user.0, *count).unwrap_or_default();
                user.2.extend(added.into_iter().map(|id| (id, None)));
            }
            Step::RemoveUser(user) => {
                let Some(at) = user_of(user) else { return };
                let (id, ..) = self.users.remove(at);
                assert_eq!(world.remove_user(id), Ok(()));
            }
            Step::EditUser(user, value) => {
                let Some(user) = user_of(user).and_then(|at| self.users.get_mut(at)) else {
                    return;
                };
                assert_eq!(
                    world.edit_user(user.0, fields(json!({"badge": value}))),
                    Ok(())
                );
                user.1 = Some(*value);
            }
            Step::RemoveMessage(user, message) => {
                let Some(user) = user_of(user).and_then(|at| self.users.get_mut(at)) else {
                    return;
                };
                if user.2.is_empty() {
                    return;
                }
                let (id, _) = user.2.remove(message.index(user.2.len()));
                assert_eq!(world.remove_message(user.0, id), Ok(()));
            }
            Step::EditMessage(user, message, value) => {
                let Some(user) = user_of(user).and_then(|at| self.users.get_mut(at)) else {
                    return;
                };
                let length = user.2.len();
                if length == 0 {
                    return;
                }
                let Some(message) = user.2.get_mut(message.index(length)) else {
                    return;
                };
                let edit =
                    fields(json!({"badge": value, "created_at": "1970-01-01T00:00:00.007Z"}));
                assert_eq!(world.edit_message(user.0, message.0, edit), Ok(()));
                message.1 = Some(*value);
            }
            Step::Read(user) => {
                let _ = users_page(world, user.index(count + 1) as u64, 99);
                let user = user_of(user).and_then(|at| self.users.get(at));
                let mut out = Chunks::default();
                world
                    .view()
                    .write_messages(user.map_or(0, |user| user.0), 0, 99, &mut out);
            }
        }
    }

    /// Checks every way of reading the world.
    pub fn check(&self, world: &World) {
        let view = world.view();
        assert_eq!(view.total_users(), self.users.len() as u64);
        let ids: Vec<u64> = self.users.iter().map(|user| user.0).collect();
        assert_eq!(view.user_ids(), ids);
        let mut rows = Vec::new();
        let mut total = 0;
        for (position, (id, badge, messages)) in (0_u64..).zip(&self.users) {
            assert_eq!(view.user_id_at(position), Some(*id));
            assert_eq!(view.user_position(*id), Some(position));
            let row = view.user_row(position).unwrap_or_default();
            assert_eq!(world.user_json(*id).map(Into::into), Some(row.clone()));
            let read: Value = serde_json::from_slice(&row).unwrap_or_default();
            assert_eq!(read.get("badge"), badge.map(|badge| json!(badge)).as_ref());
            assert_eq!(read.get("id"), Some(&json!(id)));
            rows.push(row);
            total += messages.len() as u64;
            check_messages(&view, *id, messages);
        }
        assert_eq!(world.total_messages(), total);
        assert_eq!(view.user_id_at(ids.len() as u64), None);
        for offset in [0, 1, 63, 64, 99, rows.len()] {
            let mut out = Chunks::default();
            view.write_users(offset as u64, 99, &mut out);
            assert_eq!(out.to_vec(), joined(&rows, offset));
        }
    }
}

fn check_messages(view: &View, user_id: u64, messages: &[PlainMessage]) {
    assert_eq!(view.total_messages(user_id), Some(messages.len() as u64));
    let mut rows = Vec::new();
    for (position, (id, badge)) in (0_u64..).zip(messages) {
        assert_eq!(view.message_id_at(user_id, position), Some(*id));
        assert_eq!(view.message_position(user_id, *id), Some(position));
        let row = view.message_row(user_id, position).unwrap_or_default();
        let mut alone = Vec::new();
        assert!(view.write_message(user_id, *id, &mut alone));
        assert_eq!(alone, row);
        let read: Value = serde_json::from_slice(&row).unwrap_or_default();
        assert_eq!(read.get("badge"), badge.map(|badge| json!(badge)).as_ref());
        rows.push(row);
    }
    for offset in [0, 1, 64, rows.len()] {
        let mut out = Chunks::default();
        view.write_messages(user_id, offset as u64, 99, &mut out);
        assert_eq!(out.to_vec(), joined(&rows, offset));
    }
}

fn joined(rows: &[Bytes], offset: usize) -> Vec<u8> {
    let page: Vec<&[u8]> = rows
        .iter()
        .skip(offset)
        .take(99)
        .map(|row| &**row)
        .collect();
    page.join(&b',')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn a_changed_world_reads_like_a_plain_list(seed: u64, users in 0_u64..140, steps in steps(40)) {
        let world = world(seed, users, 0, 70);
        let mut plain = Plain::of(&world);
        for step in &steps {
            plain.change(&world, step);
        }
        plain.check(&world);
    }

    #[test]
    fn a_copy_goes_its_own_way(
        seed: u64, before in steps(8), here in steps(8), there in steps(8),
    ) {
        let world = world(seed, 9, 0, 70);
        let mut plain = Plain::of(&world);
        for step in &before {
            plain.change(&world, step);
        }
        let (copy, mut copied) = (world.fork(), plain.clone());
        prop_assert!(copy.view().same_as(&world.view()));
        for step in &here {
            plain.change(&world, step);
        }
        for step in &there {
            copied.change(&copy, step);
        }
        plain.check(&world);
        copied.check(&copy);
    }

    #[test]
    fn a_snapshot_brings_all_back(seed: u64, before in steps(8), after in steps(8)) {
        let world = world(seed, 9, 0, 70);
        let mut plain = Plain::of(&world);
        for step in &before {
            plain.change(&world, step);
        }
        let (snapshot, view, print) = (world.snapshot(), world.view(), world.fingerprint());
        let mut later = plain.clone();
        for step in &after {
            later.change(&world, step);
        }
        prop_assert!(later == plain || world.fingerprint() != print);
        prop_assert_eq!(world.restore(&snapshot), Ok(()));
        prop_assert!(world.view().same_as(&view));
        prop_assert_eq!(world.fingerprint(), print);
        plain.check(&world);
        for step in &after {
            plain.change(&world, step);
        }
        plain.check(&world);
    }

    #[test]
    fn kept_rows_are_the_bytes_that_rendering_gives(seed: u64, offset in 0_u64..300, limit in 0_usize..99) {
        let kept = world(seed, 300, 0, 300);
        for _ in 0..2 {
            let fresh = world(seed, 300, 0, 300);
            let (mut page, mut other) = (Chunks::default(), Chunks::default());
            kept.view().write_users(offset, limit, &mut page);
            fresh.view().write_users(offset, limit, &mut other);
            prop_assert_eq!(page.to_vec(), other.to_vec());
            let id = fresh.view().user_id_at(offset).unwrap_or_default();
            let (mut page, mut other) = (Chunks::default(), Chunks::default());
            kept.view().write_messages(id, offset / 2, limit, &mut page);
            fresh.view().write_messages(id, offset / 2, limit, &mut other);
            prop_assert_eq!(page.to_vec(), other.to_vec());
            let alone = world(seed, 300, 0, 300);
            prop_assert_eq!(kept.user_json(id), alone.user_json(id));
            for message in alone.view().message_ids(id).unwrap_or_default() {
                prop_assert_eq!(kept.message_json(id, message), alone.message_json(id, message));
            }
        }
    }
}

#[test]
fn a_snapshot_of_another_world_is_refused() {
    let (one, other) = (world(1, 5, 0, 5), world(1, 5, 0, 5));
    let refused = one.restore(&other.snapshot()).err();
    assert!(refused.is_some_and(|error| error.to_string().starts_with("snapshot: ")));
    assert_eq!(one.restore(&one.fork().snapshot()), Ok(()));
}

#[test]
fn a_view_is_the_same_until_something_changes() {
    let world = world(1, 5, 1, 5);
    let view = world.view();
    assert!(world.edit_user(42, Fields::new()).is_ok() && world.add_users(0).is_ok());
    assert!(world.remove_user(1).is_err() && world.remove_message(42, 0).is_err());
    assert!(world.view().same_as(&view));
    assert!(world.remove_user(42).is_ok());
    assert!(!world.view().same_as(&view));
    assert_eq!((view.total_users(), world.total_users()), (5, 4));
}

//! The cost of pages; for figures, `cargo test --release --features mock -- --ignored --nocapture`.

use super::*;

fn timed(name: &str, rounds: u32, mut page: impl FnMut(u64) -> usize) {
    let start = Instant::now();
    let bytes: usize = (0..u64::from(rounds)).map(&mut page).sum();
    let each = start.elapsed() / rounds;
    let rate = 1.0 / each.as_secs_f64();
    println!(
        "{name}: {each:?} each, {rate:.0}/s, {} bytes each",
        bytes / rounds as usize
    );
}

#[test]
#[ignore = "prints figures"]
fn what_pages_cost() {
    let start = Instant::now();
    let large = world(1, 10_000_000, 0, 500);
    println!("made in {:?}", start.elapsed());
    let users = |world: &World, offset| {
        let mut out = Chunks::default();
        world.view().write_users(offset, 99, &mut out);
        out.length()
    };
    let messages = |world: &World, index, offset| {
        let (mut out, view) = (Chunks::default(), world.view());
        let id = view.user_id_at(index).unwrap_or_default();
        view.write_messages(id, offset, 99, &mut out);
        out.length()
    };
    let anywhere = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 9_999_000;
    timed("users anywhere", 20_000, |number| {
        users(&large, anywhere(number))
    });
    timed("one user anywhere", 100_000, |number| {
        let position = anywhere(number);
        large.view().user_row(position).map_or(0, |row| row.len())
    });
    timed("messages anywhere", 20_000, |number| {
        messages(&large, anywhere(number), 0)
    });
    let long = world(1, 1_000_000, 500, 500);
    timed("long lists anywhere", 20_000, |number| {
        messages(&long, anywhere(number) % 1_000_000, number % 4 * 99)
    });
    let longest = world(1, 10, 1_000_000, 1_000_000);
    timed("longest lists anywhere", 20_000, |number| {
        messages(&longest, number % 10, anywhere(number) % 999_000)
    });
    let fitting = world(1, 2_000, 250, 250);
    for _ in 0..2 {
        timed("users kept", 20_000, |number| {
            users(&fitting, anywhere(number) % 1900)
        });
        timed("messages kept", 20_000, |number| {
            messages(&fitting, number % 100, 99)
        });
    }
    timed("one user kept", 100_000, |number| {
        let position = anywhere(number) % 1900;
        fitting.view().user_row(position).map_or(0, |row| row.len())
    });
    let copy = fitting.fork();
    for index in 0..100 {
        let id = copy.view().user_id_at(index * 7).unwrap_or_default();
        assert!(copy.edit_user(id, fields(json!({"name": "x"}))).is_ok());
    }
    timed("users kept, each seventh edited", 20_000, |number| {
        users(&copy, number % 600)
    });
    let start = Instant::now();
    let mut lines = Vec::new();
    assert!(fitting.to_jsonl(&mut lines).is_ok());
    println!("{} bytes written in {:?}", lines.len(), start.elapsed());
    let start = Instant::now();
    assert!(World::from_jsonl(&*lines).is_ok());
    println!("read in {:?}", start.elapsed());
}

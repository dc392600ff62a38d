//! Values that a process makes once, and its id.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

#[test]
fn all_threads_of_a_process_have_the_same_value() {
    for _ in 0..500 {
        let held = PerProcess::default();
        let made = AtomicU32::new(0);
        let start = Barrier::new(4);
        let seen: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        let make = || Ok::<_, ()>(made.fetch_add(1, Ordering::Relaxed));
                        held.with(make, |value| *value).unwrap()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(
            seen.iter().all(|value| Some(value) == seen.first()),
            "{seen:?}"
        );
    }
}

#[test]
fn the_id_is_remembered_until_it_is_forgotten() {
    remember_id();
    for _ in 0..3 {
        assert_eq!(id(), std::process::id());
    }
    forget_id();
    assert_eq!(id(), std::process::id());
}

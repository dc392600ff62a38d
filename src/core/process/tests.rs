use std::sync::Barrier;

use super::*;

#[test]
fn all_threads_of_a_process_have_the_same_value() {
    for _ in 0..500 {
        let held = PerProcess::default();
        let made = AtomicU32::new(0);
        let start = Barrier::new(4);
        let seen = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| {
                scope.spawn(|| {
                    start.wait();
                    let make = || Ok::<_, ()>(made.fetch_add(1, Ordering::Relaxed));
                    held.with(make, |value| *value).unwrap()
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(seen, [seen[0]; 4]);
    }
}

//! Decoding by the clock: `cargo bench --package backread-core --bench decode`.

#![allow(clippy::expect_used, clippy::indexing_slicing)] // a bench may stop at the first fault

mod cases;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    for case in cases::cases() {
        group.throughput(Throughput::Elements(case.rows()));
        group.bench_function(case.name, |bencher| {
            bencher.iter_batched(
                || case.bodies(),
                |bodies| case.round(bodies),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);

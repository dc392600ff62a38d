//! How much of a limit is used, how many requests are refused, and which requests wait.

use super::simulation::*;
use super::*;

/// Runs of one family: the mean share of the limit that is used, the least one, and the mean share of
/// requests that are refused, in percent.
fn family(runs: &[Run]) -> [f64; 3] {
    let runs = runs.iter();
    let runs = runs.flat_map(|set| [0.005, 0.05].map(|latency| run(Run { latency, ..*set })));
    let runs: Vec<Outcome> = runs.collect();
    let mean = |share: fn(&Outcome) -> f64| runs.iter().map(share).sum::<f64>() / runs.len() as f64;
    let used = |run: &Outcome| 100.0 * run.taken / run.allowed;
    let least = runs.iter().map(used).fold(f64::INFINITY, f64::min);
    let refused = mean(|run| 100.0 * run.refused / (run.taken + run.refused));
    [mean(used), least, refused]
}

fn by_rate(sets: impl Fn(f64) -> [Limiter; 3]) -> Vec<Run> {
    let limiters = [10.0, 50.0, 500.0].into_iter().flat_map(sets);
    let runs = limiters.flat_map(|limiter| {
        [Says::WholeSeconds, Says::Epoch, Says::Nothing].map(|says| {
            let is_long = limiter.kind != Kind::Bucket && limiter.every == 60.0;
            let seconds = if is_long { 300.0 } else { 60.0 };
            Run {
                says,
                seconds,
                ..Run::of(limiter)
            }
        })
    });
    runs.collect()
}

/// `cargo test matrix -- --nocapture` prints what docs/explanation/pace.md says.
#[test]
fn the_matrix_of_limits_is_made_use_of() {
    let bucket = Limiter::bucket;
    let buckets =
        |rate: f64| [0.2, 1.0, 4.0].map(|burst: f64| bucket(rate, (rate * burst).max(1.0)));
    let windows = |kind| {
        move |rate: f64| [1.0, 10.0, 60.0].map(|every| Limiter::new(kind, rate * every, every))
    };
    let nginx = by_rate(|rate| [1.0, 0.2 * rate, rate].map(|burst| bucket(rate, burst)));
    let nginx = nginx.into_iter().flat_map(|set| {
        let unavailable = Run {
            sign: Sign::Unavailable,
            ..set
        };
        match set.says {
            Says::Epoch => vec![],
            Says::WholeSeconds => vec![unavailable],
            Says::Nothing => vec![set, unavailable],
        }
    });
    let bans = [
        (100.0, 10.0, 60.0),
        (50.0, 10.0, 30.0),
        (10.0, 1.0, 60.0),
        (500.0, 1.0, 10.0),
    ];
    let bans = bans.map(|(count, every, banned)| Run {
        seconds: 600.0,
        ..Run::of(Limiter::new(Kind::Ban(banned), count, every))
    });
    let changes = [
        (100.0, 50.0),
        (100.0, 200.0),
        (50.0, 500.0),
        (500.0, 50.0),
        (10.0, 50.0),
    ];
    let changes = changes.map(|(rate, then)| Run {
        then: Some(then),
        seconds: 200.0,
        ..Run::of(bucket(rate, 20.0))
    });
    let ten = [10.0, 50.0, 500.0].map(|rate| Run {
        clients: 10,
        ..Run::of(bucket(rate, 0.2 * rate))
    });
    // What is used on average and at least, and refused at most.
    for (name, runs, bounds) in [
        ("buckets", by_rate(buckets), [94.0, 80.0, 2.5]),
        (
            "fixed windows",
            by_rate(windows(Kind::Fixed)),
            [86.0, 50.0, 2.0],
        ),
        (
            "sliding windows",
            by_rate(windows(Kind::Sliding)),
            [79.0, 45.0, 2.0],
        ),
        ("nginx", nginx.collect(), [87.0, 40.0, 3.0]),
        ("bans", bans.into(), [60.0, 45.0, 1.5]),
        ("limits that change", changes.into(), [70.0, 25.0, 2.0]),
        ("ten clients", ten.into(), [80.0, 50.0, 20.0]),
    ] {
        let found @ [mean, least, refused] = family(&runs);
        println!("{name:16} {mean:5.1} % used, {least:5.1} % at least, {refused:4.1} % refused");
        let kept = mean >= bounds[0] && least >= bounds[1] && refused <= bounds[2];
        assert!(kept, "{name}: {found:?}, not {bounds:?}");
    }
}

#[test]
fn an_unhealthy_backend_is_read_on_at_full_speed() {
    for unhealthy in [0.05, 0.33, 0.8] {
        for latency in [0.005, 0.05] {
            // A response that broke off says nothing about the pace.
            let [done, blind] = [Sign::Unavailable, Sign::Broken].map(|sign| {
                let set = Run {
                    says: Says::Nothing,
                    sign,
                    unhealthy,
                    latency,
                    ..Run::of(Limiter::NONE)
                };
                let runs = (1..=4).map(|seed| run(Run { seed, ..set }).done);
                runs.sum::<usize>() as f64
            });
            assert!(
                done > 0.8 * blind,
                "{unhealthy} at {latency} s: {done} of {blind}"
            );
        }
    }
}

#[test]
fn a_short_read_is_not_slowed_down_by_much() {
    for latency in [0.0, 0.005, 0.05] {
        let set = Run {
            latency,
            calls: 245,
            ..Run::of(Limiter::bucket(100.0, 20.0))
        };
        let ended = run(set).ended;
        let ideal = (245.0 - 20.0) / 100.0;
        assert!(ended <= 1.6 * ideal + 1.5, "{ended} s at {latency} s");
    }
}

#[test]
fn limits_per_minute_that_state_no_wait_are_outlasted_by_every_call() {
    for max_concurrency in [1, 16] {
        for count in [20.0, 600.0] {
            let set = Run {
                says: Says::Nothing,
                max_concurrency,
                seconds: 600.0,
                ..Run::of(Limiter::new(Kind::Fixed, count, 60.0))
            };
            assert_eq!(run(set).failed, 0, "{set:?}");
        }
    }
}

#[test]
fn the_bounds_of_the_user_are_kept() {
    for (rate, max_concurrency) in [(0.5, 1), (300.0, 16)] {
        let set = Run {
            rate_limit: Some(rate),
            max_concurrency,
            ..Run::of(Limiter::NONE)
        };
        let sent = run(set).sent;
        for (index, from) in sent.iter().enumerate() {
            // A wake-up may be ten milliseconds late, and is caught up.
            let within = sent[index..].iter().take_while(|at| **at <= from + 1.0);
            assert!(within.count() as f64 <= rate * 1.01 + 2.0, "{rate}");
        }
        assert!(sent.len() as f64 >= 0.9 * (60.0 * rate), "{rate}");
    }
}

fn gate(max_concurrency: usize, rate_limit: Option<f64>) -> Gate {
    Gate::new(max_concurrency, rate_limit, Clock::real(), Arc::default())
}

fn waits(seconds: Option<u64>) -> Patience {
    let deadline = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    Patience::new(deadline, Duration::ZERO)
}

fn refused(seconds: u64) -> Failed {
    let wait = Duration::from_secs(seconds);
    Failed {
        sign: Sign::Refused,
        stated: Some(wait),
        verdict: Verdict::Retry { wait },
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_spaced_by_the_rate_limit_and_a_dropped_one_takes_no_turn() {
    let (gate, start) = (gate(16, Some(10.0)), Instant::now());
    for _ in 0..11 {
        let _pass = gate.pass(&mut waits(None)).await.unwrap();
        let mut dropped = waits(None);
        let dropped = tokio::time::timeout(Duration::from_millis(1), gate.pass(&mut dropped));
        assert!(dropped.await.is_err());
    }
    assert_eq!(start.elapsed().as_millis(), 1001);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_one_was_asked_for_holds_all_and_chance_leaves_no_rate_behind() {
    let (gate, start) = (gate(16, None), Instant::now());
    gate.pass(&mut waits(None))
        .await
        .unwrap()
        .failed(refused(30), &mut waits(None));
    let late = gate.pass(&mut waits(Some(10))).await.unwrap_err();
    assert_eq!(late, NotAdmitted(Some(Duration::from_secs(30))));
    for _ in 0..1_000 {
        gate.pass(&mut waits(None))
            .await
            .unwrap()
            .answered(Instant::now());
    }
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn no_more_are_in_flight_than_allowed_and_one_cut_counts_once() {
    let gate = gate(4, None);
    let mut passes = Vec::new();
    for _ in 0..4 {
        passes.push(gate.pass(&mut waits(None)).await.unwrap());
    }
    let blocked = gate.pass(&mut waits(Some(1))).await;
    assert_eq!(blocked.unwrap_err(), NotAdmitted(None));
    let late = Failed {
        sign: Sign::Timeout,
        stated: None,
        verdict: Verdict::GiveUp,
    };
    for pass in passes {
        pass.failed(late, &mut waits(None));
    }
    let _first = gate.pass(&mut waits(None)).await.unwrap();
    let _second = gate.pass(&mut waits(None)).await.unwrap();
    assert!(gate.pass(&mut waits(Some(1))).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_answers_late_is_not_asked_a_few_at_a_time() {
    let (gate, start) = (gate(64, None), Instant::now());
    let passes = (0..64).map(|_| async { gate.pass(&mut waits(None)).await.unwrap() });
    assert_eq!(futures_util::future::join_all(passes).await.len(), 64);
    assert_eq!(start.elapsed().as_secs(), 1);
}

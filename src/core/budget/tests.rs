use super::*;

#[test]
fn no_more_requests_are_reserved_than_there_are() {
    let clock = Clock::real();
    let run = Arc::new(RunBudget::start(Some(2), None, &clock));
    let budget = Budget::start(None, &clock).within(Arc::clone(&run));
    let first = budget.reserve().unwrap();
    budget.reserve().unwrap().spend();
    assert!(!run.was_spent());
    assert!(budget.reserve().is_none());
    assert!(run.was_spent() && !run.has_room(&clock));
    // One that was not sent is left.
    drop(first);
    assert!(run.has_room(&clock));
    budget.reserve().unwrap().spend();
    assert!(budget.reserve().is_none());
}

#[test]
fn the_earlier_of_run_and_deadline_ends_a_call() {
    let clock = Clock::real();
    let seconds = Duration::from_secs;
    let within = |deadline: Option<u64>, run: Option<u64>| {
        let run = RunBudget::start(None, run.map(seconds), &clock);
        Budget::start(deadline.map(seconds), &clock).within(Arc::new(run))
    };
    for (deadline, run, expected, spends) in [
        (Some(5), Some(9), Some(5), false),
        (Some(9), Some(5), Some(5), true),
        (None, Some(5), Some(5), true),
        (Some(5), None, Some(5), false),
        (None, None, None, false),
    ] {
        let budget = within(deadline, run);
        let remaining = budget
            .remaining(&clock)
            .map(|left| left.as_secs_f64().round());
        assert_eq!(remaining, expected.map(f64::from));
        assert_eq!(budget.spends_run(), spends);
    }
}

//! Who waits for the pace, and for how long.

use super::*;

#[tokio::test(start_paused = true)]
async fn requests_are_spaced_by_the_rate_limit() {
    let pace = Pace::new(16, Some(10.0), Clock::real());
    let start = Instant::now();
    for _ in 0..11 {
        let _place = pace.admit(None).await.unwrap();
    }
    assert_eq!(start.elapsed().as_millis(), 1000);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_one_was_asked_for_holds_all() {
    let pace = Pace::new(16, None, Clock::real());
    let start = Instant::now();
    pace.admit(None)
        .await
        .unwrap()
        .refused(Duration::from_secs(30), true);
    let refused = pace.admit(Some(Duration::from_secs(10))).await.unwrap_err();
    assert_eq!(refused.as_secs(), 30);
    let _place = pace.admit(None).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_comes_too_late_is_left_to_others() {
    let pace = Pace::new(16, Some(1.0), Clock::real());
    let start = Instant::now();
    let _first = pace.admit(None).await.unwrap();
    let too_late = pace.admit(Some(Duration::from_millis(100))).await;
    assert_eq!(too_late.unwrap_err().as_millis(), 1000);
    let _second = pace.admit(None).await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 1000);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_takes_no_turn() {
    let pace = Pace::new(16, Some(1.0), Clock::real());
    let start = Instant::now();
    let _first = pace.admit(None).await.unwrap();
    for _ in 0..10 {
        let dropped = tokio::time::timeout(Duration::from_millis(1), pace.admit(None)).await;
        assert!(dropped.is_err());
    }
    let _second = pace.admit(None).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_are_under_way_than_allowed() {
    let pace = Pace::new(2, None, Clock::real());
    let first = pace.admit(None).await.unwrap();
    let _second = pace.admit(None).await.unwrap();
    let third = tokio::time::timeout(Duration::from_secs(1), pace.admit(None)).await;
    assert!(third.is_err());
    drop(first);
    let _third = pace.admit(None).await.unwrap();
}

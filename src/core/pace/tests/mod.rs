//! Which requests wait for the pace, and for how long.

mod limits;
mod properties;
mod unavailable;

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
    pace.admit(None).await.unwrap().refused(
        RefusedBy::TooManyRequests,
        Duration::from_secs(30),
        true,
    );
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

#[tokio::test(start_paused = true)]
async fn after_a_refusal_no_herd_comes_back() {
    let pace = Pace::new(64, None, Clock::real());
    let places: Vec<_> = futures_util::future::join_all((0..4).map(|_| pace.admit(None)))
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    // Two were accepted at once, and two refused.
    let mut places = places.into_iter();
    for place in places.by_ref().take(2) {
        place.answered(Instant::now());
    }
    for place in places {
        place.refused(RefusedBy::TooManyRequests, Duration::from_secs(1), true);
    }
    let start = Instant::now();
    let mut came = Vec::new();
    for _ in 0..6 {
        pace.admit(None).await.unwrap().answered(Instant::now());
        came.push(start.elapsed().as_secs_f64());
    }
    assert_eq!(came[0], 1.0);
    assert!(came[5] > 1.2 && came[5] < 4.0, "{came:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_before_a_cut_does_not_cut_again() {
    let pace = Pace::new(4, None, Clock::real());
    let mut places = Vec::new();
    for _ in 0..4 {
        places.push(pace.admit(None).await.unwrap());
    }
    places.into_iter().for_each(Admission::overloaded);
    let _first = pace.admit(None).await.unwrap();
    let _second = pace.admit(None).await.unwrap();
    let third = tokio::time::timeout(Duration::from_secs(1), pace.admit(None)).await;
    assert!(third.is_err());
}

#[tokio::test(start_paused = true)]
async fn it_is_never_cut_to_nothing_and_grows_again() {
    let pace = Pace::new(16, None, Clock::real());
    for _ in 0..20 {
        pace.admit(None).await.unwrap().overloaded();
    }
    for _ in 0..100 {
        let places = futures_util::future::join_all((0..16).map(|_| async {
            let place = pace.admit(None).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            place.answered(Instant::now());
        }));
        places.await;
    }
    let places = futures_util::future::join_all((0..16).map(|_| pace.admit(None)));
    let all = tokio::time::timeout(Duration::from_secs(1), places).await;
    assert_eq!(all.unwrap().len(), 16);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_answers_late_is_not_asked_a_few_at_a_time() {
    let pace = Pace::new(64, None, Clock::real());
    let start = Instant::now();
    let places = futures_util::future::join_all((0..64).map(|_| pace.admit(None))).await;
    assert_eq!(places.len(), 64);
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stray_refusal_leaves_no_rate_behind() {
    let pace = Pace::new(4, None, Clock::real());
    let mut places = Vec::new();
    for _ in 0..4 {
        places.push(pace.admit(None).await.unwrap());
    }
    let refused = places.remove(1);
    for place in places {
        place.answered(Instant::now());
    }
    refused.refused(RefusedBy::TooManyRequests, Duration::from_secs(30), true);
    let start = Instant::now();
    for _ in 0..1_000 {
        pace.admit(None).await.unwrap().answered(Instant::now());
    }
    assert_eq!(start.elapsed().as_secs(), 30);
}

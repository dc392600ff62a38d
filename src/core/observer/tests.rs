use super::*;

#[test]
fn untaken_attempts_are_bounded_and_counted() {
    let observer = Observer::default();
    for number in 1..=MOST_BUFFERED + 3 {
        observer.put(Observed {
            request: "/external/users".to_owned(),
            number,
            status: Some(200),
            error: None,
            began: SystemTime::UNIX_EPOCH,
            seconds_taken: 0.0,
            seconds_waited: 0.0,
            again_in: None,
            outages: Vec::new(),
        });
    }
    let (attempts, left_out) = observer.take();
    assert_eq!((attempts.len(), left_out), (MOST_BUFFERED, 3));
    assert_eq!(attempts.first().map(|attempt| attempt.number), Some(4));
    assert_eq!(observer.take(), (Vec::new(), 0));
}

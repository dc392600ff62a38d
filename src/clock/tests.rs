//! What those who wait for a clock notice, by the machine's time and by virtual time.

use std::sync::mpsc;
use std::task::Poll;

use futures_util::future::join_all;
use proptest::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
// Far more than any of these tests takes, and far less than the waits in them.
const SOON: Duration = Duration::from_secs(20);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn virtual_clock() -> Clock {
    let clock = Clock::switchable();
    clock.make_virtual(virtual_start());
    clock
}

/// The future's output, which must come soon by the machine's time.
async fn soon<F: Future>(future: F) -> F::Output {
    time::timeout(SOON, future).await.expect("it did not end")
}

/// Begins a wait, and gives it once it is known to be under way.
async fn begin<F>(clock: &Clock, wait: impl FnOnce(Clock) -> F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (sender, begun) = oneshot::channel();
    let future = wait(clock.clone());
    let task = tokio::spawn(async move {
        let mut future = std::pin::pin!(future);
        let first = future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        sender.send(()).expect("nobody waits for the beginning");
        match first {
            Poll::Ready(output) => output,
            Poll::Pending => future.await,
        }
    });
    begun.await.expect("the task ended");
    task
}

/// An exchange of half a minute without an answer.
async fn unanswered(clock: Clock) -> Result<(), Elapsed> {
    let pending = future::pending::<()>();
    clock.exchange(Some(seconds(30)), pending).await
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A call's sleep of a minute, which something holds up.
async fn held_up(clock: &Clock) -> JoinHandle<()> {
    let sleep = |clock: Clock| async move {
        let _call = clock.call();
        clock.sleep(MINUTE).await;
    };
    let sleeper = begin(clock, sleep).await;
    // Time enough for many a leap.
    time::sleep(Duration::from_millis(50)).await;
    assert!(!sleeper.is_finished());
    sleeper
}

#[tokio::test]
async fn an_exchange_that_gets_on_never_times_out_by_the_waits_of_others() {
    let clock = virtual_clock();
    let (answer, waits) = oneshot::channel::<()>();
    let exchange = |clock: Clock| async move { clock.exchange(Some(seconds(30)), waits).await };
    let exchange = begin(&clock, exchange).await;
    let sleeper = held_up(&clock).await;
    answer.send(()).unwrap();
    assert!(soon(exchange).await.unwrap().is_ok());
    soon(sleeper).await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_at_work_holds_time_up_and_one_that_waits_does_not() {
    let clock = virtual_clock();
    let call = clock.call();
    let sleeper = held_up(&clock).await;
    assert!(soon(clock.wait_for(sleeper, None)).await.unwrap().is_ok());
    drop(call);
}

#[tokio::test]
async fn a_stalled_answer_makes_the_timeout_fire() {
    let clock = virtual_clock();
    let before = clock.now();
    let stalled = clock.hold(None);
    assert_eq!(
        soon(clock.exchange(Some(seconds(30)), stalled)).await,
        Err(Elapsed)
    );
    assert_eq!(clock.now() - before, seconds(30));
    assert!(clock.slept().is_empty());
}

#[tokio::test]
async fn a_hold_that_was_left_behind_does_not_stand_for_the_next_exchange() {
    let clock = virtual_clock();
    let mut left_behind = None;
    let held = async {
        // The mock's side, which does not see yet that the client has gone.
        left_behind = Some(begin(&clock, |clock| async move { clock.hold(None).await }).await);
        future::pending::<()>().await;
    };
    assert_eq!(soon(clock.exchange(Some(MINUTE), held)).await, Err(Elapsed));
    let before = clock.now();
    let next = clock.exchange(Some(MINUTE), async {
        time::sleep(Duration::from_millis(100)).await
    });
    assert_eq!(soon(next).await, Ok(()));
    assert_eq!(clock.now(), before);
    assert!(left_behind.is_some_and(|hold| !hold.is_finished()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_by_another_time_is_not_waited_for_without_end() {
    let clock = virtual_clock();
    for (limit, taken) in [(1, 5), (8, 8)] {
        let began = time::Instant::now();
        let exchange = clock.exchange(Some(seconds(limit)), future::pending::<()>());
        assert_eq!(soon(exchange).await, Err(Elapsed));
        assert_eq!(began.elapsed(), seconds(taken));
    }
}

// The machine's time leaps here whenever nobody is at work, so a limit that went by it would pass.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_held_by_this_clock_is_not_cut_short_by_the_machines_time() {
    let clock = virtual_clock();
    let held = clock.hold(Some(seconds(30)));
    assert_eq!(clock.exchange(Some(MINUTE), held).await, Ok(()));
}

#[tokio::test]
async fn a_bounded_wait_ends_at_its_bound() {
    let clock = virtual_clock();
    let before = clock.now();
    let wait = clock.wait_for(future::pending::<()>(), Some(before + MINUTE));
    assert_eq!(soon(wait).await, Err(Elapsed));
    assert_eq!(clock.now() - before, MINUTE);
    let kept = clock.wait_for(clock.sleep(seconds(59)), Some(before + 2 * MINUTE));
    assert_eq!(soon(kept).await, Ok(()));
    assert_eq!(clock.now() - before, seconds(119));
}

#[tokio::test]
async fn one_who_gave_up_holds_nobody_up_and_is_not_leapt_to() {
    let clock = virtual_clock();
    let before = clock.now();
    let exchange = begin(&clock, unanswered).await;
    let short = begin(&clock, |clock| async move { clock.sleep(seconds(1)).await }).await;
    short.abort();
    assert!(soon(short).await.unwrap_err().is_cancelled());
    exchange.abort();
    soon(clock.sleep(MINUTE)).await;
    assert_eq!(clock.now() - before, MINUTE);
}

#[tokio::test]
async fn time_is_moved_by_hand_over_an_exchange_that_it_would_wait_for() {
    let clock = virtual_clock();
    let exchange = begin(&clock, unanswered).await;
    clock.advance(seconds(29)).unwrap();
    assert!(!exchange.is_finished());
    clock.advance(seconds(1)).unwrap();
    assert_eq!(soon(exchange).await.unwrap(), Err(Elapsed));
    assert_eq!(clock.wall(), virtual_start() + seconds(30));
    assert_eq!(clock.advance(Duration::MAX), Err(MoveError::TooFar));
}

#[tokio::test]
async fn those_who_wait_carry_on_when_the_clock_is_switched() {
    let clock = Clock::switchable();
    let sleeper = begin(&clock, |clock| async move { clock.sleep(MINUTE).await }).await;
    clock.make_virtual(virtual_start());
    soon(sleeper).await.unwrap();
    // Nothing leaps while this is under way.
    let held = begin(&clock, unanswered).await;
    let short = |clock: Clock| async move { clock.sleep(Duration::from_millis(20)).await };
    let short = begin(&clock, short).await;
    clock.make_real();
    soon(short).await.unwrap();
    held.abort();
}

#[tokio::test]
async fn now_never_goes_back_when_the_clock_is_switched() {
    let clock = Clock::switchable();
    let mut last = clock.now();
    for times in 1..=3 {
        clock.make_virtual(virtual_start());
        soon(clock.sleep(MINUTE)).await;
        assert_eq!(clock.slept(), vec![MINUTE; times]);
        assert_eq!(clock.wall(), virtual_start() + MINUTE);
        assert!(clock.now() >= last + MINUTE);
        last = clock.now();
        clock.make_real();
        assert!(clock.now() >= last);
        last = clock.now();
        assert!(clock.wall() > virtual_start());
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_not_switched_goes_by_the_machine() {
    for clock in [Clock::real(), Clock::switchable()] {
        let before = time::Instant::now();
        clock.sleep(seconds(3)).await;
        clock.hold(Some(seconds(4))).await;
        let exchange = clock.exchange(Some(seconds(5)), future::pending::<()>());
        assert_eq!(exchange.await, Err(Elapsed));
        assert_eq!(before.elapsed(), seconds(12));
        assert!(!clock.is_virtual());
        assert_eq!(clock.advance(MINUTE), Err(MoveError::Real));
    }
}

#[test]
fn what_is_recorded_is_bounded() {
    let clock = Clock::switchable();
    for count in 0..10_001 {
        clock.record(seconds(count));
    }
    let slept = clock.slept();
    assert_eq!((slept.len(), slept[0]), (10_000, seconds(1)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_sleeps_wake_in_the_order_of_their_deadlines(
        lengths in prop::collection::vec(0_u64..100_000, 1..20),
    ) {
        let clock = virtual_clock();
        let (before, began) = (clock.now(), std::time::Instant::now());
        let mut woken = Vec::new();
        runtime().block_on(async {
            let (sender, order) = mpsc::channel();
            let (release, all_wait) = oneshot::channel();
            let sleeps = join_all(lengths.iter().map(|length| {
                let (clock, sender) = (&clock, sender.clone());
                let end = before + seconds(*length);
                async move {
                    clock.sleep_until(end).await;
                    assert_eq!(clock.now(), end);
                    sender.send(*length).unwrap();
                }
            }));
            let _ = soon(async {
                // The first holds time up until the last is polled.
                tokio::join!(
                    biased;
                    clock.exchange(None, all_wait),
                    sleeps,
                    async { release.send(()) },
                )
            })
            .await;
            drop(sender);
            woken = order.iter().collect();
        });
        let mut expected = lengths;
        expected.sort_unstable();
        prop_assert_eq!(clock.now() - before, seconds(expected.last().copied().unwrap_or(0)));
        prop_assert_eq!(woken, expected);
        prop_assert!(began.elapsed() < SOON);
    }
}

//! Calls in virtual time: which wait in an outage, which probe, what it costs; and stalls.

use std::sync::atomic::AtomicUsize;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::api::{List, Natural};
use crate::config::agreement::settings;
use crate::decode::page::Row;
use crate::error::ErrorKind;
use backread_clock::virtual_start;

impl Client {
    async fn user(&self, id: Natural) -> Result<Read<Row>, Error> {
        self.get(List::Users, id, &self.budget()).await
    }
}

/// A response that is delayed forever, by the server's clock.
const STALL: &str = "stall";

const DOWN: &str = "502 Bad Gateway";
const BUSY: &str = "503 Service Unavailable";

/// A service that answers each request by its path, its number and the time since the start.
struct Service {
    url: String,
    clock: Clock,
    began: Instant,
    sent: Arc<AtomicUsize>,
}

impl Service {
    async fn start(answers: impl Fn(&str, usize, f64) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let clock = Clock::switchable();
        clock.make_virtual(virtual_start());
        let (began, sent) = (clock.now(), Arc::new(AtomicUsize::new(0)));
        let (time, count, answers) = (clock.clone(), Arc::clone(&sent), Arc::new(answers));
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let (time, count, answers) =
                    (time.clone(), Arc::clone(&count), Arc::clone(&answers));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        head.push(socket.read_u8().await.unwrap());
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap();
                    let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                    let answer = answers(path, number, (time.now() - began).as_secs_f64());
                    if answer == STALL {
                        // Until the client disconnects.
                        tokio::select! {
                            () = time.hold(None) => {}
                            _ = socket.read_u8() => {}
                        }
                    }
                    socket.write_all(answer.as_bytes()).await.unwrap();
                });
            }
        });
        Self {
            url,
            clock,
            began,
            sent,
        }
    }

    /// Each request for which this is so fails with this status; the others are answered.
    async fn failing(
        status: &'static str,
        fails: impl Fn(&str, usize, f64) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |path, number, now| match fails(path, number, now) {
            true => answer(status, "", "down"),
            false => fine(),
        })
        .await
    }

    /// Down from its second request until `seconds` have passed.
    async fn down_for(seconds: f64) -> Self {
        Self::failing(DOWN, move |_, number, now| number > 1 && now < seconds).await
    }

    fn client(&self, options: Options) -> Client {
        let client = Client::new(settings(&self.url, "Zm9vYmFyYmF6"), options).unwrap();
        client.with(|call| call.clock = self.clock.clone())
    }

    /// A client whose first request has been answered.
    async fn client_that_was_answered(&self, options: Options) -> Client {
        let client = self.client(options);
        user(&client).await.unwrap();
        client
    }

    fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    async fn sleep(&self, seconds: f64) {
        let length = Duration::from_secs_f64(seconds);
        self.clock.sleep_between_calls(length).await;
    }

    fn seconds(&self) -> f64 {
        (self.clock.now() - self.began).as_secs_f64()
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}"
    )
}

fn fine() -> String {
    answer("200 OK", "", r#"{"id": 42}"#)
}

async fn user(client: &Client) -> Result<Row, Error> {
    Ok(client.user(Natural::from(42)).await?.value)
}

/// So many calls at once.
async fn users(client: &Client, count: usize) -> Vec<Result<Read<Row>, Error>> {
    let calls = (0..count).map(|_| client.user(Natural::from(42)));
    futures_util::future::join_all(calls).await
}

fn patience(seconds: u64) -> Options {
    Options {
        outage_patience: Duration::from_secs(seconds),
        ..Options::default()
    }
}

#[tokio::test]
async fn an_outage_is_waited_out_by_one_request_that_probes() {
    let service = Service::down_for(20.0).await;
    let client = service.client_that_was_answered(patience(60)).await;
    let before = client.outage_time();
    let read = users(&client, 16).await.into_iter();
    let read: Vec<_> = read.map(Result::unwrap).collect();
    // 16 requests in flight, each again, and probes after 0.5, 1, 2, 4, 5 and 5 seconds.
    assert!(service.sent() <= 1 + 16 + 1 + 8 + 16, "{}", service.sent());
    let seconds = service.seconds();
    assert!((20.0..26.5).contains(&seconds), "{seconds}");
    let most = read.iter().map(|read| read.sent.attempts.len()).max();
    assert!(most <= Some(10), "{most:?}");
    let down = client.outage_seconds_since(before);
    assert!((19.0..26.5).contains(&down), "{down}");
}

#[tokio::test]
async fn a_probe_comes_after_half_a_second_then_twice_as_long_up_to_five() {
    let service = Service::down_for(40.0).await;
    let client = service.client_that_was_answered(patience(60)).await;
    let read = client.user(Natural::from(42)).await.unwrap();
    let [_, first, probes @ ..] = read.sent.attempts.as_slice() else {
        panic!("{:?}", read.sent.attempts);
    };
    assert!(first.seconds_waited <= 0.2, "the usual retry: {first:?}");
    // Every second probe requests another URL, and does not count as an attempt of this call.
    let expected = [0.5, 1.0 + 2.0, 4.0 + 5.0, 5.0 + 5.0, 5.0 + 5.0];
    for (probe, expected) in probes.iter().zip(expected) {
        let waited = probe.seconds_waited / expected;
        assert!((0.8..=1.2).contains(&waited), "{probe:?}, {expected}");
    }
    assert!(probes.len() >= expected.len(), "{}", probes.len());
}

#[tokio::test]
async fn without_patience_retries_or_an_earlier_answer_each_request_fails_for_itself() {
    let no_retries = Options {
        max_retries: 0,
        ..patience(60)
    };
    for (options, was_answered, attempts) in [
        (patience(0), true, 6),
        (no_retries, true, 1),
        (patience(60), false, 6),
    ] {
        let first = if was_answered { 1 } else { 0 };
        let service = Service::failing(DOWN, move |_, number, _| number > first).await;
        let client = service.client(options);
        assert!(!was_answered || user(&client).await.is_ok());
        let error = user(&client).await.unwrap_err();
        assert_eq!(error.attempts.len(), attempts);
        assert_eq!(client.outage_time(), Duration::ZERO);
    }
}

#[tokio::test]
async fn a_mock_that_fails_for_ever_is_not_waited_for_unless_its_clock_leaps_or_it_is_said() {
    let leaping = Clock::switchable();
    leaping.make_virtual(SystemTime::UNIX_EPOCH);
    for (options, clock, expected) in [
        (Options::default(), Clock::real(), 0),
        (Options::default(), Clock::switchable(), 0),
        (Options::default(), leaping, 60),
        (patience(7), Clock::real(), 7),
    ] {
        let client = Client::new(settings("http://127.0.0.1:9", "mock_secret"), options).unwrap();
        let client = client.with(|call| call.clock = clock);
        assert_eq!(client.outage_patience(), Duration::from_secs(expected));
        let of_a_sync = if expected == 60 { 600 } else { expected };
        let sync = client.with(CallOptions::wait_as_a_sync);
        assert_eq!(sync.outage_patience(), Duration::from_secs(of_a_sync));
    }
}

#[tokio::test]
async fn a_deadline_ends_an_outage_at_once_with_what_happened() {
    let service = Service::down_for(f64::INFINITY).await;
    let client = service.client_that_was_answered(patience(60)).await;
    let hurried = client.with(|call| call.options.deadline = Some(Duration::from_secs(10)));
    let began = service.seconds();
    let error = user(&hurried).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::DeadlineExceeded { .. }));
    let cause = error.cause.clone().unwrap();
    assert_eq!(cause.status(), Some(502));
    assert!(service.seconds() - began <= 10.0);
}

#[tokio::test]
async fn a_deadline_ends_the_wait_for_another_call_s_probe() {
    let service = &Service::start(|_, number, _| match number {
        1 => fine(),
        2 | 3 => answer(DOWN, "", "down"),
        _ => STALL.to_owned(),
    })
    .await;
    let client = service.client_that_was_answered(patience(60)).await;
    let hurried = client.with(|call| call.options.deadline = Some(Duration::from_secs(3)));
    let waiting = async {
        let error = user(&hurried).await.unwrap_err();
        let late = matches!(error.kind, ErrorKind::DeadlineExceeded { .. });
        (late, service.seconds())
    };
    let (_, (late, seconds)) = tokio::join!(user(&client), waiting);
    assert!(late && seconds <= 3.0, "{seconds}");
}

#[tokio::test]
async fn a_wait_that_the_service_asks_for_comes_before_the_next_probe() {
    let service = Service::start(|_, number, now| match number > 1 && now < 30.0 {
        true => answer(BUSY, "Retry-After: 30\r\n", ""),
        false => fine(),
    })
    .await;
    let client = service.client_that_was_answered(patience(60)).await;
    assert!(users(&client, 8).await.iter().all(Result::is_ok));
    assert!(service.sent() <= 1 + 8 + 8, "{}", service.sent());
    // The 503s may have meant "too fast", so the pace grows from a slow start.
    let seconds = service.seconds();
    assert!((30.0..33.0).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn a_probe_that_is_dropped_leaves_its_place_to_another() {
    let service = Service::failing(BUSY, |_, number, now| number > 1 && now < 10.0).await;
    let client = service.client_that_was_answered(patience(60)).await;
    let dropped = async {
        let until = service.clock.now() + Duration::from_secs(3);
        let _ = service.clock.wait_for(users(&client, 4), Some(until)).await;
    };
    let (read, ()) = tokio::join!(client.user(Natural::from(42)), dropped);
    read.unwrap();
    assert!(service.seconds() < 17.0, "{}", service.seconds());
}

#[tokio::test]
async fn one_address_that_always_fails_ends_though_others_are_answered() {
    for status in [DOWN, BUSY] {
        let service = &Service::failing(status, |path, _, _| path.ends_with("/7")).await;
        let client = &service.client_that_was_answered(patience(60)).await;
        // Two, because time may leap between a call and a sleep, to the end of the other's sleep.
        let good = |first| async move {
            service.sleep(first).await;
            let mut slowest = Duration::ZERO;
            while service.seconds() < 70.0 {
                let began = client.clock().now();
                user(client).await.unwrap();
                slowest = slowest.max(client.clock().now() - began);
                service.sleep(1.0).await;
            }
            slowest
        };
        let broken = client.user(Natural::from(7));
        let (broken, slowest, other) = tokio::join!(broken, good(0.0), good(0.5));
        let attempts = broken.err().unwrap().attempts.len();
        assert!((6..4 * 7).contains(&attempts), "{attempts}");
        assert!(slowest.max(other) < Duration::from_secs(3), "{slowest:?}");
    }
}

#[tokio::test]
async fn one_address_that_always_fails_is_no_outage_when_nothing_else_is_asked_for() {
    for status in [DOWN, BUSY] {
        let service = Service::failing(status, |path, _, _| path.ends_with("/7")).await;
        let client = service.client_that_was_answered(patience(600)).await;
        let began = service.seconds();
        client.user(Natural::from(7)).await.err().unwrap();
        let seconds = service.seconds() - began;
        assert!(seconds < 30.0, "{seconds}");
        assert!(service.sent() < 40, "{}", service.sent());
    }
}

#[tokio::test]
async fn an_outage_is_over_though_the_list_for_users_still_fails() {
    let service = Service::failing(DOWN, |path, number, now| {
        (number > 1 && now < 10.0) || path.contains("/users?")
    })
    .await;
    let client = service.client_that_was_answered(patience(60)).await;
    user(&client).await.unwrap();
    assert!(service.seconds() < 25.0, "{}", service.seconds());
}

#[tokio::test]
async fn a_deadline_before_the_first_probe_is_not_spent_on_waiting() {
    // Two failures in a row, one of which is answered on its next attempt.
    let service = Service::failing(DOWN, |_, number, _| (2..4).contains(&number)).await;
    let client = service.client_that_was_answered(patience(60)).await;
    let hurried = client.with(|call| call.options.deadline = Some(Duration::from_millis(300)));
    let read = users(&hurried, 20).await;
    let answered = read.iter().filter(|read| read.is_ok()).count();
    assert!(answered >= 18, "{answered}");
    for error in read.iter().filter_map(|read| read.as_ref().err()) {
        assert!(!error.attempts.is_empty());
    }
}

#[tokio::test]
async fn a_client_that_is_closed_waits_and_sends_no_longer() {
    let service = Service::down_for(3_600.0).await;
    let client = service.client_that_was_answered(patience(60)).await;
    let call = client.user(Natural::from(42));
    let close = async {
        // Until the other call has ended, time does not leap.
        let running = service.clock.call();
        service.clock.sleep(Duration::from_secs(4)).await;
        client.close();
        (service.seconds(), service.sent(), running)
    };
    let (read, (closed, sent, _running)) = tokio::join!(call, close);
    assert!(read.is_err());
    assert!(service.seconds() < closed + 0.1);
    assert_eq!(service.sent(), sent);
}

#[tokio::test]
async fn calls_that_wait_for_a_place_do_not_hold_time_up() {
    let service = Service::start(|_, number, _| match number {
        1 => STALL.to_owned(),
        _ => fine(),
    })
    .await;
    let client = service.client(Options {
        max_concurrency: 1,
        ..patience(60)
    });
    let (first, second, third) = tokio::join!(user(&client), user(&client), user(&client));
    assert_eq!(first.and(second).and(third).unwrap().id, Some(42));
}

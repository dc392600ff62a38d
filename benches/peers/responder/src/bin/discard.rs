//! The ceiling: every page of users and of every user's messages, fetched with 16 requests in
//! flight, dropped.
//!
//! Usage: `fetch-and-discard URL USERS MESSAGES FIRST_USER`. Prints rows, seconds, CPU seconds and the peak of
//! memory in MB as JSON, as the readers in Python do.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{env, fs};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

const CONNECTIONS: usize = 16;
const LIMIT: usize = 99;

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Fallible<()> {
    let mut given = env::args().skip(1);
    let url = given
        .next()
        .ok_or("usage: fetch-and-discard URL USERS MESSAGES FIRST_USER")?;
    let users: usize = given.next().ok_or("USERS is missing")?.parse()?;
    let messages: usize = given.next().ok_or("MESSAGES is missing")?.parse()?;
    let first: usize = given.next().ok_or("FIRST_USER is missing")?.parse()?;
    let page = |list: &str, offset| format!("{url}/external/{list}?offset={offset}&limit={LIMIT}");
    let mut pages: Vec<String> = (0..users)
        .step_by(LIMIT)
        .map(|offset| page("users", offset))
        .collect();
    for user in first..first + users {
        let list = format!("users/{user}/messages");
        pages.extend(
            (0..messages)
                .step_by(LIMIT)
                .map(|offset| page(&list, offset)),
        );
    }
    let pages = Arc::new(pages);
    let client = reqwest::Client::new();
    let (began, cpu) = (Instant::now(), cpu_seconds()?);
    let next = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..CONNECTIONS)
        .map(|_| tokio::spawn(read(client.clone(), Arc::clone(&pages), Arc::clone(&next))))
        .collect();
    for reader in readers {
        reader.await??;
    }
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let (rows, peak) = (users * messages, peak_megabytes()?);
    println!(r#"{{"rows": {rows}, "seconds": {seconds}, "cpu": {cpu}, "peak_mb": {peak}}}"#);
    Ok(())
}

async fn read(
    client: reqwest::Client,
    pages: Arc<Vec<String>>,
    next: Arc<AtomicUsize>,
) -> Fallible<()> {
    while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
        let mut answer = client.get(page).send().await?.error_for_status()?;
        while answer.chunk().await?.is_some() {}
    }
    Ok(())
}

/// User and system seconds of this process.
fn cpu_seconds() -> Fallible<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Not `ru_maxrss`: after a fork that starts with what the parent held.
fn peak_megabytes() -> Fallible<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kilobytes.ok_or("no VmHWM")?.parse::<f64>()? * 1024.0 / 1e6)
}

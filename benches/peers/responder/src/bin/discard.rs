//! The ceiling: every page of users and of every user's messages, fetched with 16 requests in
//! flight, dropped.
//!
//! Usage: `fetch-and-discard URL USERS MESSAGES [FROM]`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use speed_wire::{CONNECTIONS, Fallible, Given, Stopwatch};

#[tokio::main]
async fn main() -> Fallible<()> {
    let given = Given::parse()?;
    let pages = Arc::new(given.pages());
    let client = reqwest::Client::new();
    let watch = Stopwatch::start()?;
    let next = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..CONNECTIONS)
        .map(|_| tokio::spawn(read(client.clone(), Arc::clone(&pages), Arc::clone(&next))))
        .collect();
    for reader in readers {
        reader.await??;
    }
    watch.report(given.rows())
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

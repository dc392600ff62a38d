//! JSON to Arrow in Rust by arrow-json: the same pages as `fetch-and-discard`, decoded into record
//! batches of messages, which are kept. A page is decoded by the task that fetched it.
//!
//! Usage: `fetch-and-decode URL USERS MESSAGES`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_json::ReaderBuilder;
use arrow_json::reader::Decoder;
use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
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
    let mut kept = Vec::new();
    for reader in readers {
        kept.extend(reader.await??);
    }
    watch.report(kept.iter().map(RecordBatch::num_rows).sum())
}

async fn read(
    client: reqwest::Client,
    pages: Arc<Vec<String>>,
    next: Arc<AtomicUsize>,
) -> Fallible<Vec<RecordBatch>> {
    let mut decoder = decoder()?;
    let mut batches = Vec::new();
    while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
        let answer = client.get(page).send().await?.error_for_status()?;
        decoder.decode(&answer.bytes().await?)?;
        let page = decoder.flush()?.ok_or("an empty page")?;
        let rows = page.column(0).as_list::<i32>().values();
        // A page of users has no messages.
        if !rows.is_empty() {
            batches.push(rows.as_struct().into());
        }
    }
    Ok(batches)
}

/// A page is one row, with a list of messages.
fn decoder() -> Fallible<Decoder> {
    let row = Field::new_list_field(DataType::Struct(message()), true);
    let page = Schema::new([Arc::new(Field::new_list("messages", row, true))]);
    Ok(ReaderBuilder::new(Arc::new(page)).build_decoder()?)
}

fn message() -> Fields {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let flag = |name| Field::new(name, DataType::Boolean, true);
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    let mut sender = vec![Field::new("id", DataType::Int64, true)];
    sender.extend(
        ["name", "email", "forename", "surname", "picture_thumb_url"]
            .into_iter()
            .map(text),
    );
    Fields::from(vec![
        Field::new("id", DataType::Int64, false),
        text("body"),
        flag("read_by_user"),
        flag("read_by_operator"),
        Field::new("created_at", instant, true),
        text("file_url"),
        flag("auto_invitation"),
        text("sender_type"),
        Field::new_struct("sender", sender, true),
    ])
}

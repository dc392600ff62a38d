//! Fetches by id the rows that a sweep did not show, to tell whether they still exist.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::context::{Context, Event, ReadRows};
use crate::api::{List, Natural, Resource, RowKey};
use crate::budget::Budget;
use crate::client::{Client, Read};
use crate::decode::page::Row;
use crate::error::Error;
use crate::prefetch::Sink;
use crate::walk::crawl::MOST_SIDE_BY_SIDE;
use crate::walk::unread::MOST_IN_A_ROW;

/// Fetches all rows whose ids can be requested, concurrently, as far as the run's budget goes.
pub async fn fetch_rows(context: Context, keys: Vec<RowKey>) -> Result<(), Error> {
    let (client, run, budget) = (&context.client, &context.run, &context.budget);
    // After that many failures in a row, the service does not say which rows are gone.
    let failed_in_a_row = &AtomicU64::new(0);
    let begun = keys.into_iter().take_while(|_| {
        run.has_room(client.clock()) && failed_in_a_row.load(Ordering::Relaxed) < MOST_IN_A_ROW
    });
    stream::iter(begun)
        .map(async |key| match fetch_row(client, key, budget).await {
            Err(error) if !error.is_budget_spent() => {
                // Leave its row as it is: a failed read does not show that the row is gone.
                failed_in_a_row.fetch_add(1, Ordering::Relaxed);
                let given_up = context.unread.give_up(client, budget, error, true).await;
                given_up.map(|_| None)
            }
            fetched => {
                failed_in_a_row.store(0, Ordering::Relaxed);
                run.unless_spent(fetched).map(Option::flatten)
            }
        })
        .buffer_unordered(client.options().max_concurrency.clamp(1, MOST_SIDE_BY_SIDE))
        .try_for_each(async |event| {
            if let Some(event) = event {
                context.outlet.put(event).await;
            }
            Ok(())
        })
        .await
}

/// `None` for a key that cannot be requested, or whose row should stay as it is.
pub(super) async fn fetch_row(
    client: &Client,
    key: RowKey,
    budget: &Budget,
) -> Result<Option<Event>, Error> {
    let natural = |id: i64| Natural::new("id", id).ok();
    let Some(id) = natural(key.id) else {
        return Ok(None);
    };
    let list = match (key.resource, key.user_id.map(natural)) {
        (Resource::Users, _) => List::Users,
        (Resource::Messages, Some(Some(user_id))) => List::Messages { user_id },
        (Resource::Messages, _) => return Ok(None),
    };
    let Read { value, sent } = client.row(list, id, budget).await?;
    let row = value
        .map(|row| Row::alone(row.json, key.resource))
        .transpose()
        .map_err(|fault| sent.misfit(fault))?;
    Ok(match row {
        Some(row) if row.id == Some(key.id) => Some(Event::Rows(ReadRows {
            user_id: key.user_id.filter(|_| list != List::Users),
            rows: vec![row],
            progress: None,
        })),
        // A row without an id may be any row, and a row with another id says nothing about this
        // one.
        Some(_) => None,
        None => Some(Event::RowGone(key)),
    })
}

//! Rows that a sweep did not show, asked for one by one: there, or gone.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};

use crate::core::api::{List, Natural, Resource};
use crate::core::budget::Budget;
use crate::core::client::{Client, Read};
use crate::core::decode::page::Row;
use crate::core::error::Error;
use crate::core::prefetch::Outlet;
use crate::core::walk::crawl::MOST_SIDE_BY_SIDE;
use crate::core::walk::unread::UnreadLists;

/// A row by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowKey {
    pub resource: Resource,
    /// Whose message it is; a user's own id or `None` for a user.
    pub user_id: Option<i64>,
    pub id: i64,
}

/// What became of a row.
#[derive(Debug)]
pub enum Asked {
    Found { user_id: Option<i64>, row: Row },
    Gone(RowKey),
}

/// Asks for every row that can be asked for, side by side.
pub async fn ask_all(
    client: Client,
    keys: Vec<RowKey>,
    outlet: Outlet<Asked>,
) -> Result<(), Error> {
    let side_by_side = client.options().max_concurrency.clamp(1, MOST_SIDE_BY_SIDE);
    let budget = client.budget();
    let unread = UnreadLists::default();
    stream::iter(keys)
        .map(async |key| match ask(&client, key, &budget).await {
            Ok(asked) => {
                unread.note_read();
                Ok(asked)
            }
            // Its row stays as it is: that it cannot be read does not say that it is gone.
            Err(error) => unread
                .give_up(&client, &budget, error, false)
                .await
                .map(|_| None),
        })
        .buffer_unordered(side_by_side)
        .try_for_each(async |asked| {
            if let Some(asked) = asked {
                outlet.put(asked).await;
            }
            Ok(())
        })
        .await
}

/// `None` for a key that cannot be asked for: its row stays as it is.
async fn ask(client: &Client, key: RowKey, budget: &Budget) -> Result<Option<Asked>, Error> {
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
        .map(|json| Row::alone(Arc::new(json), key.resource))
        .transpose()
        .map_err(|fault| sent.misfit(fault))?;
    Ok(match row {
        Some(row) if row.id == Some(key.id) => Some(Asked::Found {
            user_id: key.user_id,
            row,
        }),
        // A row without an id may be any row, and another row says nothing of this one.
        Some(_) => None,
        None => Some(Asked::Gone(key)),
    })
}

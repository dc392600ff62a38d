//! A walk's rows as record batches, built in a separate task from the fetching ones.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::api::Resource;
use crate::arrow::columns::{MESSAGES, MessageColumns, USERS, UserColumns, columns_failure};
use crate::decode::page::Row;
use crate::error::Error;
use crate::prefetch::{Gather, Prefetch, gathered};
use crate::privacy::Privacy;
use crate::walk::{Walk, WalkedPage};

// Pages are combined up to this many rows, so that readers get no tiny batches.
const BATCH_ROWS: usize = 8_192;
// Or this much JSON, because message bodies have no documented maximum size.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// The schema of a resource's batches.
pub fn schema(resource: Resource) -> SchemaRef {
    match resource {
        Resource::Users => Arc::clone(&USERS),
        Resource::Messages => Arc::clone(&MESSAGES),
    }
}

/// The batches of a walk, prefetched by one, without what `privacy` keeps out.
pub fn batches(
    walk: Arc<Walk>,
    resource: Resource,
    privacy: Option<Arc<Privacy>>,
) -> Prefetch<RecordBatch> {
    gathered(Pages(walk), Columns::new(resource, privacy), None)
}

/// A walk as the stream of its pages.
struct Pages(Arc<Walk>);

impl AsRef<Prefetch<WalkedPage>> for Pages {
    fn as_ref(&self) -> &Prefetch<WalkedPage> {
        &self.0.prefetch
    }
}

struct Columns {
    of: ColumnsOf,
    privacy: Option<Arc<Privacy>>,
    rows: usize,
    bytes: usize,
}

enum ColumnsOf {
    Users(Box<UserColumns>),
    Messages(Box<MessageColumns>),
}

impl Columns {
    fn new(resource: Resource, privacy: Option<Arc<Privacy>>) -> Self {
        Self {
            of: match resource {
                Resource::Users => ColumnsOf::Users(Box::default()),
                Resource::Messages => ColumnsOf::Messages(Box::default()),
            },
            privacy,
            rows: 0,
            bytes: 0,
        }
    }
}

impl Gather<WalkedPage> for Columns {
    type Gathered = RecordBatch;

    fn is_empty(&self) -> bool {
        self.rows == 0
    }

    fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    fn take(&mut self, page: WalkedPage) -> Result<(), Error> {
        let user_id = page.user_id.unwrap_or_default();
        let privacy = self.privacy.as_deref();
        // The report counts and names rows that cannot become records.
        let readable = page.rows.iter().filter(|row| row.unreadable.is_none());
        let rows: Vec<&Row> = readable.collect();
        self.rows += rows.len();
        self.bytes += rows.iter().map(|row| row.json().len()).sum::<usize>();
        match (&mut self.of, privacy) {
            (ColumnsOf::Users(users), None) => users.append_rows(&rows),
            (ColumnsOf::Messages(messages), None) => messages.append_rows(user_id, &rows),
            (_, Some(_)) => {
                for row in rows {
                    match &mut self.of {
                        ColumnsOf::Users(users) => users.append_row(row, privacy),
                        ColumnsOf::Messages(messages) => messages.append_row(user_id, row, privacy),
                    }
                    .map_err(|fault| page.sent.misfit(fault))?;
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<RecordBatch, Error> {
        (self.rows, self.bytes) = (0, 0);
        match &mut self.of {
            ColumnsOf::Users(users) => users.finish(),
            ColumnsOf::Messages(messages) => messages.finish(),
        }
        .map_err(columns_failure)
    }
}

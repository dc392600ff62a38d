//! Reads one message list, whole or at its growing end, as events.

use std::sync::{Mutex, PoisonError};

use super::context::{Context, Next, RESUMABLE, note_page_rows};
use super::events::{Event, Held, RowKey, Rows};
use super::growing_end::{GrowingEnd, Grown, Step};
use super::known::Cursor;
use super::list_shape::ListShape;
use super::plan::{Approach, LastReading, Plan};
use super::row_fetches::fetch_row;
use crate::api::{List, Resource};
use crate::decode::page::Row;
use crate::error::Error;
use crate::list_state::{Compared, Hints, Kind, ListRow, ListState, ListedUser};
use crate::prefetch::{Mapped, Sink};
use crate::report::{Certificate, WalkReport};
use crate::timestamp::Timestamp;
use crate::walk::crawl::is_gone;
use crate::walk::failing_pages::fails_for_its_rows;
use crate::walk::{SharedReport, Start, WalkedPage, says_past_end, walk_into};

/// Reads a list as far as the run's budget goes; what is left of it is read by a later run.
pub(super) async fn read_list(context: &Context, next: Next) -> Result<(), Error> {
    let mut reading = ListReading {
        context,
        user: next.user,
        hints: next.user.hints.unwrap_or_default(),
        report: SharedReport::default(),
        began: None,
        before: None,
    };
    match reading.read_to_its_end(next.fetched_first).await {
        Err(error) if error.is_budget_spent() => {
            context.run.note_end(error);
            Ok(())
        }
        read => read,
    }
}

/// A list being read.
struct ListReading<'a> {
    context: &'a Context,
    user: ListedUser,
    hints: Hints,
    report: SharedReport,
    /// When the first request at the growing end was sent.
    began: Option<Timestamp>,
    /// The hints and the rows of the last reading, if it can be compared.
    before: Option<LastReading>,
}

impl ListReading<'_> {
    async fn read_to_its_end(&mut self, fetched_first: bool) -> Result<(), Error> {
        let context = self.context;
        let exists = match fetched_first {
            true => self.fetch_user().await,
            false => Ok(true),
        };
        let read = match exists {
            Ok(true) => self.read().await,
            Ok(false) => return Ok(()),
            Err(error) => Err(error),
        };
        let mut row = match read {
            Ok(Some(row)) => row,
            // There is no reader any more.
            Ok(None) => return Ok(()),
            Err(error) if error.is_not_found() => match self.not_found().await {
                Ok(row) => row,
                Err(error) => self.give_up(error).await?,
            },
            Err(error) => self.give_up(error).await?,
        };
        if row.state.kind != Kind::Unread {
            context.unread.note_read();
        }
        row.compared = self.compared(&row.state);
        context.outlet.put(Event::ListEnded(Box::new(row))).await;
        Ok(())
    }

    fn compared(&self, now: &ListState) -> Compared {
        let hints = self.user.hints.filter(|hints| hints.any());
        // What changed before a reading of the end alone may show only now, if the number of rows is
        // the same.
        let comparable = |before: &LastReading| {
            let whole_after_end = (before.kind, now.kind) == (Kind::End, Kind::Whole);
            now.is_certified() && (!whole_after_end || before.rows != now.rows)
        };
        let both = self.before.filter(comparable).zip(hints);
        Compared {
            moved: both.map(|(before, hints)| hints != before.hints),
            rows_differ: both.is_some_and(|(before, _)| before.rows != now.rows),
            audited: self.context.plan(|plan| plan.is_audited(self.user.id())),
        }
    }

    /// Fetches the user's own row; false if there is no such user any more.
    async fn fetch_user(&mut self) -> Result<bool, Error> {
        let context = self.context;
        let id = self.user.id();
        let key = RowKey {
            resource: Resource::Users,
            user_id: Some(id),
            id,
        };
        let found = fetch_row(&context.client, key, &context.budget).await?;
        let exists = !matches!(found, Some(Event::RowGone(_)));
        if let Some(Event::RowFound { row, .. }) = &found {
            self.hints = Hints::of(row);
            self.user.hints = Some(self.hints);
        }
        if let Some(event) = found {
            context.outlet.put(event).await;
        }
        if !exists {
            context.unread.note_read();
            context.plan(Plan::leave_out);
        }
        Ok(exists)
    }

    async fn read(&mut self) -> Result<Option<ListRow>, Error> {
        let (context, user_id) = (self.context, self.user.id());
        let page_rows = context.counters.page_rows();
        self.before = context.plan(|plan| plan.last_reading(user_id));
        match context.plan(|plan| plan.approach(user_id, page_rows)) {
            Approach::Whole => self.whole().await,
            Approach::GoOn(half_read) => {
                // Those of before the reading began; later ones may have moved during it.
                self.hints = half_read.cursor.hints.unwrap_or_default();
                let (resume, shape) = half_read.resume();
                self.sweep(Start::from(Some(resume)), shape).await
            }
            Approach::GrowingEnd(end) => match self.grow(*end).await {
                Ok(None) => self.whole().await,
                other => other,
            },
        }
    }

    /// Reads the growing end; `None` if that does not show the whole list.
    async fn grow(&mut self, mut end: GrowingEnd) -> Result<Option<ListRow>, Error> {
        let context = self.context;
        let user_id = self.user.user_id;
        let began = *self.began.insert(context.now());
        loop {
            let (offset, limit) = end.request();
            let list = List::Messages { user_id };
            let read = context.client.page(list, offset, limit, &context.budget);
            let read = match read.await {
                Ok(read) => read,
                Err(error) => {
                    // A sweep will tell: the list may have ended before the offset, and a sweep
                    // reads around rows that cannot be read.
                    let swept = (offset > 0 && says_past_end(&error))
                        || error.is_too_large()
                        || fails_for_its_rows(&error);
                    if swept {
                        return Ok(None);
                    }
                    return Err(error);
                }
            };
            if read.sent.is_older_than(began) {
                return Ok(None);
            }
            let received = read.value.rows.len();
            note_page_rows(&context.counters, &read.sent, read.value.limit, received);
            let repeated = end.repeated();
            let step = end.take(&read.value);
            let rows: Vec<Row> = read.value.rows.into_iter().skip(repeated).collect();
            if !rows.is_empty() {
                let rows = Rows {
                    user_id: Some(self.user.id()),
                    rows,
                    cursor: None,
                    held: Held::default(),
                };
                context.outlet.put(Event::Messages(rows)).await;
            }
            match step {
                Step::Request => {}
                Step::Misfit(_) => return Ok(None),
                Step::Fits(grown) => return Ok(Some(self.grown(end.held(), *grown, began))),
            }
        }
    }

    fn grown(&self, held: &ListState, grown: Grown, began: Timestamp) -> ListRow {
        ListRow {
            user_id: self.user.id(),
            total: i64::try_from(grown.rows).ok(),
            reason: None,
            compared: Compared::default(),
            state: ListState {
                kind: Kind::End,
                rows: grown.rows,
                certificate: Certificate::Counted,
                checked_at: Some(began),
                swept_at: held.swept_at,
                hints: self.user.hints.unwrap_or(held.hints),
                ends: Some(grown.ends),
            },
        }
    }

    async fn whole(&self) -> Result<Option<ListRow>, Error> {
        self.sweep(Start::Beginning, ListShape::default()).await
    }

    fn list(&self) -> List {
        List::Messages {
            user_id: self.user.user_id,
        }
    }

    /// Reads the list to its end; `None` if there is no reader any more.
    async fn sweep(&self, from: Start, shape: ListShape) -> Result<Option<ListRow>, Error> {
        let context = self.context;
        let shape = Mutex::new(shape);
        let (user_id, report, hints) = (self.user.id(), &self.report, self.hints);
        let convert = |page: WalkedPage| {
            note_page_rows(&context.counters, &page.sent, page.limit, page.rows.len());
            let mut shape = shape.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(offset) = page.offset.and_then(|offset| u64::try_from(offset).ok()) {
                shape.take(offset, &page.rows);
            }
            let cursor = page.checkpoint.map(|walk| {
                Box::new(Cursor {
                    walk: *walk,
                    shape: shape.clone(),
                    hints: Some(hints),
                })
            });
            Event::Messages(Rows {
                user_id: Some(user_id),
                rows: page.rows,
                cursor,
                held: Held::by(&report.get()),
            })
        };
        let (client, budget) = (&context.client, &context.budget);
        let sink = Mapped {
            sink: &context.outlet,
            convert,
        };
        walk_into(client, self.list(), RESUMABLE, from, budget, report, &sink).await?;
        let report = self.report.get();
        if report.ended_at.is_none() {
            return Ok(None);
        }
        let mut row = self.row(&report, Kind::Whole);
        let is_long = row.state.rows >= context.counters.page_rows();
        if is_long {
            let shape = shape.into_inner().unwrap_or_else(PoisonError::into_inner);
            row.state.ends = shape.ends(row.state.rows);
        }
        Ok(Some(row))
    }

    /// Gives up an unreadable list: it stays as it was, and is read first in the next run.
    async fn give_up(&self, error: Error) -> Result<ListRow, Error> {
        let context = self.context;
        let again = context.plan(|plan| plan.was_unread(self.user.id()));
        let given_up = context
            .unread
            .give_up(&context.client, &context.budget, error, again);
        let reason = given_up.await?;
        let mut report = self.report.get();
        report.doubt(reason);
        report.end(context.now());
        Ok(self.row(&report, Kind::Unread))
    }

    /// The messages were not found: either the user is gone, or the list is in doubt.
    async fn not_found(&self) -> Result<ListRow, Error> {
        let context = self.context;
        let gone = is_gone(&context.client, self.user.user_id, &context.budget).await?;
        let mut report = self.report.get();
        let (kind, reason) = match gone {
            true => (
                Kind::Gone,
                "the user was gone when the messages were requested",
            ),
            false => (
                Kind::Unread,
                "its messages were not found, although the user exists",
            ),
        };
        report.doubt(reason.to_owned());
        report.end(context.now());
        Ok(self.row(&report, kind))
    }

    fn row(&self, report: &WalkReport, kind: Kind) -> ListRow {
        let mut state = ListState::of(report, kind, self.hints);
        state.checked_at = self.began.or(state.checked_at);
        ListRow::of(self.user.id(), report, state)
    }
}

//! Reads one message list, whole or at its growing end, as events.

use std::sync::{Mutex, PoisonError};

use super::context::{Context, Next, RESUMABLE, note_page_rows};
use super::end_rows::{EndRows, is_plain};
use super::events::{Event, RowKey, Rows};
use super::growing_end::{GrowingEnd, Grown, Step, end_digest};
use super::known::Cursor;
use super::list_shape::ListShape;
use super::plan::{Approach, Plan};
use super::row_fetches::fetch_row;
use crate::api::{List, Resource};
use crate::client::{FirstPage, Read};
use crate::decode::page::Row;
use crate::error::Error;
use crate::list_state::{Hints, Kind, ListRow, ListState, ListedUser};
use crate::page_digest::DigestKey;
use crate::prefetch::{Mapped, Sink};
use crate::report::{Certificate, WalkReport};
use crate::timestamp::Timestamp;
use crate::walk::crawl::is_gone;
use crate::walk::failing_row::{fails_for_its_rows, is_any_read};
use crate::walk::page_request::PageRequest;
use crate::walk::{SharedReport, Start, WalkedPage, says_past_end, sweep_from};

/// Reads a list as far as the run's budget goes; what is left of it is read by a later run.
pub(super) async fn read_list(context: &Context, next: Next) -> Result<(), Error> {
    let mut reading = ListReading {
        context,
        user: next.user,
        hints: next.user.hints.unwrap_or_default(),
        report: SharedReport::new(WalkReport::not_read_yet()),
        end_requests: 0,
        began: None,
        plain: true,
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
    /// Requests sent at the growing end, and below, when the first was sent.
    end_requests: u64,
    began: Option<Timestamp>,
    /// Whether all rows were plain, see `is_plain`.
    plain: bool,
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
        let row = match read {
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
        context.outlet.put(Event::ListEnded(Box::new(row))).await;
        Ok(())
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
        match context.plan(|plan| plan.approach(user_id, page_rows)) {
            Approach::Whole(held) => self.whole(held).await,
            Approach::GoOn(going_on) => {
                self.hints = self.user.hints.or(going_on.hints).unwrap_or_default();
                let from = Start::from(Some(going_on.resume));
                self.sweep(from, going_on.shape).await
            }
            Approach::GrowingEnd(end) => match self.grow(*end).await {
                Ok(None) => self.whole(None).await,
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
                    self.end_requests += error.attempts.len() as u64;
                    // A sweep will tell: the list may have ended before the offset, and a sweep
                    // reads around rows that cannot be read.
                    let swept = (offset > 0 && says_past_end(&error)) || error.is_too_large();
                    if swept || self.fails_for_some_rows(&error).await? {
                        return Ok(None);
                    }
                    return Err(error);
                }
            };
            self.end_requests += read.sent.attempts.len() as u64;
            if read.sent.is_older_than(began) {
                return Ok(None);
            }
            let received = read.value.rows.len();
            note_page_rows(&context.counters, &read.sent, read.value.limit, received);
            let repeated = end.repeated();
            let step = end.take(&read.value);
            // Rows of a list that is not finished like this must be committed as seen.
            let unchanged = match step {
                Step::Fits(_) => end.unchanged_rows(),
                Step::Request | Step::Misfit(_) => 0,
            };
            let rows: Vec<Row> = read
                .value
                .rows
                .into_iter()
                .skip(repeated.max(unchanged))
                .collect();
            if !rows.is_empty() {
                let rows = Rows {
                    user_id: Some(self.user.id()),
                    rows,
                    cursor: None,
                };
                context.outlet.put(Event::Messages(rows)).await;
            }
            match step {
                Step::Request => {}
                Step::Misfit(_) => return Ok(None),
                Step::Fits(grown) => {
                    let mut row = self.grown(end.held(), *grown, began);
                    row.state.digest = end.digest_for(&row.state);
                    row.rows_skipped = unchanged as u64;
                    return Ok(Some(row));
                }
            }
        }
    }

    /// Whether a page failed, and some other row of the list can be read.
    async fn fails_for_some_rows(&mut self, error: &Error) -> Result<bool, Error> {
        if !fails_for_its_rows(error) {
            return Ok(false);
        }
        let Context { client, budget, .. } = self.context;
        let mut request = PageRequest::new(client, self.list(), budget);
        let read = is_any_read(&mut request).await;
        self.end_requests += request.attempts.len() as u64;
        read
    }

    fn grown(&self, held: &ListState, grown: Grown, began: Timestamp) -> ListRow {
        ListRow {
            user_id: self.user.id(),
            state: ListState {
                rows: grown.rows,
                total: i64::try_from(grown.rows).ok(),
                certificate: Certificate::Counted,
                started_at: Some(began),
                ended_at: Some(self.context.now()),
                kind: Kind::End,
                swept_at: held.swept_at,
                grows: held.grows,
                first_ids: grown.first_ids,
                last_ids: grown.last_ids,
                unread_from: grown.unread_from,
                hints: self.user.hints.unwrap_or(held.hints),
                digest: None,
            },
            unchanged: false,
            rows_skipped: 0,
            requests: self.end_requests,
            reason: None,
        }
    }

    /// Reads the whole list, unless its one page is the same as when it was `held`.
    async fn whole(&mut self, held: Option<Box<ListState>>) -> Result<Option<ListRow>, Error> {
        let context = self.context;
        let shape = ListShape::default();
        let Some(key) = self.digest_key() else {
            return self.sweep(Start::Beginning, shape).await;
        };
        let (list, limit) = (self.list(), RESUMABLE.page_size);
        let known = held.as_ref().and_then(|held| held.digest);
        let began = context.now();
        let budget = &context.budget;
        let read = context.client.first_page(list, limit, key, known, budget);
        let (value, sent) = match read.await {
            Ok(Read { value, sent }) => (value, sent),
            Err(error) => return self.sweep(Start::FirstPage(began, Err(error)), shape).await,
        };
        match (value, held) {
            (FirstPage::Unchanged, _) if sent.is_older_than(began) => {
                self.end_requests += sent.attempts.len() as u64;
                self.sweep(Start::Beginning, shape).await
            }
            (FirstPage::Unchanged, held) => {
                let requests = self.end_requests + sent.attempts.len() as u64;
                Ok(held.map(|held| self.unchanged(*held, began, requests)))
            }
            (FirstPage::Changed(value, digest), _) => {
                let may_be_skipped = value.text.repaired == 0;
                let first = Start::FirstPage(began, Ok(Read { value, sent }));
                let mut row = self.sweep(first, shape).await?;
                if may_be_skipped
                    && self.holds_all(&self.report.get())
                    && let Some(row) = row.as_mut()
                {
                    row.state.digest = Some(digest);
                }
                Ok(row)
            }
        }
    }

    /// Whether one page held the whole list, and nothing that each run must report.
    fn holds_all(&self, report: &WalkReport) -> bool {
        report.certificate == Certificate::Snapshot
            && report.pages == 1
            && (report.repaired_text, report.repeats) == (0, 0)
            && self.plain
    }

    fn unchanged(&self, held: ListState, began: Timestamp, requests: u64) -> ListRow {
        let now = self.context.now();
        ListRow {
            user_id: self.user.id(),
            rows_skipped: held.rows,
            state: ListState {
                started_at: Some(self.began.unwrap_or(began)),
                ended_at: Some(now),
                swept_at: Some(now),
                hints: self.user.hints.unwrap_or(held.hints),
                ..held
            },
            unchanged: true,
            requests,
            reason: None,
        }
    }

    fn digest_key(&self) -> Option<DigestKey> {
        self.context.plan(|plan| plan.digest_key())
    }

    fn list(&self) -> List {
        List::Messages {
            user_id: self.user.user_id,
        }
    }

    /// Reads the list to its end; `None` if there is no reader any more.
    async fn sweep(&mut self, from: Start, shape: ListShape) -> Result<Option<ListRow>, Error> {
        let context = self.context;
        let most = usize::from(RESUMABLE.page_size.get());
        let shown = Mutex::new(Shown {
            shape,
            end_rows: self.digest_key().map(|key| EndRows::new(key, most)),
            plain: true,
        });
        let (user_id, report, hints) = (self.user.id(), self.report.clone(), self.hints);
        let convert = |page: WalkedPage| {
            note_page_rows(&context.counters, &page.sent, page.limit, page.rows.len());
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.take(&page);
            let cursor = page
                .checkpoint
                .and_then(|walk| Cursor::new(*walk, shown.shape.clone(), Some(hints)).to_text())
                .map(|cursor| (cursor, report.get().started_at));
            Event::Messages(Rows {
                user_id: Some(user_id),
                rows: page.rows,
                cursor,
            })
        };
        let (client, budget) = (&context.client, &context.budget);
        let sink = Mapped {
            sink: &context.outlet,
            convert,
        };
        let (list, report) = (self.list(), &self.report);
        sweep_from(client, list, RESUMABLE, from, budget, report, &sink).await?;
        let shown = shown.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (shape, end_rows) = (shown.shape, shown.end_rows);
        self.plain = shown.plain;
        let report = self.report.get();
        if report.ended_at.is_none() {
            return Ok(None);
        }
        let mut row = self.row(&report, Kind::Whole);
        row.state.grows = shape.grows();
        row.state.first_ids = shape.first_ids();
        row.state.last_ids = shape.last_ids();
        row.state.unread_from = shape.unread_from(report.distinct, row.state.grows);
        if let Some(end_rows) = end_rows.filter(|_| report.certificate == Certificate::Counted) {
            let page_rows = context.counters.page_rows();
            row.state.digest = end_digest(&end_rows, &row.state, page_rows);
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
        state.started_at = self.began.or(state.started_at);
        ListRow {
            user_id: self.user.id(),
            state,
            unchanged: false,
            rows_skipped: 0,
            requests: self.end_requests + report.requests,
            reason: report.reason.clone(),
        }
    }
}

/// What the pages of a sweep showed.
struct Shown {
    shape: ListShape,
    /// `None` without a key.
    end_rows: Option<EndRows>,
    plain: bool,
}

impl Shown {
    fn take(&mut self, page: &WalkedPage) {
        self.plain &= page.rows.iter().all(is_plain);
        let natural = |number: Option<i64>| u64::try_from(number?).ok();
        let Some(offset) = natural(page.offset) else {
            return;
        };
        self.shape.take(offset, &page.rows);
        if let (Some(end_rows), Some(total)) = (self.end_rows.as_mut(), natural(page.total)) {
            end_rows.take(offset, &page.rows, total);
        }
    }
}

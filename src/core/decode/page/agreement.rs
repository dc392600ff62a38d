//! Compares the two parsers of a page; for the tests and the fuzzer.

use std::sync::Arc;

use bytes::Bytes;

use super::{Page, Plain, Row};
use crate::api::Resource;
use crate::decode::json::Text;

/// How many rows of a page are plain; panics if serde_json reads the body differently.
pub fn check(body: &[u8], resource: Resource) -> usize {
    let body = Bytes::copy_from_slice(body);
    let page = Page::of_body(body.clone(), None, resource);
    let reference = Page::read_by_serde(Text::repair(body, None), resource);
    let (Ok(page), Ok(reference)) = (&page, &reference) else {
        assert_eq!(page.err(), reference.err());
        return 0;
    };
    assert_eq!(
        (page.limit, page.offset, page.total),
        (reference.limit, reference.offset, reference.total)
    );
    assert_eq!(
        (&page.text.json, page.text.repaired),
        (&reference.text.json, reference.text.repaired)
    );
    assert_eq!(page.rows.len(), reference.rows.len());
    for (row, reference) in page.rows.iter().zip(&reference.rows) {
        check_row(row, reference);
    }
    page.rows.first().map_or(0, plain_rows)
}

/// The same for a body that is a single record.
pub fn check_alone(body: &[u8], resource: Resource) -> usize {
    let json = Text::repair(Bytes::copy_from_slice(body), None).json;
    let row = Row::alone(Arc::clone(&json), resource);
    let reference = Row::alone_by_serde(json, resource);
    let (Ok(row), Ok(reference)) = (&row, &reference) else {
        assert_eq!(row.err(), reference.err());
        return 0;
    };
    check_row(row, reference);
    plain_rows(row)
}

fn check_row(row: &Row, reference: &Row) {
    assert_eq!((row.json(), row.id), (reference.json(), reference.id));
    assert_eq!(
        (row.unreadable, row.odd_values),
        (reference.unreadable, reference.odd_values),
        "{}",
        row.json()
    );
    check_tolerance(row);
    match row.resource() {
        Resource::Users => assert_eq!(row.user(), reference.user(), "{}", row.json()),
        Resource::Messages => {
            assert_eq!(row.message(), reference.message(), "{}", row.json());
        }
    }
}

/// Whatever its other fields hold, a readable row becomes a record.
fn check_tolerance(row: &Row) {
    let read = match row.resource() {
        Resource::Users => row.user().map(|user| (user.id, user.odd_values())),
        Resource::Messages => row
            .message()
            .map(|message| (message.id, message.odd_values())),
    };
    match row.unreadable {
        None => assert_eq!(
            read.ok(),
            row.id.map(|id| (id, row.odd_values)),
            "{}",
            row.json()
        ),
        Some(_) => assert!(read.is_err(), "{}", row.json()),
    }
}

/// How many rows of this row's page are plain.
fn plain_rows(row: &Row) -> usize {
    match &row.source.plain {
        Plain::Users(users) => users.iter().flatten().count(),
        Plain::Messages(messages) => messages.iter().flatten().count(),
        Plain::None => 0,
    }
}

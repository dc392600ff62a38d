//! Rows that are edited and move while a list is read.

use super::*;

/// Walks a list ordered by `updated_at`, ascending; one row is updated after some requests.
fn walk_by_updated_at(rows: i64, after: usize, updated: usize) -> (BTreeSet<i64>, WalkReport) {
    let row = |id: i64, updated_at: i64| format!(r#"{{"id":{id},"updated_at":{updated_at}}}"#);
    let mut list: Vec<(i64, i64)> = (1..=rows).map(|id| (id, id)).collect();
    let mut walk = ListWalk::new(List::Users, WalkSettings::WHOLE, Timestamp::now());
    let mut given = BTreeSet::new();
    let mut requests = 0;
    while let Some(request) = walk.next_request() {
        if requests == after {
            let (id, _) = list.remove(updated);
            list.push((id, rows + 1));
        }
        requests += 1;
        let response = match request.fetch {
            Fetch::Page { offset, limit } => {
                let start = list.len().min(offset as usize);
                let end = list.len().min(start + usize::from(limit.get()));
                let users: Vec<String> = list[start..end]
                    .iter()
                    .map(|(id, at)| row(*id, *at))
                    .collect();
                let users: serde_json::Value = format!("[{}]", users.join(",")).parse().unwrap();
                let total = list.len();
                Response::Page(page(
                    json!({"limit": limit.get(), "offset": offset, "total": total, "users": users}),
                ))
            }
            Fetch::Row { id } => Response::Row {
                row: list
                    .iter()
                    .find(|(held, _)| *held == id)
                    .map(|(id, at)| Text::repair(row(*id, *at).into(), None)),
                sent: sent(),
            },
        };
        walk.take(request, response);
        while let Some(page) = walk.next_page() {
            given.extend(page.rows.iter().filter_map(|row| row.id));
        }
    }
    (given, walk.report)
}

#[test]
fn a_row_that_is_updated_inside_an_overlap_is_known_to_have_moved() {
    for updated in [96, 97, 98] {
        let (given, report) = walk_by_updated_at(200, 1, updated);
        assert_eq!(given.len(), 200);
        assert_eq!(report.reason, None);
        assert_eq!(report.certificate, Certificate::Linked);
    }
}

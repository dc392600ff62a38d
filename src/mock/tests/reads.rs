//! The mock's responses.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ACCEPT, connect, exchange, get, request, right_headers, started};
use crate::mock::routes::Route;
use crate::mock::server::{MockServer, Options};

#[test]
fn the_four_reads_answer_as_documented() {
    let (server, world) = started(120);
    let page = get(&server, "/external/users?limit=99&offset=20");
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    assert!(
        page.body
            .starts_with(r#"{"limit":99,"offset":20,"total":120,"users":[{"id":"#)
    );
    let ids = world.view().user_ids();
    let expected: Vec<Value> = ids.iter().skip(20).take(99).map(|id| json!(id)).collect();
    let listed = page
        .json()
        .get("users")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let listed: Vec<Value> = listed
        .iter()
        .filter_map(|user| user.get("id").cloned())
        .collect();
    assert_eq!(listed, expected);

    let longest = ids
        .iter()
        .max_by_key(|id| world.view().total_messages(**id));
    let user_id = longest.copied().unwrap_or_default();
    let user = get(&server, &format!("/external/users/{user_id}"));
    assert_eq!(Some(user.body), world.user_json(user_id));
    let total = world.view().total_messages(user_id).unwrap_or_default();
    let messages = get(&server, &format!("/external/users/{user_id}/messages"));
    let start = format!(r#"{{"limit":25,"offset":0,"total":{total},"messages":[{{"id":"#);
    assert!(messages.body.starts_with(&start), "{}", messages.body);
    for message_id in world.view().message_ids(user_id).unwrap_or_default() {
        let message = get(
            &server,
            &format!("/external/users/{user_id}/messages/{message_id}"),
        );
        assert_eq!(Some(message.body), world.message_json(user_id, message_id));
    }

    let past = get(
        &server,
        "/external/users?offset=9223372036854775807&limit=1",
    );
    assert_eq!(
        past.body,
        r#"{"limit":1,"offset":9223372036854775807,"total":120,"users":[]}"#
    );
}

#[test]
fn the_interface_is_described_without_a_secret() {
    let (server, _) = started(3);
    let reply = exchange(&mut connect(&server), &request("GET", "/openapi.json", &[]));
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json().get("openapi"), Some(&json!("3.1.0")));
    assert_eq!(reply.body.matches(ACCEPT).count(), 4);
}

#[test]
fn the_served_document_has_the_media_type_of_the_servers_vendor() {
    let options = Options {
        vendor: Some("acme".into()),
        ..Options::default()
    };
    let (_, world) = started(3);
    let server = MockServer::start(world, options);
    let server = server.unwrap_or_else(|error| unreachable!("{error}"));
    let reply = exchange(&mut connect(&server), &request("GET", "/openapi.json", &[]));
    assert_eq!(
        reply.body.matches("application/vnd.acme.v1+json").count(),
        4
    );
    assert!(!reply.body.contains(ACCEPT));
}

#[test]
fn changes_show_in_the_next_answer_on_the_same_connection() {
    let (server, world) = started(3);
    let mut stream = connect(&server);
    let list = request("GET", "/external/users?limit=1", &right_headers(&server));
    assert!(exchange(&mut stream, &list).body.contains(r#""total":3"#));
    assert!(world.add_users(2).is_ok());
    assert!(exchange(&mut stream, &list).body.contains(r#""total":5"#));
    assert!(world.remove_user(42).is_ok());
    let reply = exchange(&mut stream, &list);
    assert!(reply.body.contains(r#""total":4"#) && !reply.body.contains(r#""id":42,"#));
}

#[test]
fn every_request_is_counted_once() {
    let (server, _) = started(3);
    let workers: Vec<_> = (0..4)
        .map(|_| (connect(&server), right_headers(&server)))
        .map(|(mut stream, headers)| {
            std::thread::spawn(move || {
                let paths = [
                    "/external/users",
                    "/external/users/42",
                    "/external/users/9",
                    "/x",
                ];
                for path in paths.into_iter().cycle().take(400) {
                    exchange(&mut stream, &request("GET", path, &headers));
                }
            })
        })
        .collect();
    for worker in workers {
        assert!(worker.join().is_ok());
    }
    let routes = server.service().main().counters.by_route();
    let count = |wanted| {
        routes
            .iter()
            .find(|(route, _)| *route == wanted)
            .map(|(_, count)| *count)
    };
    assert_eq!(count(Route::Users), Some(400));
    assert_eq!(count(Route::User), Some(800));
    assert_eq!(count(Route::Other), Some(400));
    assert_eq!(count(Route::Message), Some(0));
    let statuses: Vec<(u16, u64)> = server
        .service()
        .main()
        .counters
        .by_status()
        .into_iter()
        .collect();
    assert_eq!(statuses, [(200, 800), (404, 800)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_page_is_the_slice_of_the_list_that_was_asked_for(offset in 0_u64..140, limit in 1_u64..100) {
        let (server, world) = started(120);
        let ids = world.view().user_ids();
        let expected: Vec<Value> =
            ids.iter().skip(offset as usize).take(limit as usize).map(|id| json!(id)).collect();
        let page = get(&server, &format!("/external/users?limit={limit}&offset={offset}")).json();
        prop_assert_eq!(page.get("total"), Some(&json!(120)));
        let users = page.get("users").and_then(Value::as_array).cloned().unwrap_or_default();
        let found: Vec<Value> = users.iter().filter_map(|user| user.get("id").cloned()).collect();
        prop_assert_eq!(found, expected);
    }
}

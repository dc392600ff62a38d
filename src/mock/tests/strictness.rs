//! What the mock refuses, and what it accepts.

use serde_json::{Value, json};

use super::{ACCEPT, connect, exchange, request, right_headers, started};

#[test]
fn requests_that_the_interface_does_not_allow_are_refused() {
    let (server, world) = started(3);
    let [bearer, accept] = right_headers(&server);
    let right = [bearer.clone(), accept.clone()];
    let user_id = 42;
    let message_id = world
        .add_messages(user_id, 1)
        .unwrap_or_default()
        .pop()
        .unwrap_or_default();
    let user = format!("/external/users/{user_id}");
    let message = format!("{user}/messages/{message_id}");
    let list = "/external/users";
    let query = |query: &str| format!("{list}?{query}");
    let with = |first: &str, second: &str| [first.to_owned(), second.to_owned()];
    let table: Vec<(&str, String, [String; 2], u16, &str)> = vec![
        // Secret.
        (
            "GET",
            list.into(),
            with("X: y", &accept),
            401,
            "unauthorized",
        ),
        (
            "GET",
            list.into(),
            with("Authorization: Bearer wrong", &accept),
            401,
            "unauthorized",
        ),
        (
            "GET",
            list.into(),
            with(&bearer.to_lowercase(), &accept),
            401,
            "unauthorized",
        ),
        (
            "GET",
            list.into(),
            with(&format!("{bearer}x"), &accept),
            401,
            "unauthorized",
        ),
        (
            "GET",
            list.into(),
            with(&format!("{bearer}\r\n{bearer}"), &accept),
            401,
            "unauthorized",
        ),
        // Accept.
        (
            "GET",
            list.into(),
            with(&bearer, "X: y"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, "Accept: */*"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, "Accept: application/*"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, "Accept: application/json"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, &format!("{accept};q=0")),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            list.into(),
            with(&bearer, "Accept: application/vnd.other.v1+json"),
            406,
            "not_acceptable",
        ),
        // Query.
        ("GET", query("limit=0"), right.clone(), 422, "invalid_limit"),
        (
            "GET",
            query("limit=100"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        (
            "GET",
            query("limit=-1"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        (
            "GET",
            query("limit=+5"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        (
            "GET",
            query("limit=5.0"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        ("GET", query("limit="), right.clone(), 422, "invalid_limit"),
        ("GET", query("limit"), right.clone(), 422, "invalid_limit"),
        (
            "GET",
            query("limit=05"),
            right.clone(),
            422,
            "invalid_limit",
        ),
        (
            "GET",
            query("limit=5&limit=5"),
            right.clone(),
            422,
            "repeated_argument",
        ),
        (
            "GET",
            query("offset=-1"),
            right.clone(),
            422,
            "invalid_offset",
        ),
        (
            "GET",
            query("offset=x"),
            right.clone(),
            422,
            "invalid_offset",
        ),
        (
            "GET",
            query("offset=9223372036854775808"),
            right.clone(),
            422,
            "invalid_offset",
        ),
        (
            "GET",
            query("page=2"),
            right.clone(),
            422,
            "unknown_argument",
        ),
        (
            "GET",
            query("Limit=2"),
            right.clone(),
            422,
            "unknown_argument",
        ),
        (
            "GET",
            format!("{user}?limit=5"),
            right.clone(),
            422,
            "unknown_argument",
        ),
        (
            "GET",
            format!("{message}?x"),
            right.clone(),
            422,
            "unknown_argument",
        ),
        (
            "GET",
            "/openapi.json?x=1".into(),
            right.clone(),
            422,
            "unknown_argument",
        ),
        // Look-up.
        (
            "GET",
            "/external/users/41".into(),
            right.clone(),
            404,
            "unknown_user",
        ),
        (
            "GET",
            "/external/users/41/messages".into(),
            right.clone(),
            404,
            "unknown_user",
        ),
        (
            "GET",
            format!("/external/users/41/messages/{message_id}"),
            right.clone(),
            404,
            "unknown_user",
        ),
        (
            "GET",
            format!("{user}/messages/1"),
            right.clone(),
            404,
            "unknown_message",
        ),
        (
            "GET",
            "/external/users/abc".into(),
            right.clone(),
            404,
            "unknown_path",
        ),
        ("GET", "/".into(), right.clone(), 404, "unknown_path"),
        // Method.
        ("POST", list.into(), right.clone(), 405, "wrong_method"),
        ("PUT", user.clone(), right.clone(), 405, "wrong_method"),
        ("PATCH", message.clone(), right.clone(), 405, "wrong_method"),
        (
            "DELETE",
            format!("{user}/messages"),
            right.clone(),
            405,
            "wrong_method",
        ),
        ("OPTIONS", list.into(), right.clone(), 405, "wrong_method"),
        (
            "POST",
            "/openapi.json".into(),
            right.clone(),
            405,
            "wrong_method",
        ),
        // Path before method, method before secret, secret before Accept, Accept before query,
        // query before look-up.
        (
            "POST",
            "/nowhere".into(),
            with("X: y", "Y: z"),
            404,
            "unknown_path",
        ),
        (
            "POST",
            list.into(),
            with("X: y", "Y: z"),
            405,
            "wrong_method",
        ),
        (
            "GET",
            query("limit=0"),
            with("X: y", "Accept: */*"),
            401,
            "unauthorized",
        ),
        (
            "GET",
            query("limit=0"),
            with(&bearer, "Accept: */*"),
            406,
            "not_acceptable",
        ),
        (
            "GET",
            "/external/users/41?x=1".into(),
            right.clone(),
            422,
            "unknown_argument",
        ),
    ];
    for (method, path, headers, status, code) in table {
        let reply = exchange(&mut connect(&server), &request(method, &path, &headers));
        let error = reply.json().get("error").cloned().unwrap_or_default();
        let found = (reply.status, error.get("code").and_then(Value::as_str));
        assert_eq!(found, (status, Some(code)), "{method} {path} {headers:?}");
        assert_eq!(error.get("status"), Some(&json!(status)));
        assert_eq!(error.get("guess"), Some(&json!(true)));
        assert!(!reply.body.contains(server.secret()), "{}", reply.body);
        assert_eq!(reply.header("www-authenticate").is_some(), status == 401);
        assert_eq!(reply.header("allow"), (status == 405).then_some("GET"));
        assert!(reply.header("x-request-id").is_some());
    }
    let head = exchange(&mut connect(&server), &request("HEAD", list, &right));
    assert_eq!(head.status, 405);
}

#[test]
fn harmless_ways_to_write_a_request_are_accepted() {
    let (server, _) = started(3);
    let [bearer, accept] = right_headers(&server);
    for accept in [
        format!("accept: text/html, {ACCEPT};q=0.5"),
        format!("Accept: text/html\r\nAccept: {}", ACCEPT.to_uppercase()),
        accept.clone(),
    ] {
        let right = [bearer.clone(), accept];
        for path in [
            "/external/users",
            "/external/users?",
            "/external/users?%6Cimit=%35&",
        ] {
            let reply = exchange(&mut connect(&server), &request("GET", path, &right));
            assert_eq!(reply.status, 200, "{path} {right:?}: {}", reply.body);
        }
    }
}

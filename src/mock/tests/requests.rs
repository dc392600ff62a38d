//! Paths and queries.

use hyper::Uri;
use proptest::prelude::*;

use crate::dialect::Dialect;
use crate::query::read_page;
use crate::routes::{Route, Target};

#[test]
fn only_the_documented_paths_are_known() {
    let known = |path: &str| {
        let Target {
            route,
            user,
            message,
            ..
        } = Target::read(path);
        (route, user, message)
    };
    assert_eq!(known("/external/users"), (Route::Users, None, None));
    assert_eq!(known("/external/users/42"), (Route::User, Some(42), None));
    assert_eq!(
        known("/external/users/0/messages"),
        (Route::Messages, Some(0), None)
    );
    let message = (Route::Message, Some(42), Some(7));
    assert_eq!(known("/external/users/42/messages/7"), message);
    assert_eq!(known("/openapi.json"), (Route::OpenApi, None, None));
    for path in [
        "/external",
        "/users",
        "/external/users/",
        "/external/users/+42",
        "/external/users/042",
        "/external/users/%34%32",
        "/external/users/99999999999999999999",
        "/external/users/42/messages/",
        "/external/users/42/messages/x",
        "/EXTERNAL/users",
    ] {
        assert_eq!(Target::read(path), Target::UNKNOWN, "{path}");
    }
}

proptest! {
    #[test]
    fn no_path_is_too_odd(path: String) {
        let _ = Target::read(&path);
    }
}

fn page(query: &str, dialect: &str) -> Result<(u64, u64), &'static str> {
    let uri = format!("/external/users?{query}").parse().unwrap();
    read_page(Target::UNKNOWN, &uri, &dialect.parse().unwrap())
        .map(|page| (page.offset.unwrap(), page.limit.unwrap()))
        .map_err(|refusal| refusal.code)
}

#[test]
fn each_dialect_reads_limits_its_own_way() {
    assert_eq!(page("limit=99", ""), Ok((0, 99)));
    assert_eq!(page("limit=100", ""), Err("invalid_limit"));
    assert_eq!(page("limit=x", ""), Err("invalid_limit"));
    assert_eq!(page("limit=5&limit=6", ""), Err("repeated_argument"));
    assert_eq!(page("page=2", ""), Err("unknown_argument"));
    assert_eq!(
        page("limit=100", "over_limit=clamp max_limit=50"),
        Ok((0, 50))
    );
    assert_eq!(page("limit=0", "over_limit=clamp"), Ok((0, 1)));
    assert_eq!(
        page("limit=100", "over_limit=ignore default_limit=7"),
        Ok((0, 7))
    );
    assert_eq!(page("limit=x&offset=-1&page=2", "lenient"), Ok((0, 25)));
    assert_eq!(page("limit=100", "strict=no"), Err("invalid_limit"));
}

proptest! {
    #[test]
    fn no_query_is_too_odd(query in "[ -~]{0,40}") {
        if let Ok(uri) = format!("/external/users?{query}").parse::<Uri>() {
            let page = read_page(Target::UNKNOWN, &uri, &Dialect::LENIENT);
            prop_assert!(page.is_ok_and(|page| (1..=99).contains(&page.limit.unwrap())));
        }
    }
}

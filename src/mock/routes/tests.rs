use proptest::prelude::*;

use super::*;

#[test]
fn only_the_documented_paths_are_known() {
    for (path, route, user, message) in [
        ("/external/users", Route::Users, None, None),
        ("/external/users/42", Route::User, Some(42), None),
        ("/external/users/0/messages", Route::Messages, Some(0), None),
        (
            "/external/users/42/messages/7",
            Route::Message,
            Some(42),
            Some(7),
        ),
        ("/openapi.json", Route::OpenApi, None, None),
    ] {
        let known = Target::read(path);
        assert_eq!(
            (known.route, known.user, known.message),
            (route, user, message)
        );
    }
    for path in [
        "/external",
        "/users",
        "/external/users/",
        "/external/users/+42",
        "/external/users/042",
        "/external/users/%34%32",
        "/external/users/99999999999999999999",
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

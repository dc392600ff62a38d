//! What a base URL leads to, held against what it may lead to: for the tests and the fuzzer.

use url::Url;

use super::{Origin, Settings};
use crate::core::interface::{Endpoint, Limit, List, Natural};

const SECRET: &str = "c2VjcmV0LW9mLXRoZS1mdXp6ZXI";
// Stands in no message by chance.
const PASSWORD: &str = "pa55w0rd-of-the-fuzzer";

/// Whether a text is taken for a base URL; panics where a request would leave it or where a message
/// holds a password.
pub fn check(text: &str) -> bool {
    let text = &marked(text);
    let origin = Origin::new(Settings {
        base_url: Some(text.to_owned()),
        api_secret: Some(SECRET.into()),
        vendor: Some("acme".to_owned()),
        ..Settings::default()
    });
    let proxied = Origin::new(Settings {
        base_url: Some("https://chat.example.com".to_owned()),
        api_secret: Some(SECRET.into()),
        vendor: Some("acme".to_owned()),
        proxy: Some(text.as_str().into()),
        ..Settings::default()
    });
    for shown in [format!("{origin:?}"), format!("{proxied:?}")] {
        check_message(&shown);
    }
    for refused in [origin.as_ref().err(), proxied.as_ref().err()] {
        check_message(&refused.map(ToString::to_string).unwrap_or_default());
    }
    let Ok(origin) = origin else {
        return false;
    };
    for endpoint in endpoints() {
        check_address(&origin, endpoint, text);
    }
    true
}

fn endpoints() -> [Endpoint; 5] {
    let (least, most) = (Natural::ZERO, Natural::from(u64::MAX));
    let list = List::Messages { user_id: most };
    [
        Endpoint::User { user_id: least },
        Endpoint::User { user_id: most },
        Endpoint::Message {
            user_id: least,
            message_id: most,
        },
        List::Users.page(0, Limit::LARGEST),
        list.page(u64::MAX, Limit::LARGEST),
    ]
}

fn check_address(origin: &Origin, endpoint: Endpoint, text: &str) {
    let base = Url::parse(text.trim());
    assert!(base.is_ok(), "{text:?}: {base:?}");
    let Ok(base) = base else {
        return;
    };
    let address = origin.address(&endpoint);
    assert_eq!(address.origin(), base.origin(), "{text:?}");
    assert!(address.origin().is_tuple(), "{text:?}");
    assert_eq!((address.username(), address.password()), ("", None));
    assert_eq!(address.fragment(), None, "{text:?}");
    let asked = endpoint.to_string();
    let (path, query) = match asked.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (asked.as_str(), None),
    };
    let prefix = base.path().trim_end_matches('/');
    assert_eq!(address.path(), format!("{prefix}{path}"), "{text:?}");
    assert_eq!(address.query(), query, "{text:?}");
    // What is sent is text: it must not mean something else when it is read again.
    assert_eq!(Url::parse(address.as_str()).as_ref(), Ok(&address));
    assert_eq!(address.as_str(), format!("{}{asked}", origin.base_url));
    assert!(base.scheme() == "https" || origin.is_loopback(), "{text:?}");
}

fn check_message(message: &str) {
    assert!(!message.contains(SECRET), "{message}");
    assert!(!message.contains(PASSWORD), "{message}");
}

/// The text with another password, which is what stands between the first colon and the last `@` of
/// what follows the scheme and its slashes, up to the path.
fn marked(text: &str) -> String {
    let replaced = || {
        let (scheme, _) = text.split_once(':')?;
        let rest = text.get(scheme.len() + 1..)?;
        let authority = rest.trim_start_matches(['/', '\\']);
        let start = text.len() - authority.len();
        let authority = authority.split(['/', '\\', '?', '#']).next()?;
        let (user, _) = authority.rsplit_once('@')?;
        let (name, _) = user.split_once(':')?;
        let (before, after) = (start + name.len() + 1, start + user.len());
        Some([text.get(..before)?, PASSWORD, text.get(after..)?].concat())
    };
    replaced().unwrap_or_else(|| text.to_owned())
}

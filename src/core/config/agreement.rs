//! Checks that requests go only below their base URL; for the tests and the fuzzer.

use url::Url;

use super::{Origin, Settings};
use crate::api::{Endpoint, Limit, List, Natural};

/// Whether a text is accepted as a base URL. Panics if a request would go elsewhere, or if a message
/// depends on a secret or a password.
pub fn check(text: &str) -> bool {
    let [shown, shown_of_others] = [("c2VjcmV0", "pa55w0rd"), ("dGVyY2Vz", "dr0w55ap")]
        .map(|(secret, password)| shown(&with_password(text, password), secret));
    assert_eq!(shown, shown_of_others);
    let Ok(origin) = Origin::new(settings(text, "c2VjcmV0")) else {
        return false;
    };
    for endpoint in endpoints() {
        check_address(&origin, endpoint, text);
    }
    true
}

/// The settings of a client for this service.
pub fn settings(base_url: &str, secret: &str) -> Settings {
    Settings {
        base_url: Some(base_url.to_owned()),
        api_secret: Some(secret.into()),
        vendor: Some("acme".to_owned()),
        ..Settings::default()
    }
}

/// Everything that is displayed of a text given as a base URL, and as a proxy.
fn shown(text: &str, secret: &str) -> Vec<String> {
    let proxied = Settings {
        proxy: Some(text.into()),
        ..settings("https://chat.example.com", secret)
    };
    let shown = [settings(text, secret), proxied].map(|settings| {
        let given = format!("{settings:?}");
        match Origin::new(settings) {
            Ok(origin) => [given, format!("{origin:?}"), origin.host()],
            Err(refused) => [given, format!("{refused:?}"), refused.to_string()],
        }
    });
    shown.concat()
}

fn endpoints() -> [Endpoint; 5] {
    let (least, most) = (Natural::ZERO, Natural::from(u64::MAX));
    let list = List::Messages { user_id: most };
    [
        List::Users.row(least),
        List::Users.row(most),
        List::Messages { user_id: least }.row(most),
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
    let requested = endpoint.to_string();
    let (path, query) = match requested.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (requested.as_str(), None),
    };
    let prefix = base.path().trim_end_matches('/');
    assert_eq!(address.path(), format!("{prefix}{path}"), "{text:?}");
    assert_eq!(address.query(), query, "{text:?}");
    // The URL is sent as text: it must mean the same when parsed again.
    assert_eq!(Url::parse(address.as_str()).as_ref(), Ok(&address));
    assert_eq!(address.as_str(), format!("{}{requested}", origin.base_url));
    assert!(base.scheme() == "https" || origin.is_loopback(), "{text:?}");
}

/// The text with another password. The password is between the first colon and the last `@` of what
/// follows the scheme and its slashes, up to the path.
fn with_password(text: &str, password: &str) -> String {
    let replaced = || {
        let (scheme, _) = text.split_once(':')?;
        let rest = text.get(scheme.len() + 1..)?;
        let authority = rest.trim_start_matches(['/', '\\']);
        let start = text.len() - authority.len();
        let authority = authority.split(['/', '\\', '?', '#']).next()?;
        let (user, _) = authority.rsplit_once('@')?;
        let (name, _) = user.split_once(':')?;
        let (before, after) = (start + name.len() + 1, start + user.len());
        Some([text.get(..before)?, password, text.get(after..)?].concat())
    };
    replaced().unwrap_or_else(|| text.to_owned())
}

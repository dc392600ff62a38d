//! Invalid configuration, and its error messages.

use super::*;
use crate::client::Client;
use crate::fuzz_seeds::fuzz_seeds;

const SECRET: &str = "Zm9vYmFyYmF6";

fn settings(base_url: &str) -> Settings {
    Settings {
        base_url: Some(base_url.to_owned()),
        api_secret: Some(SECRET.into()),
        vendor: Some("acme".to_owned()),
        ..Settings::default()
    }
}

fn refusal(settings: Settings) -> String {
    Origin::new(settings).unwrap_err().to_string()
}

#[test]
fn all_that_is_missing_is_named_at_once() {
    let message = refusal(Settings::default());
    for missing in ["base_url", "api_secret", "vendor"] {
        let variable = format!("BACKREAD_{}", missing.to_uppercase());
        assert!(
            message.contains(missing) && message.contains(&variable),
            "{message}"
        );
    }
}

#[test]
fn base_urls_that_cannot_be_right_are_refused() {
    for refused in [
        "",
        " ",
        "chat.example.com",
        "ftp://a.example",
        "https://",
        "https://u:p@a.example",
        "https://a.example/?q=1",
        "https://a.example/#x",
        "http://a.example",
        "https://a b/",
    ] {
        let message = refusal(settings(refused));
        assert!(message.contains("base_url"), "{refused}: {message}");
        assert!(!message.contains("u:p"), "{message}");
    }
}

#[test]
fn a_base_url_with_the_path_of_the_requests_is_refused_with_the_right_one() {
    for (given, right) in [
        ("https://a.example/external/users", "https://a.example"),
        ("https://a.example/external/", "https://a.example"),
        ("https://a.example/api/external", "https://a.example/api"),
    ] {
        let message = refusal(settings(given));
        assert!(message.ends_with(&format!("; pass {right}")), "{message}");
    }
    assert!(Origin::new(settings("https://a.example/external/v2")).is_ok());
}

#[test]
fn quotation_marks_that_a_file_of_settings_left_are_named() {
    for (url, secret) in [
        ("\"https://a.example\"", "secret"),
        ("'https://a.example'", "secret"),
        ("https://a.example", "\"secret\""),
        ("https://a.example", "'secret'"),
    ] {
        let message = refusal(Settings {
            api_secret: Some(secret.into()),
            ..settings(url)
        });
        assert!(
            message.contains("has quotation marks around it"),
            "{message}"
        );
    }
    let message = refusal(settings("127.0.0.1:8080"));
    assert!(message.contains("does not begin with http://"), "{message}");
}

#[test]
fn plain_http_is_for_loopback_or_on_demand() {
    for loopback in [
        "http://127.0.0.1:8080",
        "http://localhost:1/",
        "http://[::1]:9/api",
    ] {
        assert!(Origin::new(settings(loopback)).is_ok(), "{loopback}");
    }
    let allowed = Settings {
        allow_http: true,
        ..settings("http://chat.example.com")
    };
    assert!(Origin::new(allowed).is_ok());
}

#[test]
fn a_mock_secret_stays_on_loopback() {
    let mock = Settings {
        api_secret: Some("mock_secret".into()),
        ..settings("https://chat.example.com")
    };
    assert!(refusal(mock).contains("mock"));
}

#[test]
fn nothing_can_be_smuggled_into_a_header() {
    for secret in ["xy\r\nX: y", "xy zz", "xyä", "xyz\n"] {
        let message = refusal(Settings {
            api_secret: Some(secret.into()),
            ..settings("https://a.example")
        });
        assert!(message.contains("api_secret") && !message.contains(secret));
    }
    for vendor in ["a/b", "a+json", "a b", "a\r\n", "-a", "ä"] {
        let message = refusal(Settings {
            vendor: Some(vendor.to_owned()),
            ..settings("https://a.example")
        });
        assert!(message.contains("vendor"), "{message}");
    }
    let message = refusal(Settings {
        user_agent: Some("a\r\nb".to_owned()),
        ..settings("https://a.example")
    });
    assert!(message.contains("user_agent"));
}

#[test]
fn debug_shows_no_secret() {
    let given = || Settings {
        proxy: Some("https://ada:hunter2@proxy.example.com".into()),
        ..settings("https://a.example")
    };
    let client = Client::new(given(), Options::default()).unwrap();
    let origin = Origin::new(given()).unwrap();
    let refused = settings("https://ada:hunter2@a.example");
    let shown = [
        format!("{:?} {:#?}", given(), given()),
        format!("{refused:?} {refused:#?}"),
        format!("{origin:?} {origin:#?}"),
        format!("{client:?} {client:#?}"),
        format!("{:?}", Origin::new(refused).unwrap_err()),
    ];
    for each in shown {
        assert!(
            !each.contains(SECRET) && !each.contains("hunter2"),
            "{each}"
        );
    }
}

#[test]
fn what_a_parser_would_drop_in_silence_is_refused() {
    for smuggled in ["\t", "\n", "\r\n", "\0", "\u{a0}", "é"] {
        let message = refusal(settings(&format!("https://a.{smuggled}example")));
        assert!(message.contains("base_url"), "{message}");
        let message = refusal(Settings {
            proxy: Some(format!("http://ada:hunter2{smuggled}@proxy").into()),
            ..settings("https://a.example")
        });
        assert!(message.contains("proxy") && !message.contains("hunter2"));
    }
}

#[test]
fn plain_http_stays_on_this_machine_with_a_proxy_too() {
    let by = |proxy: &str| Settings {
        proxy: Some(proxy.into()),
        ..settings("http://127.0.0.1:8080")
    };
    assert!(refusal(by("http://proxy.example.com:3128")).contains("allow_http"));
    assert!(Origin::new(by("http://127.0.0.1:3128")).is_ok());
    let allowed = Settings {
        allow_http: true,
        ..by("http://proxy.example.com:3128")
    };
    assert!(Origin::new(allowed).is_ok());
}

#[test]
fn no_base_url_of_the_fuzzer_leads_a_request_elsewhere() {
    let mut taken = [0, 0];
    for seed in fuzz_seeds("url") {
        let text = String::from_utf8(seed).unwrap();
        taken[usize::from(agreement::check(&text))] += 1;
    }
    assert!(taken.iter().all(|files| *files > 10), "{taken:?}");
}

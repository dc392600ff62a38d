//! Invalid configuration, and its error messages.

use super::*;
use crate::fuzz_seeds::fuzz_seeds;

const SECRET: &str = "Zm9vYmFyYmF6";

fn settings(base_url: &str) -> Settings {
    agreement::settings(base_url, SECRET)
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
    let refused = "|chat.example.com|ftp://a.example|https://|https://u:p@a.example\
                   |https://a.example/?q=1|https://a.example/#x|http://a.example|https://a b/";
    for refused in refused.split('|') {
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
        ("https://a.example", "'secret'"),
    ] {
        let message = refusal(agreement::settings(url, secret));
        assert!(
            message.contains("has quotation marks around it"),
            "{message}"
        );
    }
    let message = refusal(settings("127.0.0.1:8080"));
    assert!(message.contains("does not begin with http://"), "{message}");
}

#[test]
fn plain_http_is_for_loopback_or_on_demand_and_so_is_its_proxy() {
    let local = "http://127.0.0.1:8080";
    for (url, proxy, allow_http, accepted) in [
        (local, None, false, true),
        ("http://localhost:1/", None, false, true),
        ("http://[::1]:9/api", None, false, true),
        ("http://chat.example.com", None, true, true),
        (local, Some("http://proxy.example.com:3128"), false, false),
        (local, Some("http://127.0.0.1:3128"), false, true),
        (local, Some("http://proxy.example.com:3128"), true, true),
    ] {
        let origin = Origin::new(Settings {
            proxy: proxy.map(Into::into),
            allow_http,
            ..settings(url)
        });
        let refused = origin.err().map(|refused| refused.to_string());
        assert_eq!(refused.is_none(), accepted, "{url} {proxy:?}: {refused:?}");
        assert!(refused.is_none_or(|message| message.contains("allow_http")));
    }
}

#[test]
fn a_mock_secret_stays_on_loopback() {
    let mock = agreement::settings("https://chat.example.com", "mock_secret");
    assert!(refusal(mock).contains("mock"));
}

#[test]
fn nothing_can_be_smuggled_into_a_header() {
    for secret in ["xy\r\nX: y", "xy zz", "xyä", "xyz\n"] {
        let message = refusal(agreement::settings("https://a.example", secret));
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
fn no_base_url_of_the_fuzzer_leads_a_request_elsewhere() {
    let mut taken = [0, 0];
    for seed in fuzz_seeds("url") {
        let text = String::from_utf8(seed).unwrap();
        taken[usize::from(agreement::check(&text))] += 1;
    }
    assert!(taken.iter().all(|files| *files > 10), "{taken:?}");
}

use proptest::prelude::*;

use super::*;

#[test]
fn a_secret_is_starred_whole_and_where_a_text_is_cut_within_it() {
    let secret = "t0psecret!";
    assert_eq!(redacted("a t0psecret! b", secret), "a ********** b");
    assert_eq!(redacted("a t0psec", secret), "a ******");
    assert_eq!(redacted("secret! b", secret), "******* b");
    assert_eq!(redacted("a secret b", secret), "a secret b");
    assert_eq!(redacted("id", "id"), "id");
}

#[test]
fn a_secret_is_starred_however_it_is_spelled() {
    let secret = r#"T0p/Se"c\r+%25t"#;
    let stars = "*".repeat(secret.len());
    for spelling in [
        secret,
        &secret.to_lowercase(),
        r#"T0p/Se\"c\\r+%25t"#,
        r#"T0p\/Se\"c\\r+%25t"#,
        "T0p%2FSe%22c%5Cr%2B%2525t",
        "T0p%2fSe%22c%5cr+%2525t",
        "%540p/Se%22c%5Cr+%25%32%35t",
        r"T0p\u002fSe\u0022c\u005Cr\u002B%25t",
    ] {
        assert_eq!(
            redacted(&format!("é{spelling}é"), secret),
            format!("é{stars}é")
        );
    }
    assert_eq!(redacted("T0p%2FSe%2", secret), "T0p%2FSe%2");
}

proptest! {
    #[test]
    fn nothing_around_a_spelled_secret_keeps_it(
        before in r"[\\%ué5T0]{0,8}",
        after in r"[\\%ué5T0]{0,8}",
        spelling in 0_usize..2,
    ) {
        let secret = r#"T0p/Se"c+"#;
        let spelled = [r#"T0p/Se\"c+"#, "T0p%2FSe%22c%2B"];
        let text = format!("{before}{}{after}", spelled[spelling]);
        prop_assert!(!redacted(&text, secret).contains(spelled[spelling]));
    }
}

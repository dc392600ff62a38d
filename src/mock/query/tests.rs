use proptest::prelude::*;

use super::*;

fn page(query: &str, dialect: &str) -> Result<(u64, u64), &'static str> {
    let uri = format!("/external/users?{query}").parse().unwrap();
    read_page(Target::UNKNOWN, &uri, &dialect.parse().unwrap())
        .map(|page| (page.offset.unwrap(), page.limit.unwrap()))
        .map_err(|refusal| refusal.code)
}

#[test]
fn each_dialect_reads_limits_its_own_way() {
    for (query, dialect, expected) in [
        ("limit=99", "", Ok((0, 99))),
        ("limit=100", "", Err("invalid_limit")),
        ("limit=x", "", Err("invalid_limit")),
        ("limit=5&limit=6", "", Err("repeated_argument")),
        ("page=2", "", Err("unknown_argument")),
        ("limit=100", "over_limit=clamp max_limit=50", Ok((0, 50))),
        ("limit=0", "over_limit=clamp", Ok((0, 1))),
        ("limit=100", "over_limit=ignore default_limit=7", Ok((0, 7))),
        ("limit=x&offset=-1&page=2", "lenient", Ok((0, 25))),
        ("limit=100", "strict=no", Err("invalid_limit")),
    ] {
        assert_eq!(page(query, dialect), expected, "{query} {dialect}");
    }
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

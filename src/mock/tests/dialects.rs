//! Dialects as text.

use crate::mock::dialect::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_dialect_reads_back_from_its_text(
        bundle in 0_usize..3, order in 0_usize..4, total in 0_usize..6, limit in 1_u64..=99,
    ) {
        let mut dialect = BUNDLES[bundle].1;
        dialect.order = Order::ALL[order];
        dialect.total = Total::ALL[total];
        dialect.default_limit = limit;
        prop_assert_eq!(dialect.to_string().parse(), Ok(dialect));
    }

    #[test]
    fn no_text_is_too_odd(text: String) {
        let _ = text.parse::<Dialect>();
    }
}

#[test]
fn what_is_wrong_is_said_with_what_would_be_right() {
    let problem = |text: &str| text.parse::<Dialect>().unwrap_err();
    assert!(problem("nice").contains("documented, lenient, hostile"));
    assert!(problem("hostile order=random").contains("id, newest, ties, shuffled"));
    assert!(problem("speed=9").contains("over_limit"));
    assert!(problem("max_limit=100").contains("1 to 99"));
    assert!(problem("hostile fast").contains("switch=value"));
}

#[test]
fn bundles_show_by_name() {
    for (name, dialect) in BUNDLES {
        assert_eq!(dialect.to_string(), name);
    }
}

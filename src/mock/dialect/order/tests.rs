use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn every_row_stands_somewhere_and_once(
        order in prop::sample::select(Order::WORDS), total in 1_u64..400, chance: u64,
        long in 1_u64..1 << 31, at: u64,
    ) {
        let order = order.parse().unwrap();
        let sequence = Sequence { order, total, chance };
        let positions: BTreeSet<u64> = (0..total).map(|place| sequence.position(place)).collect();
        prop_assert_eq!(positions, (0..total).collect::<BTreeSet<u64>>());
        // A long list costs nothing to shuffle.
        let sequence = Sequence { order, total: long, chance };
        let position = sequence.position(at % long);
        prop_assert!(position < long);
        prop_assert_eq!(sequence.place(position), at % long);
    }
}

use proptest::prelude::*;

use super::chunk::STEP;
use super::*;

proptest! {
    #[test]
    fn the_first_special_byte_is_found_in_any_chunk(
        bytes in proptest::collection::vec(
            prop_oneof![4 => b'a'..=b'z', 1 => any::<u8>(), 1 => Just(b' '), 1 => Just(0x1f)],
            STEP,
        )
    ) {
        let expected = |step: usize| bytes.iter().take(step).position(|byte| is_special(*byte));
        prop_assert_eq!(first(bytes.first_chunk().unwrap()), expected(STEP));
        let first_word = bytes.first_chunk().unwrap();
        prop_assert_eq!(word::first(first_word), expected(word::STEP));
    }
}

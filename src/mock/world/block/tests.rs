use super::*;

#[test]
fn what_is_cached_stays_within_its_bound() {
    let render = || {
        let mut block = BlockBuilder::default();
        for _ in 0..64 {
            block.push(|out| out.extend_from_slice(&[b'1'; 1000]));
        }
        block.finish()
    };
    let blocks = Blocks::default();
    for first in 0..10_000 {
        let rendered = blocks.get_or_render((Some(7), first), render);
        assert_eq!(rendered.rows(63..64).len(), 1000);
        assert!(blocks.weight() <= 64 << 20);
    }
    assert!(blocks.weight() > 32 << 20);
    assert!(blocks.get((Some(7), 9_999)).is_some());
    assert!(blocks.get((None, 9_999)).is_none());
}

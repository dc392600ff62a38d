use std::sync::Arc;

use super::*;
use crate::api::Resource;

#[test]
fn a_chain_without_hashes_knows_the_rows_before_it_by_their_ids() {
    let row = |id: i64, name: &str| {
        let json = format!(r#"{{"id":{id},"name":"{name}"}}"#);
        Row::alone(Arc::new(json), Resource::Users).unwrap()
    };
    let mut chain = Chain::default();
    chain.join(&[row(4, "Bo"), row(5, "Bo")], 1);
    let mut end = chain.end(2);
    end.iter_mut().for_each(Remembered::forget_content);
    let mut chain = Chain::resumed(&end, false);
    assert_eq!(chain.compare(&[row(4, "Ada"), row(5, "Ada")]).unchanged, 2);
    // The rows that it reads itself have their hashes.
    chain.join(&[row(5, "Ada"), row(6, "Ada")], 1);
    assert_eq!(chain.compare(&[row(6, "Bo")]).unchanged, 0);
}

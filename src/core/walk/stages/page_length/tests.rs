use super::*;

#[test]
fn the_most_rows_that_a_service_sends_are_known_once_two_pages_were_followed() {
    let mut length = PageLength::default();
    length.note_page(40, 99);
    length.note_cut(40);
    assert!(length.is_cut_short() && length.largest().is_none());
    length.note_page(40, 99);
    length.note_cut(40);
    assert!(!length.is_cut_short());
    assert_eq!(length.largest(), Some(40));
    // A longer one shows that the others were cut short.
    length.note_page(60, 99);
    assert!(length.is_cut_short() && length.largest().is_none());
    let mut length = PageLength::default();
    length.note_page(99, 99);
    assert_eq!(length.largest(), Some(99));
}

use super::*;

#[test]
fn labels_are_read_in_any_case_and_quotes() {
    for named in [
        "application/json; charset=ISO-8859-1",
        "application/json;a=b; CharSet=\"Windows-1252\"",
        "text/plain;charset = latin1 ",
    ] {
        assert!(is_windows_1252(named), "{named}");
    }
    for other in [
        "",
        "application/json",
        "text/html; charset=ISO-8859-15",
        "latin1",
    ] {
        assert!(!is_windows_1252(other), "{other}");
    }
    assert!(is_utf_16(None, "application/json; charset=UTF-16LE"));
}

#[test]
fn each_byte_of_windows_1252_is_one_character() {
    let every: Vec<u8> = (0..=255).collect();
    let text = from_windows_1252(&every);
    assert_eq!(text.chars().count(), 256);
    assert_eq!(
        from_windows_1252(b"Zo\xeb \x80 \x81 \x9f"),
        "Zoë € \u{81} Ÿ"
    );
}

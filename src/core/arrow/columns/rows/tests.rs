use super::*;

#[test]
fn the_columns_of_a_message_are_its_fields_and_its_senders() {
    let names: Vec<&str> = MESSAGES
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let expected = "user_id id body read_by_user read_by_operator created_at file_url \
        auto_invitation sender_type sender_id sender_name sender_email sender_forename \
        sender_surname sender_picture_thumb_url sender_extra extra";
    assert_eq!(names.join(" "), expected);
    let required = MESSAGES
        .fields()
        .iter()
        .filter(|field| !field.is_nullable());
    assert_eq!(
        required.map(|field| field.name()).collect::<Vec<_>>(),
        ["user_id", "id"]
    );
}

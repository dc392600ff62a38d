//! What is decoded: pages as a busy service sends them, the same at every run.

use std::fmt::Write;
use std::hint::black_box;

use backread_core::api::Resource;
use backread_core::arrow::columns::{MessageColumns, UserColumns};
use backread_core::decode::page::Page;
use bytes::Bytes;

/// Rows of a page, as the interface allows at most.
const PAGE: usize = 99;
/// Pages of one round: a batch of columns holds about as many.
const PAGES: usize = 83;

/// One way of decoding, over pages of its own.
pub struct Case {
    pub name: &'static str,
    pages: Vec<Vec<u8>>,
    decode: fn(Vec<Page>),
    resource: Resource,
}

impl Case {
    /// Rows of one round.
    pub fn rows(&self) -> u64 {
        (PAGE * self.pages.len()) as u64
    }

    #[allow(dead_code)] // one of the two programs asks for it
    pub fn bytes(&self) -> usize {
        self.pages.iter().map(Vec::len).sum()
    }

    /// Bodies as the transport hands them over.
    pub fn bodies(&self) -> Vec<Bytes> {
        self.pages.iter().cloned().map(Bytes::from).collect()
    }

    pub fn round(&self, bodies: Vec<Bytes>) {
        let pages = bodies
            .into_iter()
            .map(|body| Page::of_body(body, None, self.resource).expect("a page"));
        (self.decode)(pages.collect());
    }
}

pub fn cases() -> Vec<Case> {
    let case = |name, resource, row: fn(usize) -> String, decode| Case {
        name,
        pages: (0..PAGES).map(|page| body(page, resource, row)).collect(),
        decode,
        resource,
    };
    vec![
        case("users", Resource::Users, user, users),
        case("users to columns", Resource::Users, user, users_to_columns),
        case("messages", Resource::Messages, message, messages),
        case(
            "messages to columns",
            Resource::Messages,
            message,
            messages_to_columns,
        ),
        case(
            "escaped messages to columns",
            Resource::Messages,
            escaped_message,
            messages_to_columns,
        ),
        case(
            "odd messages to columns",
            Resource::Messages,
            odd_message,
            messages_to_columns,
        ),
    ]
}

fn users(pages: Vec<Page>) {
    for row in pages.iter().flat_map(|page| &page.rows) {
        black_box(row.user().expect("a user"));
    }
}

fn messages(pages: Vec<Page>) {
    for row in pages.iter().flat_map(|page| &page.rows) {
        black_box(row.message().expect("a message"));
    }
}

fn users_to_columns(pages: Vec<Page>) {
    let mut columns = UserColumns::default();
    for page in &pages {
        columns.append_rows(&page.rows.iter().collect::<Vec<_>>());
    }
    black_box(columns.finish().expect("a batch"));
}

fn messages_to_columns(pages: Vec<Page>) {
    let mut columns = MessageColumns::default();
    for page in &pages {
        columns.append_rows(42, &page.rows.iter().collect::<Vec<_>>());
    }
    black_box(columns.finish().expect("a batch"));
}

// --- rows ----------------------------------------------------------------------------------------

const TEXTS: [&str; 8] = [
    "Hi! Where is my order? It was to be here on Monday, and the tracking has not moved since.",
    "Guten Tag, können Sie mir bitte die Rechnung noch einmal schicken? Vielen Dank im Voraus!",
    "Здравствуйте! Не могу войти в личный кабинет, письмо с паролем не приходит.",
    "ok 👍",
    "请问这款还有蓝色的吗？我想订两件。",
    "I'm looking into it for you now, one moment please. Could you tell me the order number?",
    "مرحبا، هل يمكنني تغيير عنوان التوصيل؟",
    "Thanks, that solved it. Have a nice weekend 🙂",
];
const NAMES: [&str; 4] = ["Ada Byron", "Jürgen Weiß", "Мария Иванова", "王小明"];

fn body(page: usize, resource: Resource, row: fn(usize) -> String) -> Vec<u8> {
    let first = page * PAGE;
    let rows: Vec<String> = (first..first + PAGE).map(row).collect();
    let (key, rows) = (resource.key(), rows.join(","));
    let total = PAGES * PAGE;
    format!(r#"{{"limit":99,"offset":{first},"total":{total},"{key}":[{rows}]}}"#).into_bytes()
}

fn of<T: Copy>(choices: &[T], number: usize) -> T {
    choices[number % choices.len()]
}

fn instant(number: usize) -> String {
    let (day, hour) = (number / 24 % 28 + 1, number % 24);
    let (minute, second, fraction) = (number * 7 % 60, number * 11 % 60, number * 13 % 1000);
    format!("2024-03-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

fn user(number: usize) -> String {
    let (created, updated) = (instant(number), instant(number + 100));
    let mut attributes = String::new();
    for attribute in 0..number % 4 {
        let comma = if attribute > 0 { "," } else { "" };
        let _ = write!(
            attributes,
            r#"{comma}{{"name":"plan{attribute}","value":"team"}}"#
        );
    }
    format!(
        r#"{{"id":{},"name":"{}","email":"visitor.{number}@example.com","reference":"crm-{number:08x}","created_at":"{created}","updated_at":"{updated}","online_at":"{updated}","last_url":"https://www.example.com/en/account/orders?page={number}","user_attributes":[{attributes}]}}"#,
        1_000_001 + number,
        of(&NAMES, number),
    )
}

fn message(number: usize) -> String {
    let sender = match number % 2 {
        0 => format!(
            r#""sender_type":"user","sender":{{"id":1000042,"name":"{}","email":"visitor.42@example.com"}}"#,
            of(&NAMES, 42),
        ),
        _ => format!(
            r#""sender_type":"operator","sender":{{"id":{},"forename":"Grace","surname":"Hopper","email":"grace.hopper@example.com","picture_thumb_url":"https://cdn.example.com/people/{}/thumb.png"}}"#,
            number % 7,
            number % 7,
        ),
    };
    let file = match number % 16 {
        0 => r#""https://files.example.com/u/1000042/invoice.pdf""#,
        _ => "null",
    };
    format!(
        r#"{{"id":{},"body":"{}","read_by_user":true,"read_by_operator":{},"created_at":"{}","file_url":{file},"auto_invitation":false,{sender}}}"#,
        1_000_000_001 + number,
        of(&TEXTS, number / 3),
        !number.is_multiple_of(5),
        instant(number),
    )
}

/// As services send it that escape all but ASCII.
fn escaped_message(number: usize) -> String {
    let mut escaped = String::new();
    for character in message(number).chars() {
        let mut units = [0; 2];
        match character {
            ' '..='~' => escaped.push(character),
            _ => character.encode_utf16(&mut units).iter().for_each(|unit| {
                let _ = write!(escaped, "\\u{unit:04x}");
            }),
        }
    }
    escaped
}

/// A row that serde_json reads: its sender is of a type that the interface does not show.
fn odd_message(number: usize) -> String {
    message(number)
        .replace(r#""sender_type":"user""#, r#""sender_type":"bot""#)
        .replace(
            r#""sender_type":"operator""#,
            r#""sender_type":"team","channel":"web""#,
        )
}

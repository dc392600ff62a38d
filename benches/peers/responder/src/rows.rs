//! Rows rendered once, side by side with their commas, so that a page is one slice of them.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::draw::Draw;
use crate::words::{LANGUAGES, Language, OPERATORS, PLACES};

const FIRST_USER: usize = 1_000_001;
const USER_DIGITS: usize = 7;
const FIRST_MESSAGE: usize = 1_000_000_001;
const MESSAGE_DIGITS: usize = 10;
const ID_AT: usize = r#"{"id":"#.len();
/// 2024-01-01 in seconds.
const EPOCH: usize = 1_704_067_200;

/// The rows of one list: where each begins, and last where a further one would.
#[derive(Default)]
struct Rows {
    text: Vec<u8>,
    begins: Vec<usize>,
}

impl Rows {
    fn push(&mut self, row: &str) -> usize {
        let begin = self.text.len();
        self.begins.push(begin);
        self.text.extend_from_slice(row.as_bytes());
        self.text.push(b',');
        begin
    }

    fn ended(mut self) -> Self {
        self.begins.push(self.text.len());
        self
    }

    /// The rows from one position to another, without the comma after the last.
    fn slice(&self, from: usize, to: usize) -> &[u8] {
        if from == to {
            return &[];
        }
        &self.text[self.begins[from]..self.begins[to] - 1]
    }
}

struct List {
    rows: Rows,
    /// Where the list's user stands as the sender, in each row; 0 where an operator does.
    senders: Vec<usize>,
}

/// The whole service.
pub struct Service {
    users: Rows,
    lists: Vec<List>,
    messages: usize,
}

impl Service {
    /// So many users with so many messages each. The first lists are rendered; those of later
    /// users are the same ones with other ids, put in when they are asked for.
    pub fn new(users: usize, messages: usize, rendered: usize) -> Self {
        let mut rows = Rows::default();
        for user in 0..users {
            rows.push(&user_row(user));
        }
        Self {
            users: rows.ended(),
            lists: (0..rendered.min(users))
                .map(|user| list(user, messages))
                .collect(),
            messages,
        }
    }

    pub fn total_users(&self) -> usize {
        self.users.begins.len() - 1
    }

    pub fn total_messages(&self) -> usize {
        self.messages
    }

    /// A user's position by id.
    pub fn position(&self, id: usize) -> Option<usize> {
        id.checked_sub(FIRST_USER)
            .filter(|user| *user < self.total_users())
    }

    pub fn users(&self, from: usize, to: usize) -> &[u8] {
        self.users.slice(from, to)
    }

    pub fn messages(&self, user: usize, from: usize, to: usize) -> Cow<'_, [u8]> {
        if let Some(list) = self.lists.get(user) {
            return Cow::Borrowed(list.rows.slice(from, to));
        }
        let list = &self.lists[user % self.lists.len()];
        let mut page = list.rows.slice(from, to).to_vec();
        let start = list.rows.begins[from];
        for row in from..to {
            let at = list.rows.begins[row] - start + ID_AT;
            digits(
                &mut page[at..at + MESSAGE_DIGITS],
                self.message_id(user, row),
            );
            if list.senders[row] > 0 {
                let at = list.senders[row] - start;
                digits(&mut page[at..at + USER_DIGITS], FIRST_USER + user);
            }
        }
        Cow::Owned(page)
    }

    fn message_id(&self, user: usize, row: usize) -> usize {
        FIRST_MESSAGE + user * self.messages + row
    }
}

fn digits(place: &mut [u8], mut number: usize) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn language(draw: &mut Draw) -> &'static Language {
    let mut left = draw.below(LANGUAGES.iter().map(|(people, _)| people).sum());
    for (people, language) in &LANGUAGES {
        match left.checked_sub(*people) {
            Some(rest) => left = rest,
            None => return language,
        }
    }
    unreachable!("a number below the sum of all lies in one of them")
}

struct Person {
    id: usize,
    name: &'static str,
    email: String,
    language: &'static Language,
}

fn person(user: usize) -> Person {
    let mut draw = Draw::keyed(user as u64);
    let language = language(&mut draw);
    Person {
        id: FIRST_USER + user,
        name: draw.one_of(language.names),
        email: format!("visitor.{user}@example.com"),
        language,
    }
}

fn user_row(user: usize) -> String {
    let person = person(user);
    let mut draw = Draw::keyed(0x5eed << 32 | user as u64);
    let created = EPOCH + draw.below(300 * 86_400);
    let updated = created + draw.below(100 * 86_400);
    let attributes: Vec<Value> = [("plan", "team"), ("locale", "en-GB"), ("seats", "12")]
        .iter()
        .take(draw.below(4))
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    object(&[
        ("id", json!(person.id)),
        ("name", json!(person.name)),
        ("email", json!(person.email)),
        (
            "reference",
            json!(format!("crm-{:08x}", draw.below(1 << 32))),
        ),
        ("created_at", json!(instant(created, draw.below(1_000)))),
        ("updated_at", json!(instant(updated, draw.below(1_000)))),
        ("online_at", json!(instant(updated, draw.below(1_000)))),
        (
            "last_url",
            json!(format!("https://www.example.com/{}", draw.one_of(&PLACES))),
        ),
        ("user_attributes", json!(attributes)),
    ])
}

fn list(user: usize, messages: usize) -> List {
    let person = person(user);
    let mut draw = Draw::keyed(0xc4a7 << 32 | user as u64);
    let mut at = EPOCH + draw.below(300 * 86_400);
    let mut rows = Rows::default();
    let mut senders = Vec::with_capacity(messages);
    for row in 0..messages {
        at += if draw.percent(10) {
            draw.below(5 * 86_400)
        } else {
            draw.below(180)
        };
        let id = FIRST_MESSAGE + user * messages + row;
        let operator = draw.percent(50).then(|| draw.below(OPERATORS.len()));
        let text = message_row(&person, id, operator, at, &mut draw);
        let sender = text
            .find(r#""sender":{"id":"#)
            .map_or(0, |at| at + r#""sender":{"id":"#.len());
        let begin = rows.push(&text);
        senders.push(if operator.is_none() {
            begin + sender
        } else {
            0
        });
    }
    List {
        rows: rows.ended(),
        senders,
    }
}

fn message_row(
    person: &Person,
    id: usize,
    operator: Option<usize>,
    at: usize,
    draw: &mut Draw,
) -> String {
    let mut body = draw.one_of(person.language.phrases).to_owned();
    for _ in 0..draw.below(10) / 4 {
        body.push(' ');
        body.push_str(draw.one_of(person.language.phrases));
    }
    let file = draw.percent(4).then(|| {
        format!(
            "https://files.example.com/u/{}/screenshot-{id}.png",
            person.id
        )
    });
    let read = !draw.percent(3);
    object(&[
        ("id", json!(id)),
        ("body", json!(body)),
        ("read_by_user", json!(operator.is_none() || read)),
        ("read_by_operator", json!(operator.is_some() || read)),
        ("created_at", json!(instant(at, draw.below(1_000)))),
        ("file_url", json!(file)),
        (
            "auto_invitation",
            json!(operator.is_some() && draw.percent(5)),
        ),
        (
            "sender_type",
            json!(if operator.is_some() {
                "operator"
            } else {
                "user"
            }),
        ),
        ("sender", Value::Null),
    ])
    .replace(
        "\"sender\":null",
        &format!("\"sender\":{}", sender(person, operator)),
    )
}

fn sender(person: &Person, operator: Option<usize>) -> String {
    let Some(which) = operator else {
        return object(&[
            ("id", json!(person.id)),
            ("name", json!(person.name)),
            ("email", json!(person.email)),
        ]);
    };
    let (forename, surname, picture) = OPERATORS[which];
    let picture = picture.map(|key| format!("https://cdn.example.com/o/{key}.jpg"));
    object(&[
        ("id", json!(301 + which)),
        ("forename", json!(forename)),
        ("surname", json!(surname)),
        ("email", json!(format!("operator{which}@example.com"))),
        ("picture_thumb_url", json!(picture)),
    ])
}

/// A JSON object with its fields in the order of the interface.
fn object(fields: &[(&str, Value)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

fn instant(seconds: usize, milliseconds: usize) -> String {
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(day);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// The date of a day since 1970.
fn date(mut day: usize) -> (usize, usize, usize) {
    let leap = |year: usize| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while day >= 365 + usize::from(leap(year)) {
        day -= 365 + usize::from(leap(year));
        year += 1;
    }
    let february = 28 + usize::from(leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month, day + 1)
}

//! Rows rendered once, side by side with their commas, so that a page is one slice of them.

use std::borrow::Cow;

use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};

use crate::body::Bodies;
use crate::draw::Draw;
use crate::words::{LANGUAGES, Language, OPERATORS, PLACES};
use speed_wire::FIRST_USER;

/// All ids have as many digits as the first, so that those of a rendered list can be overwritten.
const FIRST_MESSAGE: usize = 1_000_000_001;
const MESSAGE_DIGITS: usize = 10;
const USER_DIGITS: usize = 7;
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

/// What is served.
#[derive(Clone, Copy)]
pub struct Plan {
    pub users: usize,
    /// Of each user.
    pub messages: usize,
    pub bodies: Bodies,
}

impl Plan {
    fn message_id(&self, user: usize, row: usize) -> usize {
        FIRST_MESSAGE + user * self.messages + row
    }
}

/// The whole service.
pub struct Service {
    plan: Plan,
    users: Rows,
    lists: Vec<List>,
}

impl Service {
    /// The first lists are rendered; those of later users are the same ones with other ids, put
    /// in when they are asked for.
    pub fn new(plan: Plan, rendered: usize) -> Self {
        let mut rows = Rows::default();
        for user in 0..plan.users {
            rows.push(&user_row(user));
        }
        Self {
            plan,
            users: rows.ended(),
            lists: (0..rendered.min(plan.users)).map(|user| list(&plan, user)).collect(),
        }
    }

    pub fn total_users(&self) -> usize {
        self.plan.users
    }

    pub fn total_messages(&self) -> usize {
        self.plan.messages
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
                self.plan.message_id(user, row),
            );
            if list.senders[row] > 0 {
                let at = list.senders[row] - start;
                digits(&mut page[at..at + USER_DIGITS], FIRST_USER + user);
            }
        }
        Cow::Owned(page)
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
    json!({
        "id": person.id,
        "name": person.name,
        "email": person.email,
        "reference": format!("crm-{:08x}", draw.below(1 << 32)),
        "created_at": instant(created, draw.below(1_000)),
        "updated_at": instant(updated, draw.below(1_000)),
        "online_at": instant(updated, draw.below(1_000)),
        "last_url": format!("https://www.example.com/{}", draw.one_of(&PLACES)),
        "user_attributes": attributes,
    })
    .to_string()
}

fn list(plan: &Plan, user: usize) -> List {
    let person = person(user);
    let mut draw = Draw::keyed(0xc4a7 << 32 | user as u64);
    let mut at = EPOCH + draw.below(300 * 86_400);
    let mut rows = Rows::default();
    let mut senders = Vec::with_capacity(plan.messages);
    for row in 0..plan.messages {
        at += if draw.percent(10) {
            draw.below(5 * 86_400)
        } else {
            draw.below(180)
        };
        let id = plan.message_id(user, row);
        let operator = draw.percent(50).then(|| draw.below(OPERATORS.len()));
        let body = plan.bodies.draw(person.language, &mut draw);
        let text = message_row(&person, id, &body, operator, at, &mut draw);
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
    body: &str,
    operator: Option<usize>,
    at: usize,
    draw: &mut Draw,
) -> String {
    let file = draw.percent(4).then(|| {
        format!(
            "https://files.example.com/u/{}/screenshot-{id}.png",
            person.id
        )
    });
    let (read, milliseconds) = (!draw.percent(3), draw.below(1_000));
    let row = json!({
        "id": id,
        "body": Value::Null,
        "read_by_user": operator.is_none() || read,
        "read_by_operator": operator.is_some() || read,
        "created_at": instant(at, milliseconds),
        "file_url": file,
        "auto_invitation": operator.is_some() && draw.percent(5),
        "sender_type": if operator.is_some() { "operator" } else { "user" },
        "sender": sender(person, operator),
    });
    // A body may have escapes that serde_json would spell otherwise.
    row.to_string()
        .replacen("\"body\":null", &format!("\"body\":{body}"), 1)
}

fn sender(person: &Person, operator: Option<usize>) -> Value {
    let Some(which) = operator else {
        return json!({"id": person.id, "name": person.name, "email": person.email});
    };
    let (forename, surname, picture) = OPERATORS[which];
    json!({
        "id": 301 + which,
        "forename": forename,
        "surname": surname,
        "email": format!("operator{which}@example.com"),
        "picture_thumb_url": picture.map(|key| format!("https://cdn.example.com/o/{key}.jpg")),
    })
}

fn instant(seconds: usize, milliseconds: usize) -> String {
    DateTime::from_timestamp(seconds as i64, milliseconds as u32 * 1_000_000)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

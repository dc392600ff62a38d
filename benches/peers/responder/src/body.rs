//! What a message says, as JSON: several kinds, since decoders differ in what they are fast at.

use std::str::FromStr;

use serde_json::json;

use crate::draw::Draw;
use crate::words::{Language, SHORT};

#[derive(Clone, Copy)]
pub enum Bodies {
    /// One to three phrases, of which few need an escape.
    Own,
    /// The same with a line break, quotation marks or a character spelled `\uXXXX` in each.
    Escaped,
    /// A few words.
    Short,
    /// This many bytes, or up to three fewer where a character would be cut.
    Long(usize),
}

impl FromStr for Bodies {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Ok(match name {
            "own" => Self::Own,
            "escaped" => Self::Escaped,
            "short" => Self::Short,
            _ => match name.parse() {
                Ok(bytes) => Self::Long(bytes),
                Err(_) => return Err(format!("no such bodies: {name}")),
            },
        })
    }
}

impl Bodies {
    /// The JSON string of a message in that language.
    pub fn draw(self, language: &Language, draw: &mut Draw) -> String {
        match self {
            Self::Own => json!(phrases(language, draw)).to_string(),
            Self::Escaped => escaped(&phrases(language, draw), draw),
            Self::Short => json!(draw.one_of(&SHORT)).to_string(),
            Self::Long(bytes) => {
                let mut body = phrases(language, draw);
                while body.len() < bytes {
                    body.push(' ');
                    body.push_str(draw.one_of(language.phrases));
                }
                let most = (0..=bytes).rev().find(|at| body.is_char_boundary(*at));
                json!(body[..most.unwrap_or_default()]).to_string()
            }
        }
    }
}

fn phrases(language: &Language, draw: &mut Draw) -> String {
    let mut body = draw.one_of(language.phrases).to_owned();
    for _ in 0..draw.below(10) / 4 {
        body.push(' ');
        body.push_str(draw.one_of(language.phrases));
    }
    body
}

/// With an escape in the first word, or behind it.
fn escaped(body: &str, draw: &mut Draw) -> String {
    let (word, rest) = body.split_once(' ').unwrap_or((body, ""));
    match draw.below(3) {
        0 => json!(format!("{word}\n{rest}")).to_string(),
        1 => json!(format!("\"{word}\" {rest}")).to_string(),
        _ => {
            let mut characters = body.chars();
            let first = characters.next().map(String::from).unwrap_or_default();
            format!("\"{}{}\"", spelled(&first), unquoted(characters.as_str()))
        }
    }
}

/// A text in JSON, without its quotation marks.
fn unquoted(text: &str) -> String {
    let quoted = json!(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// A text in JSON in which each character is an escape.
fn spelled(text: &str) -> String {
    text.encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

//! Stars for the secret where an answer repeats it: a service that sends our headers back does not get
//! it into a message.

use std::sync::Arc;

use secrecy::ExposeSecret;

use super::config::Origin;
use super::json::Fault;

// What is shorter may stand in any text by chance.
const LEAST: usize = 6;

/// Knows the secret that must not be shown; by default there is none.
#[derive(Debug, Clone, Default)]
pub struct Stars(Option<Arc<Origin>>);

impl Stars {
    pub fn of(origin: &Arc<Origin>) -> Self {
        Self(Some(Arc::clone(origin)))
    }

    pub fn over(&self, mut fault: Fault) -> Fault {
        if let Some(origin) = &self.0 {
            let secret = origin.api_secret.expose_secret();
            // As it stands in JSON, and in a message that quotes a text.
            let escaped = secret.replace('\\', r"\\").replace('"', "\\\"");
            for text in [&mut fault.path, &mut fault.reason, &mut fault.snippet] {
                for form in [secret, &escaped] {
                    *text = starred(text, form);
                }
            }
        }
        fault
    }
}

fn starred(text: &str, secret: &str) -> String {
    if secret.len() < LEAST {
        return text.to_owned();
    }
    let mut starred = text.replace(secret, &"*".repeat(secret.len()));
    // A snippet may begin or end within it.
    for length in (LEAST..secret.len()).rev() {
        if let (Some(head), Some(tail)) =
            (secret.get(..length), secret.get(secret.len() - length..))
        {
            if let Some(before) = starred.strip_suffix(head) {
                starred = format!("{before}{}", "*".repeat(length));
            }
            if let Some(after) = starred.strip_prefix(tail) {
                starred = format!("{}{after}", "*".repeat(length));
            }
        }
    }
    starred
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_starred_whole_and_where_a_text_is_cut_within_it() {
        let secret = "t0psecret!";
        assert_eq!(starred("a t0psecret! b", secret), "a ********** b");
        assert_eq!(starred("a t0psec", secret), "a ******");
        assert_eq!(starred("secret! b", secret), "******* b");
        assert_eq!(starred("a secret b", secret), "a secret b");
        assert_eq!(starred("id", "id"), "id");
    }
}

//! Bootstrap tokens as people type them: `abcdef.0123456789abcdef`.

use std::fmt;
use std::str::FromStr;

const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// A bootstrap token.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken {
    /// By which it is known; no secret.
    pub(super) id: String,
    pub(super) secret: String,
}

/// Why something is no bootstrap token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bootstrap token is not of the form \"[a-z0-9]{{6}}.[a-z0-9]{{16}}\"")]
pub struct NoToken;

impl BootstrapToken {
    /// One that nobody can guess.
    pub fn random() -> Self {
        Self { id: letters(ID_LENGTH), secret: letters(SECRET_LENGTH) }
    }

    /// By which it is known.
    pub fn id(&self) -> &str {
        &self.id
    }
}

fn letters(count: usize) -> String {
    let letter = |_| char::from(LETTERS[usize::from(rand::random_range(0..36_u8))]);
    (0..count).map(letter).collect()
}

impl FromStr for BootstrapToken {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let (id, secret) = text.trim().split_once('.').ok_or(NoToken)?;
        let is_plain = |part: &str, length: usize| {
            part.len() == length && part.bytes().all(|byte| LETTERS.contains(&byte))
        };
        let is_sound = is_plain(id, ID_LENGTH) && is_plain(secret, SECRET_LENGTH);
        is_sound.then(|| Self { id: id.to_owned(), secret: secret.to_owned() }).ok_or(NoToken)
    }
}

impl fmt::Display for BootstrapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.id, self.secret)
    }
}

impl fmt::Debug for BootstrapToken {
    /// Without its secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BootstrapToken({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_is_written_and_nothing_else_is_one() {
        for _ in 0..20 {
            let token = BootstrapToken::random();
            assert_eq!(token.to_string().parse(), Ok(token.clone()));
            assert!(!format!("{token:?}").contains(&token.secret), "it would be in logs");
        }
        for other in ["", "abcdef", "abcdef.0123", "ABCDEF.0123456789abcdef", "abcdef0123456789"] {
            assert_eq!(other.parse::<BootstrapToken>(), Err(NoToken), "{other}");
        }
    }
}

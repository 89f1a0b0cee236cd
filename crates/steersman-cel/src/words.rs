//! The words that name nothing.

/// Words that the language keeps for itself, though it has no use for them yet.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Words that mean something.
const MEANINGFUL: [&str; 4] = ["true", "false", "null", "in"];

/// Whether a word is one that a name has to be escaped for.
pub(crate) fn is_keyword(word: &str) -> bool {
    RESERVED.contains(&word) || MEANINGFUL.contains(&word)
}

/// Whether a word can name a variable: letters, digits and `_`, no digit first, and none of the
/// words that mean something or are kept.
pub fn is_identifier(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && word.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
        && !is_keyword(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_name_a_variable() {
        for word in ["a", "_", "_1", "snake_case", "camelCase", "True", "voided"] {
            assert!(is_identifier(word), "{word}");
        }
        for word in ["", "1a", "a-b", "a.b", "ä", "true", "in", "void", "namespace"] {
            assert!(!is_identifier(word), "{word}");
        }
    }
}

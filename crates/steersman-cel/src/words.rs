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

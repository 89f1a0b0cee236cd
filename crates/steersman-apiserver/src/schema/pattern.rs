//! The `pattern` of strings in custom resources' schemas: Go's regular expressions.
//!
//! The syntax is that of the `regex` crate but for classes such as `\d`, which are ASCII in Go.
//! Both match in linear time; the size of a compiled pattern is bounded.

use regex::{Regex, RegexBuilder};

/// The most memory that one pattern may take.
const SIZE_MAX: usize = 1 << 20;

/// A pattern as written and compiled.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// As the schema says it.
    pub(crate) text: String,
    compiled: Result<Regex, String>,
}

impl Pattern {
    /// Compiles a pattern; one that cannot be compiled matches nothing.
    pub(crate) fn new(text: &str) -> Self {
        let mut builder = RegexBuilder::new(&ascii_classes(text));
        let compiled = builder.size_limit(SIZE_MAX).dfa_size_limit(SIZE_MAX).build();
        let brief = |error: regex::Error| match error {
            regex::Error::CompiledTooBig(_) => "expression too large".to_owned(),
            error => in_go_words(text, &error.to_string()),
        };
        Self { text: text.to_owned(), compiled: compiled.map_err(brief) }
    }

    /// Why the pattern cannot be used.
    pub(crate) fn error(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// Whether some part of a text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.compiled.as_ref().is_ok_and(|regex| regex.is_match(text))
    }
}

/// What is wrong with a pattern, as Go words it where both complain of the same.
fn in_go_words(pattern: &str, error: &str) -> String {
    let brief = error.lines().last().unwrap_or("invalid").trim();
    let brief = brief.trim_start_matches("error: ");
    let go = match brief {
        "unclosed group" => format!("missing closing ): `{pattern}`"),
        "unopened group" => format!("unexpected ): `{pattern}`"),
        "unclosed character class" => {
            let from = pattern.rfind('[').unwrap_or(0);
            format!("missing closing ]: `{}`", &pattern[from..])
        }
        other => format!("{other}: `{pattern}`"),
    };
    format!("error parsing regexp: {go}")
}

/// Writes classes of letters, digits and blanks as the ASCII ranges that they mean in Go.
fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let escaped = chars.next();
                match escaped.and_then(|escaped| class(escaped, in_class)) {
                    Some(class) => out.push_str(class),
                    None => {
                        out.push('\\');
                        out.extend(escaped);
                    }
                }
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        out.push(c);
    }
    out
}

fn class(letter: char, in_class: bool) -> Option<&'static str> {
    Some(match (letter, in_class) {
        ('d', false) => "[0-9]",
        ('d', true) => "0-9",
        ('D', false) => "[^0-9]",
        ('w', false) => "[0-9A-Za-z_]",
        ('w', true) => "0-9A-Za-z_",
        ('W', false) => "[^0-9A-Za-z_]",
        ('s', false) => r"[\t\n\f\r ]",
        ('s', true) => r"\t\n\f\r\x20",
        ('S', false) => r"[^\t\n\f\r ]",
        ('b', false) => r"(?-u:\b)",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_match_anywhere_and_know_ascii_classes() {
        assert!(Pattern::new(r"\d{2}").matches("a12b"));
        assert!(!Pattern::new(r"^\d+$").matches("\u{664}\u{662}"));
        assert!(Pattern::new(r"^[\w-]+$").matches("a-b_9"));
        assert!(Pattern::new(r"^[^\s]+$").matches("caf\u{e9}"));
        assert!(Pattern::new(r"^\p{L}+$").matches("caf\u{e9}"));
        assert!(Pattern::new(r"\.\\d").matches(r".\d"));
    }

    #[test]
    fn a_pattern_that_is_wrong_or_huge_matches_nothing_and_says_why() {
        for text in ["(", "[a", "a{5000}{5000}", "(?<=a)b", "\\"] {
            let pattern = Pattern::new(text);
            assert!(pattern.error().is_some(), "{text}");
            assert!(!pattern.matches("a"), "{text}");
        }
    }
}

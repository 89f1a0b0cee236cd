//! The `pattern` of strings in custom resources' schemas: Go's regular expressions.
//!
//! The syntax is that of the `regex` crate but for classes such as `\d`, which are ASCII in Go.
//! Both match in linear time; the size of a compiled pattern is bounded.

use regex::{Regex, RegexBuilder};

/// The most memory that one pattern may take.
const SIZE_MAX: usize = 10 << 20;

/// A pattern as written and compiled.
#[derive(Debug)]
pub struct Pattern {
    /// As the schema says it.
    pub(crate) text: String,
    compiled: Result<Regex, String>,
}

impl Pattern {
    /// Compiles a pattern; one that cannot be compiled matches nothing.
    pub(crate) fn new(text: &str) -> Self {
        if let Some(why) = odd_repetition(text) {
            return Self { text: text.to_owned(), compiled: Err(why) };
        }
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

    /// Why Go refuses the pattern, where that is sure: the two differ in what else they take.
    pub(crate) fn mistake(&self) -> Option<&str> {
        const SURE: [&str; 6] = [
            "missing closing",
            "unexpected )",
            "missing argument to repetition",
            "Perl syntax",
            "invalid nested repetition",
            "invalid repeat count",
        ];
        self.error().filter(|error| SURE.iter().any(|sure| error.contains(sure)))
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
        "repetition operator missing expression" => {
            let operator = pattern.chars().find(|c| "*+?".contains(*c)).unwrap_or('*');
            format!("missing argument to repetition operator: `{operator}`")
        }
        "look-around, including look-ahead and look-behind, is not supported" => {
            let from = pattern.find("(?").unwrap_or(0);
            let end = pattern.len().min(from + 3);
            let shown = pattern.get(from..end).unwrap_or(pattern);
            format!("invalid or unsupported Perl syntax: `{shown}`")
        }
        "unclosed character class" => {
            let from = pattern.rfind('[').unwrap_or(0);
            format!("missing closing ]: `{}`", &pattern[from..])
        }
        other => format!("{other}: `{pattern}`"),
    };
    format!("error parsing regexp: {go}")
}

/// Writes a pattern of Go's in the other syntax: classes of letters, digits and blanks are ASCII
/// ranges there, a bracket or `&&` within a class stands for itself, and so does a brace that
/// begins no repetition.
fn ascii_classes(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '[' if in_class && !chars.as_str().starts_with(':') => out.push('\\'),
            '&' | '~' if in_class => out.push('\\'),
            '{' if !in_class && !begins_repetition(chars.as_str()) => out.push('\\'),
            '[' if in_class => {
                // A class by its name, such as `[:alpha:]`.
                let end = chars.as_str().find(']').map_or(chars.as_str().len(), |end| end + 1);
                out.push(c);
                out.push_str(&chars.as_str()[..end]);
                chars = chars.as_str()[end..].chars();
                continue;
            }
            '[' => {
                in_class = true;
                out.push(c);
                // A bracket that closes nothing stands for itself.
                for first in ["^]", "]", "^"] {
                    if let Some(rest) = chars.as_str().strip_prefix(first) {
                        out.push_str(&first.replace(']', r"\]"));
                        chars = rest.chars();
                        break;
                    }
                }
                continue;
            }
            '\\' => {
                let escaped = chars.next();
                if matches!(escaped, Some('p' | 'P')) && chars.as_str().starts_with('{') {
                    let end = chars.as_str().find('}').map_or(0, |end| end + 1);
                    out.push('\\');
                    out.extend(escaped);
                    out.push_str(&chars.as_str()[..end]);
                    chars = chars.as_str()[end..].chars();
                    continue;
                }
                match escaped.and_then(|escaped| class(escaped, in_class)) {
                    Some(class) => out.push_str(class),
                    None => {
                        out.push('\\');
                        out.extend(escaped);
                    }
                }
                continue;
            }
            ']' => in_class = false,
            _ => {}
        }
        out.push(c);
    }
    out
}

/// What Go refuses of repetitions and others take: one right after another, and more than a
/// thousand times.
fn odd_repetition(pattern: &str) -> Option<String> {
    const TIMES_MAX: u32 = 1000;
    let mut in_class = false;
    // Where the last repetition began, and whether its laziness has been said.
    let mut last: Option<(usize, bool)> = None;
    let mut at = 0;
    while let Some(c) = pattern[at..].chars().next() {
        let rest = &pattern[at + c.len_utf8()..];
        let mut length = c.len_utf8();
        let repeats = match c {
            '\\' => {
                length += rest.chars().next().map_or(0, char::len_utf8);
                false
            }
            '[' if !in_class => {
                in_class = true;
                let first = ["^]", "]", "^"].into_iter().find(|first| rest.starts_with(first));
                length += first.map_or(0, str::len);
                false
            }
            ']' => {
                in_class = false;
                false
            }
            '*' | '+' | '?' => !in_class,
            '{' if !in_class && begins_repetition(rest) => {
                let (times, _) = rest.split_once('}')?;
                length += times.len() + 1;
                let many = |text: &str| text.parse::<u32>().is_ok_and(|times| times > TIMES_MAX);
                if times.split(',').any(many) {
                    return Some(format!(
                        "error parsing regexp: invalid repeat count: `{{{times}}}`"
                    ));
                }
                true
            }
            // What stands behind `(?` is a flag and no repetition.
            '(' if rest.starts_with('?') => {
                length += 1;
                false
            }
            _ => false,
        };
        last = match last {
            _ if !repeats => None,
            Some((began, false)) if c == '?' => Some((began, true)),
            Some((began, _)) => {
                let both = &pattern[began..at + length];
                return Some(format!(
                    "error parsing regexp: invalid nested repetition operator: `{both}`"
                ));
            }
            None => Some((at, false)),
        };
        at += length;
    }
    None
}

/// Whether what follows a brace makes it a repetition: `3}`, `3,}` or `3,5}`.
fn begins_repetition(rest: &str) -> bool {
    let Some((count, _)) = rest.split_once('}') else { return false };
    let (least, most) = count.split_once(',').unwrap_or((count, "0"));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
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
    fn what_stands_for_itself_in_go_does_so_here() {
        for (pattern, text) in [
            ("^[^[]+$", "ab"),
            (r"^[a-z0-9[\]]+$", "a[]"),
            ("[[a]", "["),
            ("^[a&&b]+$", "b&a"),
            ("^[a~~b]+$", "~a"),
            ("^{{.*}}$", "{{x}}"),
            ("a{", "a{"),
            ("a{,5}", "a{,5}"),
            ("^[]a]+$", "]a"),
            ("^[^]a]+$", "b"),
            ("^[[:alpha:]_]+$", "a_b"),
            (r"^[\s\S]{0,1000}$", "abc"),
            ("^a{2,3}$", "aaa"),
        ] {
            let compiled = Pattern::new(pattern);
            assert_eq!(compiled.error(), None, "{pattern}");
            assert!(compiled.matches(text), "{pattern}");
        }
    }

    #[test]
    fn only_what_go_surely_refuses_is_a_mistake() {
        for (pattern, refused) in [
            ("(", true),
            ("a)", true),
            ("[a", true),
            ("*a", true),
            ("(?=a)", true),
            (r"\Q.a\E", false),
        ] {
            assert_eq!(Pattern::new(pattern).mistake().is_some(), refused, "{pattern}");
        }
    }

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

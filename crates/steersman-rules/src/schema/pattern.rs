//! The `pattern` of strings in custom resources' schemas: Go's regular expressions.
//!
//! The syntax is that of the `regex` crate but for classes such as `\d`, which are ASCII in Go, and
//! for what Go lets stand for itself. Both match in linear time.
//!
//! A pattern is compiled when a value first meets it, and equal patterns are compiled once for all
//! schemas. What is compiled is kept within [`COMPILED_MAX`]: compiled, a pattern of ten bytes can
//! take a million, and a schema may have thousands.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;

/// The most memory that one pattern may take.
const SIZE_MAX: usize = 10 << 20;
const TOO_LARGE: &str = "expression too large";
/// How much of what it has learned about texts a compiled pattern remembers.
const LEARNED_MAX: usize = 256 << 10;
/// The most memory that all compiled patterns may take.
const COMPILED_MAX: usize = 64 << 20;
/// What a compiled pattern takes besides what it counts itself.
const OVERHEAD: usize = 512;

/// A pattern as written.
#[derive(Debug)]
pub struct Pattern {
    /// As the schema says it.
    pub(crate) text: String,
}

impl Pattern {
    /// A pattern; one that cannot be compiled matches nothing.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    /// Why the pattern cannot be used.
    pub(crate) fn mistake(&self) -> Option<String> {
        self.compiled().regex.as_ref().err().cloned()
    }

    /// How many bytes it takes to compile the pattern, also where that comes to nothing.
    pub(crate) fn cost(&self) -> usize {
        let compiled = self.compiled();
        let is_huge = matches!(&compiled.regex, Err(why) if why == TOO_LARGE);
        if is_huge { SIZE_MAX } else { compiled.size }
    }

    /// Whether some part of a text matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.compiled().regex.as_ref().is_ok_and(|regex| regex.is_match(text))
    }

    fn compiled(&self) -> Arc<Compiled> {
        let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = kept().get(&self.text) {
            return compiled;
        }
        // Not under the lock: others go on matching meanwhile.
        let compiled = Arc::new(Compiled::new(&self.text));
        kept().add(&self.text, Arc::clone(&compiled));
        compiled
    }
}

/// A pattern compiled, or why it cannot be.
#[derive(Debug)]
struct Compiled {
    regex: Result<Regex, String>,
    /// The bytes that it takes.
    size: usize,
}

impl Compiled {
    fn new(text: &str) -> Self {
        let regex = match odd_repetition(text) {
            Some(why) => Err(why),
            None => build(text).map_err(|error| match error.size_limit() {
                Some(_) => TOO_LARGE.to_owned(),
                None => {
                    let why = error.syntax_error().map(ToString::to_string);
                    in_go_words(text, &why.unwrap_or_else(|| error.to_string()))
                }
            }),
        };
        let of_regex = |regex: &Regex| regex.memory_usage() + regex.create_cache().memory_usage();
        let size = OVERHEAD + 2 * text.len() + regex.as_ref().map_or(0, of_regex);
        Self { regex, size }
    }
}

/// Only whether a text matches is asked, so nothing is prepared for where it does.
fn build(text: &str) -> Result<Regex, Box<BuildError>> {
    let config = Config::new()
        .nfa_size_limit(Some(SIZE_MAX))
        .hybrid_cache_capacity(LEARNED_MAX)
        .which_captures(WhichCaptures::Implicit)
        .onepass(false)
        .dfa(false);
    let syntax = syntax::Config::new().octal(true);
    let builder = &mut Regex::builder();
    builder.configure(config).syntax(syntax).build(&in_other_syntax(text)).map_err(Box::new)
}

/// The compiled patterns of all schemas.
static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

/// Compiled patterns by their text, those that were used last.
#[derive(Default)]
struct Kept {
    /// With the number of the last use.
    known: HashMap<String, (Arc<Compiled>, u64)>,
    /// The bytes that all of them take.
    size: usize,
    uses: u64,
}

impl Kept {
    fn get(&mut self, text: &str) -> Option<Arc<Compiled>> {
        self.uses += 1;
        let (compiled, used) = self.known.get_mut(text)?;
        *used = self.uses;
        Some(Arc::clone(compiled))
    }

    /// Adds a pattern. If there is no room for it, the half goes that was not used for longest, so
    /// that this is seldom.
    fn add(&mut self, text: &str, compiled: Arc<Compiled>) {
        self.size += compiled.size;
        if let Some((old, _)) = self.known.insert(text.to_owned(), (compiled, self.uses)) {
            self.size -= old.size;
        }
        if self.size <= COMPILED_MAX {
            return;
        }
        let mut by_use: Vec<(u64, String)> =
            self.known.iter().map(|(text, (_, used))| (*used, text.clone())).collect();
        by_use.sort();
        for (_, text) in by_use {
            if self.size <= COMPILED_MAX / 2 {
                break;
            }
            if let Some((gone, _)) = self.known.remove(&text) {
                self.size -= gone.size;
            }
        }
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
/// begins no repetition, and whatever is between `\Q` and `\E`.
fn in_other_syntax(pattern: &str) -> String {
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
                if escaped == Some('Q') && !in_class {
                    let rest = chars.as_str();
                    let (literal, after) = rest.split_once("\\E").unwrap_or((rest, ""));
                    literal.chars().for_each(|c| push_literal(&mut out, c));
                    chars = after.chars();
                    continue;
                }
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

/// Writes a character that stands for itself.
fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
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
            '\\' if rest.starts_with('Q') && !in_class => {
                length += rest.find("\\E").map_or(rest.len(), |end| end + 2);
                false
            }
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
    use std::sync::Arc;

    use super::{COMPILED_MAX, Compiled, KEPT, Kept, Pattern};

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
            (r"^\Q.a*[\E$", ".a*["),
            (r"^\Qa{2}{3}", "a{2}{3}"),
            (r"^\101$", "A"),
        ] {
            let compiled = Pattern::new(pattern);
            assert_eq!(compiled.mistake(), None, "{pattern}");
            assert!(compiled.matches(text), "{pattern}");
        }
    }

    #[test]
    fn what_cannot_be_compiled_is_a_mistake_in_the_words_of_go() {
        for (pattern, why) in [
            ("(", "error parsing regexp: missing closing ): `(`"),
            ("a)", "error parsing regexp: unexpected ): `a)`"),
            ("[a", "error parsing regexp: missing closing ]: `[a`"),
            ("*a", "error parsing regexp: missing argument to repetition operator: `*`"),
            ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
            (r"\p{L}{1000}", "expression too large"),
        ] {
            assert_eq!(Pattern::new(pattern).mistake().as_deref(), Some(why), "{pattern}");
        }
    }

    /// What thousands of patterns take, each of which takes nearly a megabyte.
    #[test]
    fn compiled_patterns_stay_within_their_bound() {
        let mut kept = Kept::default();
        let text = |i: usize| format!("^{i:04}.{{1,900}}$");
        for i in 0..200 {
            let compiled = Arc::new(Compiled::new(&text(i)));
            assert!(compiled.size > 512 << 10, "{}", compiled.size);
            kept.add(&text(i), compiled);
            assert!(kept.get(&text(0)).is_some(), "what is used stays");
            assert!(kept.size <= COMPILED_MAX);
        }
        let sum: usize = kept.known.values().map(|(compiled, _)| compiled.size).sum();
        assert_eq!(kept.size, sum);
        assert!(kept.get(&text(199)).is_some() && kept.get(&text(1)).is_none());
    }

    #[test]
    fn equal_patterns_are_compiled_once_and_only_when_used() {
        let patterns = [Pattern::new("^once-for-all$"), Pattern::new("^once-for-all$")];
        let known = || KEPT.lock().unwrap().known.contains_key("^once-for-all$");
        assert!(!known());
        assert!(patterns[0].matches("once-for-all") && known());
        assert!(Arc::ptr_eq(&patterns[0].compiled(), &patterns[1].compiled()));
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
            assert!(pattern.mistake().is_some(), "{text}");
            assert!(!pattern.matches("a"), "{text}");
        }
    }
}

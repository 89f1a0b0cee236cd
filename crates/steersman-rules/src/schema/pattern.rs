//! The `pattern` of strings in custom resources' schemas: Go's regular expressions.
//!
//! They are [translated](translate_pattern) as those in expressions are. Both match in linear time.
//!
//! A pattern is compiled when a value first meets it, and equal patterns are compiled once for all
//! schemas. What is compiled is kept within [`COMPILED_MAX`]: compiled, a pattern of ten bytes can
//! take a million, and a schema may have thousands.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use steersman_cel::translate_pattern;

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
        let regex = translate_pattern(text).and_then(|translated| {
            build(&translated).map_err(|error| match error.size_limit() {
                Some(_) => TOO_LARGE.to_owned(),
                None => format!("error parsing regexp: {error}"),
            })
        });
        let of_regex = |regex: &Regex| regex.memory_usage() + regex.create_cache().memory_usage();
        let size = OVERHEAD + 2 * text.len() + regex.as_ref().map_or(0, of_regex);
        Self { regex, size }
    }
}

/// Only whether a text matches is asked, so nothing is prepared for where it does.
fn build(translated: &str) -> Result<Regex, Box<BuildError>> {
    let config = Config::new()
        .nfa_size_limit(Some(SIZE_MAX))
        .hybrid_cache_capacity(LEARNED_MAX)
        .which_captures(WhichCaptures::Implicit)
        .onepass(false)
        .dfa(false);
    Regex::builder().configure(config).build(translated).map_err(Box::new)
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{COMPILED_MAX, Compiled, KEPT, Kept, Pattern};

    #[test]
    fn what_cannot_be_compiled_is_a_mistake_in_the_words_of_go() {
        for (pattern, why) in [
            ("(", "error parsing regexp: missing closing ): `(`"),
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

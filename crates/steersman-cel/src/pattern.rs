//! Regular expressions in Go's syntax, matched in linear time.

use regex::{Regex, RegexBuilder};

use crate::go_pattern::translate_pattern;

/// A compiled pattern.
pub(crate) type Pattern = Regex;

/// How many bytes a compiled pattern may take.
const SIZE_MAX: usize = 4 << 20;

/// Compiles a pattern, or says as Go does why not.
pub(crate) fn compile(pattern: &str) -> Result<Pattern, String> {
    RegexBuilder::new(&translate_pattern(pattern)?)
        .size_limit(SIZE_MAX)
        .dfa_size_limit(SIZE_MAX)
        .nest_limit(250)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                format!("error parsing regexp: expression too large: `{pattern}`")
            }
            error => format!("error parsing regexp: {error}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_compiled_or_it_is_said_why_not() {
        assert!(compile(r"^\Qa.b\E\d$").unwrap().is_match("a.b1"));
        for (bad, why) in [
            ("a**", "error parsing regexp: invalid nested repetition operator: `**`"),
            (r"(\pL{100}){10}", r"error parsing regexp: expression too large: `(\pL{100}){10}`"),
        ] {
            assert_eq!(compile(bad).unwrap_err(), why);
        }
    }
}

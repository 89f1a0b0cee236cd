//! License expressions as packages write them: SPDX, and `/` for `OR` as it was once.

/// Whether the licenses that are allowed are enough to use a package with this license.
pub(super) fn allows(allowed: &[&str], expression: &str) -> Result<bool, String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = Words { words: spaced.split_whitespace().collect(), at: 0 };
    let enough = words.any(allowed);
    match (enough, words.next()) {
        (Some(enough), None) => Ok(enough),
        _ => Err(format!("`{expression}` is no license expression")),
    }
}

/// The words of an expression, from left to right. A part of it that cannot be read is none.
struct Words<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    /// Passes over a word if it is the next one.
    fn take(&mut self, word: &str) -> bool {
        let there = self.words.get(self.at) == Some(&word);
        self.at += usize::from(there);
        there
    }

    /// `… OR …`.
    fn any(&mut self, allowed: &[&str]) -> Option<bool> {
        let mut enough = self.every(allowed)?;
        while self.take("OR") {
            enough |= self.every(allowed)?;
        }
        Some(enough)
    }

    /// `… AND …`, which binds closer.
    fn every(&mut self, allowed: &[&str]) -> Option<bool> {
        let mut enough = self.one(allowed)?;
        while self.take("AND") {
            enough &= self.one(allowed)?;
        }
        Some(enough)
    }

    /// A license, perhaps `WITH` an exception, or an expression in parentheses.
    fn one(&mut self, allowed: &[&str]) -> Option<bool> {
        if self.take("(") {
            let enough = self.any(allowed)?;
            return self.take(")").then_some(enough);
        }
        let license = self.next().filter(|word| !["OR", "AND", "WITH", ")"].contains(word))?;
        if self.take("WITH") {
            let license = format!("{license} WITH {}", self.next()?);
            return Some(allowed.contains(&license.as_str()));
        }
        // `MPL-2.0+` is that version or, if one prefers, a later one.
        Some(allowed.contains(&license.trim_end_matches('+')))
    }
}

#[test]
fn an_expression_is_allowed_if_one_way_to_meet_it_is() {
    let allowed = ["MIT", "ISC", "MPL-2.0", "Apache-2.0 WITH LLVM-exception"];
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT", true),
        ("GPL-3.0-only/MIT", true),
        ("GPL-3.0-only AND MIT", false),
        ("GPL-3.0-only AND ISC OR MIT", true),
        ("GPL-3.0-only AND (ISC OR MIT)", false),
        ("(GPL-3.0-only OR MIT) AND ISC", true),
        ("Apache-2.0", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("MIT WITH LLVM-exception", false),
        ("MPL-2.0+", true),
    ] {
        assert_eq!(allows(&allowed, expression), Ok(expected), "{expression}");
    }
}

#[test]
fn what_is_no_expression_is_not_allowed() {
    for expression in ["", "MIT OR", "(MIT", "MIT)", "MIT ISC", "WITH", "AND MIT", "MIT WITH"] {
        assert!(allows(&["MIT", "ISC"], expression).is_err(), "{expression}");
    }
}

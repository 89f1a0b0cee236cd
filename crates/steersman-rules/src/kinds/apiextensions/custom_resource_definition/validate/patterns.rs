//! The regular expressions of a definition: each must compile, and all together must not take too much.

use std::collections::HashSet;

use serde_json::Value;

use crate::abandoned::is_abandoned;
use crate::field::FieldError;
use crate::schema::Pattern;

/// Said of a pattern that nobody waits for.
const UNCHECKED: &str = "not checked in time";

/// The most memory that the patterns of one definition may take.
const PATTERNS_MAX: usize = 32 << 20;

/// The patterns of a definition, of which those that are equal count once.
#[derive(Default)]
pub(super) struct Patterns {
    known: HashSet<String>,
    /// The bytes that all of them take.
    size: usize,
}

impl Patterns {
    /// What is wrong with a pattern that stands at a field. When the patterns take too much, no further
    /// ones are looked at.
    pub(super) fn mistake(
        &mut self,
        pattern: &Value,
        field: &dyn Fn() -> String,
    ) -> Option<FieldError> {
        Some(match self.look(pattern.as_str()?)? {
            Mistake::Invalid(error) => {
                let why = format!("must be a valid regular expression, but isn't: {error}");
                FieldError::invalid(field(), pattern, &why)
            }
            Mistake::TooMuch => {
                let why = format!(
                    "contributed to patterns of the definition that take more than {PATTERNS_MAX} \
                     bytes when compiled"
                );
                FieldError::forbidden(field(), &why)
            }
        })
    }

    fn look(&mut self, pattern: &str) -> Option<Mistake> {
        if self.is_over() || self.known.contains(pattern) {
            return None;
        }
        if is_abandoned() {
            return Some(Mistake::Invalid(UNCHECKED.to_owned()));
        }
        let compiled = Pattern::new(pattern);
        self.size += compiled.cost();
        if let Some(why) = compiled.mistake() {
            return Some(Mistake::Invalid(why));
        }
        self.known.insert(pattern.to_owned());
        self.is_over().then_some(Mistake::TooMuch)
    }

    pub(super) fn is_over(&self) -> bool {
        self.size > PATTERNS_MAX
    }
}

/// What can be wrong with a pattern.
enum Mistake {
    Invalid(String),
    /// With this one, the patterns of the definition take too much.
    TooMuch,
}

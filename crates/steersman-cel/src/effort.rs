//! What an evaluation may do beyond what it is charged for.
//!
//! Costs are part of Kubernetes' API and come after a call, by the sizes that it was given. A few calls
//! make much more of them: text that replaces every character of itself, a list of two lists that
//! are the same list, thirty times over. cel-go would go on until its memory ends. Here each evaluation,
//! with those that it asks for, has a number of steps, and one that needs more has cost too much.

use std::cell::Cell;

use crate::error::Error;

/// How many steps there are, each for a byte that is written. Whatever is charged for what it makes
/// ends before them.
const STEPS: u64 = 1 << 23;

/// How many steps it takes to copy a value.
pub(crate) const COPY: usize = 8;

/// How many steps it takes to compare two values: there are nearly as many of them as the limit of costs
/// lets an expression compare, which is ten million.
pub(crate) const COMPARE: usize = 1;

thread_local! {
    /// The steps that are left; none are counted outside of an evaluation.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Counts steps until it is dropped. One within another is a part of it.
pub(crate) struct Effort {
    is_outermost: bool,
}

impl Effort {
    pub(crate) fn begin() -> Self {
        let is_outermost = LEFT.get().is_none();
        if is_outermost {
            LEFT.set(Some(STEPS));
        }
        Self { is_outermost }
    }
}

impl Drop for Effort {
    fn drop(&mut self) {
        if self.is_outermost {
            LEFT.set(None);
        }
    }
}

/// Takes so many steps, before they are done.
pub(crate) fn spend(steps: usize) -> Result<(), Error> {
    let Some(left) = LEFT.get() else { return Ok(()) };
    let after = left.checked_sub(u64::try_from(steps).unwrap_or(u64::MAX));
    // Once there are too few, nothing goes on with less.
    LEFT.set(Some(after.unwrap_or(0)));
    after.map(drop).ok_or_else(Error::cost_limit)
}

#[cfg(test)]
mod tests {
    use super::{Effort, STEPS, spend};

    #[test]
    fn steps_are_counted_from_the_outermost_beginning_on() {
        let steps = usize::try_from(STEPS).unwrap();
        assert!(spend(steps).is_ok() && spend(steps).is_ok(), "nobody counts");
        let outer = Effort::begin();
        assert!(spend(steps - 1).is_ok());
        {
            let _inner = Effort::begin();
            assert!(spend(2).is_err());
        }
        assert!(spend(1).is_err(), "what was too much stays too much");
        drop(outer);
        let _again = Effort::begin();
        assert!(spend(steps).is_ok());
    }
}

//! The search for an order that explains the history of one key.
//!
//! A depth-first search after Wing and Gong: the next in order is an operation that was asked
//! before any other that is left was answered, and whose answer fits the state. After Lowe it
//! remembers which sets of operations led to which state, and never tries the same again. Keys are
//! independent of each other, so each is searched alone.

use std::collections::HashSet;

use steersman_store::{Expected, Revision};

use super::history::{Answer, Moment, Operation, Question, Value};

/// What an operation did to one key, as far as its client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) asked: Moment,
    pub(super) answered: Moment,
    pub(super) effect: Effect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It read this.
    Read(Option<(Value, Revision)>),
    /// It wrote this over that.
    Write {
        value: Option<Value>,
        expected: Expected,
        revision: Revision,
        previous: Option<(Value, Revision)>,
    },
    /// It wrote nothing, because it found this.
    Conflict { value: Option<Value>, expected: Expected, found: Option<Revision> },
    /// It wrote this or not, sooner or later; nobody was told.
    Maybe { value: Option<Value>, expected: Expected },
}

/// What the key holds: the value, and its revision where somebody was told.
type State = Option<(Value, Option<Revision>)>;

/// No order explains what clients were told about a key.
#[derive(Debug)]
pub(super) struct NotLinearizable {
    pub(super) key: usize,
    /// The longest order that could be found, and what is left.
    pub(super) explained: Vec<Step>,
    pub(super) left: Vec<Step>,
}

/// Checks every key of a history that began with no keys.
pub(super) fn check(operations: &[Operation], keys: usize) -> Result<(), NotLinearizable> {
    for key in 0..keys {
        let steps = operations.iter().filter_map(|operation| step(operation, key)).collect();
        Search::new(steps).run().map_err(|(explained, left)| NotLinearizable {
            key,
            explained,
            left,
        })?;
    }
    Ok(())
}

/// What an operation means for a key; nothing if it does not concern it.
fn step(operation: &Operation, of: usize) -> Option<Step> {
    let pair = |held: &super::history::Held| (held.value, held.modified);
    let answer = operation.answer.as_ref().map(|(_, answer)| answer);
    let effect = match (&operation.question, answer) {
        (_, Some(Answer::Nothing)) => return None,
        (Question::Get { key }, Some(Answer::Held(held))) if *key == of => {
            Effect::Read(held.as_ref().map(pair))
        }
        (Question::Range, Some(Answer::State { keys, .. })) => {
            Effect::Read(keys[of].as_ref().map(pair))
        }
        (Question::Write { key, value, expected }, answer) if *key == of => match answer {
            Some(Answer::Written { revision, previous }) => Effect::Write {
                value: *value,
                expected: *expected,
                revision: *revision,
                previous: previous.as_ref().map(pair),
            },
            Some(Answer::Conflict { found }) => {
                Effect::Conflict { value: *value, expected: *expected, found: *found }
            }
            _ => Effect::Maybe { value: *value, expected: *expected },
        },
        _ => return None,
    };
    Some(Step { asked: operation.asked, answered: operation.answered(), effect })
}

/// Whether a key may be what a client was told; if so, what is known of it then.
fn seen(state: State, told: Option<(Value, Revision)>) -> Option<State> {
    match (state, told) {
        (None, None) => Some(None),
        (Some((value, known)), Some((told, revision)))
            if value == told && known.is_none_or(|known| known == revision) =>
        {
            Some(Some((value, Some(revision))))
        }
        _ => None,
    }
}

/// Likewise for a client that was told the revision alone.
fn found(state: State, found: Option<Revision>) -> Option<State> {
    seen(state, state.map(|(value, _)| value).zip(found))
        .filter(|_| state.is_some() == found.is_some())
}

/// Whether a write happens to a key of which this is known.
fn allowed(state: State, expected: Expected, deletes: bool) -> bool {
    let as_expected = match (expected, state) {
        (Expected::Any, _) | (Expected::Absent, None) => true,
        (Expected::Modified(revision), Some((_, known))) => {
            known.is_none_or(|known| known == revision)
        }
        _ => false,
    };
    as_expected && (state.is_some() || !deletes)
}

impl Effect {
    /// What the key holds afterwards, if this can have happened to it.
    fn on(&self, state: State) -> Option<State> {
        match self {
            Self::Read(told) => seen(state, *told),
            Self::Write { value, expected, revision, previous } => {
                let state = seen(state, *previous)?;
                let next = value.map(|value| (value, Some(*revision)));
                allowed(state, *expected, value.is_none()).then_some(next)
            }
            Self::Conflict { value, expected, found: told } => {
                let state = found(state, *told)?;
                (!allowed(state, *expected, value.is_none())).then_some(state)
            }
            Self::Maybe { value, expected } => {
                let next = value.map(|value| (value, None));
                allowed(state, *expected, value.is_none()).then_some(next)
            }
        }
    }
}

/// The search on one key.
struct Search {
    /// Ordered by when they were asked.
    steps: Vec<Step>,
    /// Which steps are in the order that is being tried.
    taken: Vec<u64>,
    /// That order, with the state before each.
    order: Vec<(usize, State)>,
    state: State,
    /// What has been tried before.
    tried: HashSet<(Vec<u64>, State)>,
    longest: Vec<usize>,
}

impl Search {
    fn new(mut steps: Vec<Step>) -> Self {
        steps.sort_by_key(|step| step.asked);
        let taken = vec![0; steps.len().div_ceil(64)];
        let (order, longest) = (Vec::new(), Vec::new());
        Self { steps, taken, order, state: None, tried: HashSet::new(), longest }
    }

    fn is_taken(&self, step: usize) -> bool {
        self.taken[step / 64] >> (step % 64) & 1 == 1
    }

    fn flip(&mut self, step: usize) {
        self.taken[step / 64] ^= 1 << (step % 64);
    }

    /// Finds an order, or gives the longest that it found and what is left then.
    fn run(mut self) -> Result<(), (Vec<Step>, Vec<Step>)> {
        let mut from = 0;
        loop {
            if let Some(next) = self.next(from) {
                self.take(next);
                from = 0;
            } else if self.is_explained() {
                return Ok(());
            } else if let Some((last, before)) = self.order.pop() {
                self.flip(last);
                self.state = before;
                from = last + 1;
            } else {
                let explained = self.longest.iter().map(|step| self.steps[*step].clone()).collect();
                let is_left = |step: &usize| !self.longest.contains(step);
                let left = (0..self.steps.len()).filter(is_left);
                return Err((explained, left.map(|step| self.steps[step].clone()).collect()));
            }
        }
    }

    /// Whether only steps are left that need not have happened.
    fn is_explained(&self) -> bool {
        let pending = |step: &usize| self.steps[*step].answered == Moment::MAX;
        (0..self.steps.len()).all(|step| self.is_taken(step) || pending(&step))
    }

    /// The first step at or after `from` that can come next and leads to something new.
    fn next(&self, from: usize) -> Option<usize> {
        let mut first_answer = Moment::MAX;
        for (number, step) in self.steps.iter().enumerate() {
            if self.is_taken(number) {
                continue;
            }
            if step.asked > first_answer {
                return None;
            }
            first_answer = first_answer.min(step.answered);
            if number >= from && self.leads_to_something_new(number) {
                return Some(number);
            }
        }
        None
    }

    fn leads_to_something_new(&self, step: usize) -> bool {
        self.steps[step].effect.on(self.state).is_some_and(|state| {
            let mut taken = self.taken.clone();
            taken[step / 64] ^= 1 << (step % 64);
            !self.tried.contains(&(taken, state))
        })
    }

    fn take(&mut self, step: usize) {
        let after = self.steps[step].effect.on(self.state).expect("it was looked at");
        self.order.push((step, self.state));
        self.flip(step);
        self.state = after;
        self.tried.insert((self.taken.clone(), after));
        if self.order.len() > self.longest.len() {
            self.longest = self.order.iter().map(|(step, _)| *step).collect();
        }
    }
}

#[cfg(test)]
mod tests;

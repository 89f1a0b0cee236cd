//! The order that the store itself claims: its revisions, over all keys.
//!
//! Who writes after something was answered gets a later revision than it; who reads then reads no
//! earlier one. And one log of all changes, as a watch tells it, explains every write and the
//! state at every revision that was read.

use std::collections::{BTreeMap, HashMap};

use steersman_store::Revision;

use super::history::{Answer, Held, Operation, Question, Value};

/// A change as a watch tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) revision: Revision,
    pub(super) key: usize,
    pub(super) value: Option<Value>,
}

/// Checks the revisions of a history that began with no keys, and the log of its changes.
pub(super) fn check(operations: &[Operation], log: &[Change]) -> Result<(), String> {
    check_time(operations)?;
    check_log(operations, log)?;
    check_states(operations, log)
}

/// The revision that an answer shows to exist, and whether the operation made it.
fn shown(answer: &Answer) -> Option<(Revision, bool)> {
    match answer {
        Answer::Held(held) => held.map(|held| (held.modified, false)),
        Answer::Written { revision, .. } => Some((*revision, true)),
        Answer::Conflict { found } => found.map(|found| (found, false)),
        Answer::State { revision, .. } => Some((*revision, false)),
        Answer::Nothing => None,
    }
}

/// Revisions follow time.
fn check_time(operations: &[Operation]) -> Result<(), String> {
    let mut asked: Vec<&Operation> = operations.iter().collect();
    asked.sort_by_key(|operation| operation.asked);
    let mut answered: Vec<_> = operations.iter().filter(|it| it.answer.is_some()).collect();
    answered.sort_by_key(|operation| operation.answered());
    let mut answered = answered.into_iter().peekable();
    let mut before: Option<(Revision, &Operation)> = None;
    for operation in asked {
        while let Some(earlier) = answered.next_if(|it| it.answered() < operation.asked) {
            let revision = earlier.answer.as_ref().and_then(|(_, answer)| shown(answer));
            let latest = before.map_or(Revision(0), |(revision, _)| revision);
            before = match revision {
                Some((revision, _)) if revision > latest => Some((revision, earlier)),
                _ => before,
            };
        }
        let Some((latest, earlier)) = before else { continue };
        let claimed = match &operation.answer {
            Some((_, Answer::Written { revision, .. })) if *revision <= latest => revision,
            Some((_, Answer::State { revision, .. })) if *revision < latest => revision,
            _ => continue,
        };
        return Err(format!("{claimed} for {operation:?}, which began after {earlier:?}"));
    }
    Ok(())
}

/// The log is in order and holds what was acknowledged; what else it holds may have happened.
fn check_log(operations: &[Operation], log: &[Change]) -> Result<(), String> {
    if let Some(pair) = log.windows(2).find(|pair| pair[0].revision >= pair[1].revision) {
        return Err(format!("out of order: {pair:?}"));
    }
    let mut unexplained: HashMap<Revision, Change> =
        log.iter().map(|change| (change.revision, *change)).collect();
    let mut perhaps = Vec::new();
    for operation in operations {
        let Question::Write { key, value, .. } = operation.question else { continue };
        match &operation.answer {
            Some((_, Answer::Written { revision, .. })) => {
                let change = Change { revision: *revision, key, value };
                if unexplained.remove(revision) != Some(change) {
                    return Err(format!("not in the log, or twice: {operation:?}"));
                }
            }
            None => perhaps.push((key, value)),
            Some(_) => {}
        }
    }
    for change in unexplained.values() {
        let Some(asked) = perhaps.iter().position(|it| *it == (change.key, change.value)) else {
            return Err(format!("nobody asked for {change:?}"));
        };
        perhaps.swap_remove(asked);
    }
    Ok(())
}

/// Every range is the state that the log leads to.
fn check_states(operations: &[Operation], log: &[Change]) -> Result<(), String> {
    let mut states: Vec<_> = operations
        .iter()
        .filter_map(|operation| match &operation.answer {
            Some((_, Answer::State { revision, keys })) => Some((*revision, keys)),
            _ => None,
        })
        .collect();
    states.sort_by_key(|(revision, _)| *revision);
    let mut log = log.iter().peekable();
    let mut state = BTreeMap::new();
    for (revision, keys) in states {
        while let Some(change) = log.next_if(|change| change.revision <= revision) {
            let held = change.value.map(|value| Held { value, modified: change.revision });
            state.insert(change.key, held);
        }
        let expected: Vec<_> =
            (0..keys.len()).map(|key| state.get(&key).copied().flatten()).collect();
        if *keys != expected {
            return Err(format!("at {revision} a range shows {keys:?}, the log {expected:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;

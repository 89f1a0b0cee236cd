//! The requests, generated from the API server's own tables, so that a new kind is among them at
//! once: the [kinds] that it serves, an example of each and what makes it wrong, a full object of
//! each, and the [fields] of its types. One module per family.

mod bootstrap;
mod custom;
mod discovery;
mod errors;
mod extend;
mod fields;
mod kinds;
mod verbs;
mod watch;

use crate::step::Scenario;

/// Scenarios in the order in which they may run: those of one phase all at once, after the phase
/// before.
pub(crate) fn phases(run: &str) -> Vec<Vec<Scenario>> {
    let kinds = kinds::all();
    let mut still = errors::scenarios(run);
    still.extend(discovery::scenarios(&kinds));
    still.push(bootstrap::scenario());
    let mut moving = verbs::scenarios(&kinds, run);
    moving.extend(fields::scenarios(&kinds, run));
    moving.extend(watch::scenarios(&kinds, run));
    moving.extend(custom::scenarios(&kinds, run));
    moving.extend(extend::scenarios(run));
    vec![still, moving]
}

#[cfg(test)]
mod tests;

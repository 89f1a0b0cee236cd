//! What may be used only where a quota limits it, by the configuration of the server.

use std::collections::BTreeSet;

use super::amounts::Amounts;
use super::evaluator::Evaluator;
use super::limits::Quota;
use super::measure::Measure;
use super::refusal::Refusal;
use super::scopes::Requirement;
use crate::quantity::Quantity;

/// Something that is limited wherever no quota says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitedResource {
    /// The API group; empty for core.
    pub group: String,
    /// The plural name of the resource.
    pub plural: String,
    /// Its objects use something limited if the name under which that counts contains one of these.
    pub match_contains: Vec<String>,
    /// Whatever its resource, an object is limited that is in one of these scopes.
    pub match_scopes: Vec<Requirement>,
}

/// What is limited for the objects of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limited {
    contains: Vec<String>,
    scopes: Vec<Requirement>,
}

impl Limited {
    /// What is limited for the objects of a resource.
    pub fn of(all: &[LimitedResource], group: &str, plural: &str) -> Self {
        let own = all.iter().filter(|it| it.group == group && it.plural == plural);
        Self {
            contains: own.flat_map(|it| &it.match_contains).cloned().collect(),
            scopes: all.iter().flat_map(|it| &it.match_scopes).cloned().collect(),
        }
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.contains.is_empty() && self.scopes.is_empty()
    }
}

/// An object that uses more than it did, and who counts it.
pub(super) struct Used<'a> {
    pub(super) evaluator: &'a Evaluator,
    pub(super) measure: &'a Measure,
    pub(super) usage: &'a Amounts,
    pub(super) quotas: &'a [Quota],
    /// Which of them concern the object.
    pub(super) concerned: &'a [bool],
}

impl Limited {
    /// Refuses what is limited and covered by no quota.
    pub(super) fn cover(&self, used: &Used<'_>) -> Result<(), Refusal> {
        let names = self.uncovered_names(used);
        if !names.is_empty() {
            let names = names.join(",");
            return Err(Refusal::Forbidden(format!("insufficient quota to consume: {names}")));
        }
        let scopes = self.uncovered_scopes(used);
        if !scopes.is_empty() {
            let scopes = scopes.join(" ");
            let text = format!("insufficient quota to match these scopes: [{scopes}]");
            return Err(Refusal::Uncovered(text));
        }
        Ok(())
    }

    fn uncovered_names<'a>(&self, used: &'a Used<'_>) -> Vec<&'a str> {
        let concerned = used.quotas.iter().zip(used.concerned).filter(|(_, concerned)| **concerned);
        let covered: BTreeSet<&str> =
            concerned.flat_map(|(quota, _)| quota.counted(used.evaluator)).collect();
        let is_limited = |name: &str| self.contains.iter().any(|part| name.contains(part.as_str()));
        let limited = used.usage.iter().filter(|(_, amount)| Quantity::is_positive(*amount));
        let limited = limited.map(|(name, _)| name).filter(|name| is_limited(name));
        limited.filter(|name| !covered.contains(name)).collect()
    }

    /// A scope is covered by any quota that names it and has the object in it.
    fn uncovered_scopes(&self, used: &Used<'_>) -> Vec<String> {
        let covers = |scope: &Requirement| {
            used.quotas.iter().flat_map(Quota::requirements).any(|requirement| {
                requirement.is_about(scope) && used.measure.traits.meet(requirement)
            })
        };
        let limited = self.scopes.iter().filter(|scope| used.measure.traits.meet(scope));
        limited.filter(|scope| !covers(scope)).map(ToString::to_string).collect()
    }
}

//! A quota, as far as it decides about objects.

use serde_json::Value;

use super::amounts::Amounts;
use super::evaluator::Evaluator;
use super::measure::Measure;
use super::scopes::{self, Requirement};
use crate::metadata;

/// A quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Its name.
    pub name: String,
    /// What is limited, by its status: a quota whose use was never counted limits nothing.
    pub hard: Amounts,
    /// How much of that is used.
    pub used: Amounts,
    requirements: Vec<Requirement>,
}

impl Quota {
    /// What a document says.
    pub fn of(document: &Value) -> Self {
        let status = &document["status"];
        Self {
            name: metadata::text(document, "name").to_owned(),
            hard: Amounts::of(&status["hard"]),
            used: Amounts::of(&status["used"]),
            requirements: scopes::requirements(&document["spec"]),
        }
    }

    /// What of that which is limited an evaluator counts.
    pub(super) fn counted(&self, evaluator: &Evaluator) -> Vec<&str> {
        self.hard.names().filter(|name| evaluator.counts(name)).collect()
    }

    /// What it wants of objects.
    pub(super) fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object is in its scopes.
    pub fn has_in_scope(&self, object: &Measure) -> bool {
        self.requirements.iter().all(|requirement| object.traits.meet(requirement))
    }
}

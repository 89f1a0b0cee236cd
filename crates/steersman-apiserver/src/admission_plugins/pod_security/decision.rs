//! What comes of a Pod, or of a template of one, in a namespace.

use std::collections::BTreeMap;

use steersman_rules::field::FieldError;

use super::evaluate::evaluate;
use super::policy::{LevelVersion, Policy};
use super::subject::Pod;

/// The names of what those are told who audit, below a prefix.
pub(super) mod annotation {
    pub(crate) const PREFIX: &str = "pod-security.kubernetes.io/";
    pub(crate) const EXEMPT: &str = "exempt";
    pub(crate) const ENFORCED: &str = "enforce-policy";
    pub(crate) const VIOLATIONS: &str = "audit-violations";
    pub(crate) const ERROR: &str = "error";
}

/// What is done about a Pod.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    /// Why it is refused, if it is.
    pub(super) refusal: Option<String>,
    /// What whoever writes it is told all the same.
    pub(super) warning: Option<String>,
    /// What the audit log is told.
    pub(super) audit: BTreeMap<&'static str, String>,
}

impl Decision {
    /// Lets it pass, and says something about that.
    pub(super) fn pass(annotation: &'static str, value: impl Into<String>) -> Self {
        Self { audit: BTreeMap::from([(annotation, value.into())]), ..Self::default() }
    }

    /// Judges a Pod by what its namespace asks. Nobody is warned of what is refused.
    pub(super) fn on_pod(policy: &Policy, mistakes: &[FieldError], pod: Pod<'_>) -> Self {
        let mut decision = Self::on_template(policy, mistakes, pod);
        decision.audit.insert(annotation::ENFORCED, policy.enforce.to_string());
        decision.refusal = violates("violates", policy.enforce, pod);
        if decision.refusal.is_some() {
            decision.warning = None;
        }
        decision
    }

    /// Judges a template of Pods, which is not refused: perhaps nobody makes a Pod of it.
    pub(super) fn on_template(policy: &Policy, mistakes: &[FieldError], pod: Pod<'_>) -> Self {
        let mut audit = BTreeMap::new();
        if !mistakes.is_empty() {
            let errors = format!("Failed to parse policy: {}", aggregate(mistakes));
            audit.insert(annotation::ERROR, errors);
        }
        if let Some(found) = violates("would violate", policy.audit, pod) {
            audit.insert(annotation::VIOLATIONS, found);
        }
        let warning = violates("would violate", policy.warn, pod);
        Self { refusal: None, warning, audit }
    }
}

/// What is wrong with a Pod at a level: `violates PodSecurity "baseline:latest": …`
fn violates(verb: &str, at: LevelVersion, pod: Pod<'_>) -> Option<String> {
    let found = evaluate(at, pod);
    (!found.is_empty()).then(|| format!("{verb} PodSecurity \"{at}\": {}", found.details()))
}

/// Several mistakes in one line.
fn aggregate(mistakes: &[FieldError]) -> String {
    let texts: Vec<String> = mistakes.iter().map(FieldError::message).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

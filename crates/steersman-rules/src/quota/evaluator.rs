//! How objects of a resource are counted, and under which names.

use serde_json::Value;

use super::amounts::Amounts;
use super::measure::Measure;
use super::{devices, pods, services, volume_claims};
use crate::quantity::Quantity;

/// What never counts: what is not stored, and events.
const IGNORED: &[(&str, &str)] = &[
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];

/// The core kinds that have a name without `count/` as well, because they had it first.
const ALIASES: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// How objects of one resource are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluator {
    /// Pods: what their containers ask for and may use.
    Pods,
    /// Services: with their node ports and load balancers.
    Services,
    /// Claims of storage: its size, by class.
    VolumeClaims,
    /// Claims of devices: their number, by class.
    ResourceClaims,
    /// Anything else, by number.
    Objects {
        /// Such as `count/deployments.apps`.
        name: String,
        /// The name without `count/`, of those few that have one.
        alias: Option<&'static str>,
    },
}

/// Which way an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// The API group; empty for core.
    pub group: &'a str,
    /// The plural name of the resource.
    pub plural: &'a str,
    /// The subresource that is written through; empty for the resource itself.
    pub subresource: &'a str,
    /// Whether the object is new.
    pub is_new: bool,
}

/// Whether such a write can use more of anything that a quota limits. Costs nearly nothing, for
/// every write asks.
pub fn is_counted(path: Path<'_>) -> bool {
    let Path { group, plural, subresource, is_new } = path;
    match (group, plural, subresource) {
        ("", "pods", "resize") | ("", "persistentvolumeclaims", "status") => !is_new,
        ("", "pods" | "services" | "persistentvolumeclaims", "")
        | ("resource.k8s.io", "resourceclaims", "") => true,
        (_, _, "") => is_new && !IGNORED.contains(&(group, plural)),
        _ => false,
    }
}

/// The resources, by group and plural, whose objects count under a name.
pub fn counted_by(name: &str) -> Vec<(&str, &str)> {
    let evaluators = [
        (Evaluator::Pods, ("", "pods")),
        (Evaluator::Services, ("", "services")),
        (Evaluator::VolumeClaims, ("", "persistentvolumeclaims")),
        (Evaluator::ResourceClaims, ("resource.k8s.io", "resourceclaims")),
    ];
    let mut resources: Vec<_> = evaluators
        .iter()
        .filter(|(it, _)| it.counts(name))
        .map(|(_, resource)| *resource)
        .collect();
    if let Some(alias) = ALIASES.iter().find(|alias| **alias == name) {
        resources.push(("", alias));
    }
    if let Some(counted) = name.strip_prefix("count/").filter(|_| resources.is_empty()) {
        let (plural, group) = counted.split_once('.').unwrap_or((counted, ""));
        resources.push((group, plural));
    }
    resources.retain(|resource| !IGNORED.contains(resource));
    resources
}

impl Evaluator {
    /// How objects of a resource are counted; `None` if they are not.
    pub fn of(group: &str, plural: &str) -> Option<Self> {
        if IGNORED.contains(&(group, plural)) {
            return None;
        }
        Some(match (group, plural) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::VolumeClaims,
            ("resource.k8s.io", "resourceclaims") => Self::ResourceClaims,
            _ => {
                let known = ALIASES.iter().find(|alias| group.is_empty() && **alias == plural);
                let dot = if group.is_empty() { "" } else { "." };
                let name = format!("count/{plural}{dot}{group}");
                Self::Objects { name, alias: known.copied() }
            }
        })
    }

    /// Whether the documents of objects matter, beyond that they are there.
    pub fn reads_objects(&self) -> bool {
        !matches!(self, Self::Objects { .. })
    }

    /// Whether objects count under this name.
    pub fn counts(&self, name: &str) -> bool {
        match self {
            Self::Pods => pods::counts(name),
            Self::Services => services::NAMES.contains(&name),
            Self::VolumeClaims => volume_claims::counts(name),
            Self::ResourceClaims => devices::counts(name),
            Self::Objects { name: own, alias } => name == own || *alias == Some(name),
        }
    }

    /// What an object uses.
    pub fn measure(&self, object: &Value) -> Measure {
        match self {
            Self::Pods => pods::measure(object),
            Self::Services => services::measure(object),
            Self::VolumeClaims => volume_claims::measure(object),
            Self::ResourceClaims => devices::measure(object),
            Self::Objects { .. } => self.one(),
        }
    }

    /// What one object uses of which nothing but its being there matters.
    fn one(&self) -> Measure {
        let Self::Objects { name, alias } = self else { return Measure::default() };
        let mut one = Amounts::default();
        one.set(name.as_str(), Quantity::ONE);
        if let Some(alias) = alias {
            one.set(*alias, Quantity::ONE);
        }
        Measure::stored(one)
    }

    /// What an object does not say though a quota that counts these names wants it said.
    pub(super) fn missing(&self, names: &[&str], object: &Value) -> Option<String> {
        match self {
            Self::Pods => pods::missing(names, object),
            _ => None,
        }
    }

    /// Whether a change of an object could be one that counts.
    pub fn is_concerned(&self, subresource: &str, new: &Value, old: Option<&Value>) -> bool {
        match (self, old) {
            (Self::Pods, Some(old)) if subresource.is_empty() => {
                pods::is_terminating(new) != pods::is_terminating(old)
            }
            _ => true,
        }
    }
}

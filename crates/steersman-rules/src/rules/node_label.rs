//! Labels of nodes that others have replaced, wherever a selector of nodes may name them.

use super::at::At;

const DEPRECATED: &[(&str, &str)] = &[
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];

/// What is said of a label that should not be used any more.
pub(crate) fn deprecation(key: &str) -> Option<&'static str> {
    DEPRECATED.iter().find(|(old, _)| *old == key).map(|(_, why)| *why)
}

/// The warning about a field that names such a label.
pub(crate) fn warn_of_key(key: &At<'_, '_>, warnings: &mut Vec<String>) {
    if let Some(why) = deprecation(key.text()) {
        warnings.push(format!("{}: {} is {why}", key.path(), key.text()));
    }
}

/// The warnings about the expressions of a selector, or of a term of one.
pub(crate) fn warn_of_term(term: &At<'_, '_>, warnings: &mut Vec<String>) {
    for expression in term.each("matchExpressions") {
        warn_of_key(&expression.at("key"), warnings);
    }
}

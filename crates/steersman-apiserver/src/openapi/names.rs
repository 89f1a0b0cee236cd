//! What definitions and operations are called; clients know these names from Kubernetes.

use super::Dialect;

/// `core.v1.Pod` of the table of built-in types is `io.k8s.api.core.v1.Pod` here.
pub(super) fn builtin(type_name: &str) -> String {
    let prefix = match type_name.split('.').next() {
        Some("meta") => "io.k8s.apimachinery.pkg.apis",
        Some("apiextensions") => "io.k8s.apiextensions-apiserver.pkg.apis",
        Some("apiregistration") => "io.k8s.kube-aggregator.pkg.apis",
        _ => "io.k8s.api",
    };
    format!("{prefix}.{type_name}")
}

/// A type of the metadata that all kinds share.
pub(super) fn meta(name: &str) -> String {
    format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}")
}

/// A custom kind: the group reversed, as in Java.
pub(super) fn custom(group: &str, version: &str, kind: &str) -> String {
    let reversed: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", reversed.join("."))
}

/// Where a definition stands in a document.
pub(super) fn reference(dialect: Dialect, name: &str) -> String {
    match dialect {
        Dialect::V2 => format!("#/definitions/{name}"),
        Dialect::V3 => format!("#/components/schemas/{name}"),
    }
}

/// The name at the end of a reference.
pub(super) fn referred(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

/// `rbac.authorization.k8s.io` is `rbacAuthorization` in operations, and core has a name.
pub(super) fn group(group: &str) -> String {
    let group = if group.is_empty() { "core" } else { group };
    let mut words = group.trim_end_matches(".k8s.io").split(|c: char| !c.is_ascii_alphanumeric());
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &capitalised(word))
}

/// `status` is `Status`.
pub(super) fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

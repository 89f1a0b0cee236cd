//! Fields of a Pod as text.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ObjectFieldSelector, Pod};
use steersman_values::{names, quoted};

/// Why a field cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldError {
    #[error("unsupported pod version: {0}")]
    Version(String),
    #[error("field label does not support subscript: {0}")]
    Subscript(String),
    #[error("field label not supported: {0}")]
    Label(String),
    #[error("invalid key subscript in {path}: {problems}")]
    Key { path: String, problems: String },
    #[error("unsupported fieldPath: {0}")]
    Unsupported(String),
}

/// Where a Pod and its node can be reached. The first of each is the one that counts, so they come
/// in the order in which the node prefers families of addresses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Addresses<'a> {
    pub(crate) pod: &'a [String],
    pub(crate) host: &'a [String],
}

/// A field as an environment variable has it.
pub(crate) fn field(
    selector: &ObjectFieldSelector,
    pod: &Pod,
    addresses: Addresses<'_>,
) -> Result<String, FieldError> {
    let version = selector.api_version.as_deref().unwrap_or("v1");
    if version != "v1" {
        return Err(FieldError::Version(version.to_owned()));
    }
    let path = selector.field_path.as_str();
    if let Some((base, _)) = subscripted(path) {
        if !matches!(base, "metadata.annotations" | "metadata.labels") {
            return Err(FieldError::Subscript(path.to_owned()));
        }
        return metadata_field(path, pod);
    }
    let spec = pod.spec.as_ref();
    let first = |all: &[String]| all.first().cloned().unwrap_or_default();
    Ok(match path {
        "spec.nodeName" | "spec.host" => {
            spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default()
        }
        "spec.serviceAccountName" => {
            spec.and_then(|spec| spec.service_account_name.clone()).unwrap_or_default()
        }
        "status.hostIP" => first(addresses.host),
        "status.hostIPs" => addresses.host.join(","),
        "status.podIP" => first(addresses.pod),
        "status.podIPs" => addresses.pod.join(","),
        // Labels of fields that nobody can ask for: validation of Pods refuses them before.
        "spec.restartPolicy" | "spec.schedulerName" | "status.phase" => {
            return Err(FieldError::Unsupported(path.to_owned()));
        }
        _ if path.starts_with("metadata.") => {
            let unknown = |_| FieldError::Label(path.to_owned());
            return metadata_field(path, pod).map_err(unknown);
        }
        _ => return Err(FieldError::Label(path.to_owned())),
    })
}

/// A field of the metadata, which is all that a volume can have.
pub(crate) fn metadata_field(path: &str, pod: &Pod) -> Result<String, FieldError> {
    let meta = &pod.metadata;
    if let Some((base, key)) = subscripted(path) {
        // Keys of annotations may have capital letters in their prefix.
        let (map, problems) = match base {
            "metadata.annotations" => {
                (&meta.annotations, names::qualified_name(&key.to_lowercase()))
            }
            "metadata.labels" => (&meta.labels, names::qualified_name(key)),
            _ => return Err(FieldError::Subscript(path.to_owned())),
        };
        if !problems.is_empty() {
            return Err(FieldError::Key { path: path.to_owned(), problems: problems.join(";") });
        }
        let value = map.as_ref().and_then(|map| map.get(key));
        return Ok(value.cloned().unwrap_or_default());
    }
    match path {
        "metadata.annotations" => Ok(listed(meta.annotations.as_ref())),
        "metadata.labels" => Ok(listed(meta.labels.as_ref())),
        "metadata.name" => Ok(meta.name.clone().unwrap_or_default()),
        "metadata.namespace" => Ok(meta.namespace.clone().unwrap_or_default()),
        "metadata.uid" => Ok(meta.uid.clone().unwrap_or_default()),
        _ => Err(FieldError::Unsupported(path.to_owned())),
    }
}

/// `metadata.labels['a']` taken apart.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(base, _)| !base.is_empty())
}

/// One `key="value"` a line, in the order of keys.
fn listed(map: Option<&BTreeMap<String, String>>) -> String {
    let lines = map.into_iter().flatten().map(|(key, value)| format!("{key}={}", quoted(value)));
    lines.collect::<Vec<_>>().join("\n")
}

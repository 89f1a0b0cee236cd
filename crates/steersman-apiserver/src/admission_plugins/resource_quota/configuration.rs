//! What the plug-in can be told: what may be used only where a quota limits it.

use serde::Deserialize;
use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::quota::LimitedResource;
use steersman_rules::quota::scopes::Requirement;

use crate::admission_plugins::configuration;

const KINDS: &[(&str, &str)] = &[
    ("apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"),
    ("resourcequota.admission.k8s.io/v1beta1", "Configuration"),
    ("resourcequota.admission.k8s.io/v1alpha1", "Configuration"),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct Document {
    limited_resources: Vec<Limited>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Limited {
    api_group: String,
    resource: String,
    match_contains: Vec<String>,
    match_scopes: Vec<Value>,
}

/// What is limited.
pub(super) fn limited(document: &Value) -> Result<Vec<LimitedResource>, String> {
    let Document { limited_resources } = configuration::read(document, KINDS)?;
    let unnamed = limited_resources.iter().enumerate().filter(|(_, it)| it.resource.is_empty());
    let mistakes: Vec<FieldError> = unnamed
        .map(|(n, _)| FieldError::required(format!("limitedResources[{n}].resource"), ""))
        .collect();
    configuration::sound(&mistakes)?;
    let read = limited_resources.into_iter().map(|limited| LimitedResource {
        group: limited.api_group,
        plural: limited.resource,
        match_contains: limited.match_contains,
        match_scopes: limited.match_scopes.iter().map(Requirement::of).collect(),
    });
    Ok(read.collect())
}

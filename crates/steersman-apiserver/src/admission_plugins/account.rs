//! A service account, as far as the pods that run as it are concerned.

use serde::Deserialize;
use serde_json::Value;

use super::stored;

/// What an account lends its pods, and how far it lets them go.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Account {
    pub(super) metadata: Metadata,
    #[serde(default, deserialize_with = "stored::absent")]
    pub(super) secrets: Vec<Reference>,
    #[serde(default, deserialize_with = "stored::absent")]
    pub(super) image_pull_secrets: Vec<Reference>,
    #[serde(default)]
    automount_service_account_token: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Metadata {
    pub(super) name: String,
    #[serde(default, deserialize_with = "stored::absent")]
    annotations: Annotations,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(default, rename = "kubernetes.io/enforce-mountable-secrets")]
    enforce_mountable_secrets: Option<String>,
}

/// A secret that an account names.
#[derive(Deserialize)]
pub(super) struct Reference {
    #[serde(default, deserialize_with = "stored::absent")]
    pub(super) name: String,
}

impl Account {
    /// Whether its pods may use only the secrets that it names.
    pub(super) fn limits_secrets(&self) -> bool {
        let annotation = self.metadata.annotations.enforce_mountable_secrets.as_deref();
        annotation.is_some_and(|text| ["1", "t", "T", "TRUE", "true", "True"].contains(&text))
    }

    /// Whether its token is mounted into a pod.
    pub(super) fn is_mounted_into(&self, spec: &Value) -> bool {
        let wanted = spec["automountServiceAccountToken"].as_bool();
        wanted.or(self.automount_service_account_token).unwrap_or(true)
    }
}

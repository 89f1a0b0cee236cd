//! The kind: what the author of a Backup asks for, and what was observed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the author of a Backup asks for.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
#[kube(group = "backup.example.com", version = "v1", kind = "Backup", namespaced)]
#[kube(status = "BackupStatus")]
#[kube(printcolumn = r#"{"name": "Every", "type": "string", "jsonPath": ".spec.every"}"#)]
#[kube(printcolumn = r#"{"name": "Last", "type": "date", "jsonPath": ".status.lastScheduleTime"}"#)]
#[serde(rename_all = "camelCase")]
pub struct BackupSpec {
    /// The image of the program that makes a backup.
    pub image: String,
    /// How often it runs, in hours and minutes: `1h30m`.
    #[serde(default = "daily")]
    pub every: String,
    /// How many finished runs are kept.
    #[serde(default = "three")]
    #[schemars(range(min = 1))]
    pub keep: u32,
    /// The Secret with which the program writes into the bucket: `NAME-credentials` unless said
    /// otherwise.
    pub secret: Option<String>,
}

/// What was observed.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupStatus {
    /// For which due time a run was last started.
    pub last_schedule_time: Option<Time>,
    /// `Ready`, and why.
    pub conditions: Vec<Condition>,
}

fn daily() -> String {
    "24h".to_owned()
}

fn three() -> u32 {
    3
}

impl Backup {
    /// The name of the Secret that the runs need.
    pub fn secret(&self) -> String {
        let default = || format!("{}-credentials", self.name_any());
        self.spec.secret.clone().unwrap_or_else(default)
    }

    /// The name of the bucket that the runs write into. No other Backup has it, neither now nor
    /// after this one is gone.
    pub fn bucket(&self) -> String {
        format!("backup-{}", self.metadata.uid.as_deref().unwrap_or_default())
    }
}

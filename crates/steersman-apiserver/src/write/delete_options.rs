//! How an object is to be deleted: `DeleteOptions`.

use serde_json::{Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::resource::Named;

use crate::status::{Result, Status};

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    /// How long it may take to end.
    pub(crate) grace: Option<i64>,
    /// What happens to the objects it owns.
    pub(crate) propagation: Option<Propagation>,
    /// The uid it must have.
    pub(crate) uid: Option<String>,
    /// The resourceVersion it must have.
    pub(crate) resource_version: Option<String>,
    /// Whether to do everything but the deletion.
    pub(crate) dry_run: bool,
    /// Whether the old option says that dependents go, which some clients want acknowledged with 202.
    pub(crate) spares_none: bool,
    /// Whether an object that cannot be read is to be deleted nevertheless. This server does not:
    /// as in Kubernetes without its feature gate, a DELETE passes over it, whatever comes with it.
    pub(crate) ignore_read_error: bool,
}

/// What happens to the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They lose their owner.
    Orphan,
    /// They are deleted some time later.
    Background,
    /// They are deleted first.
    Foreground,
}

impl Propagation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

pub(crate) const IGNORE_READ_ERROR: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

impl DeleteOptions {
    /// Reads a `DeleteOptions` document.
    pub(crate) fn of_document(document: &Value) -> Result<Self> {
        let errors = mistakes(document);
        if !errors.is_empty() {
            return Err(invalid(&errors));
        }
        let orphan = document["orphanDependents"].as_bool();
        let propagation = match (document["propagationPolicy"].as_str(), orphan) {
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some(_), _) | (None, Some(false)) => Some(Propagation::Background),
            (None, None) => None,
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Ok(Self {
            grace: document["gracePeriodSeconds"].as_i64(),
            propagation,
            uid: text(&document["preconditions"]["uid"]),
            resource_version: text(&document["preconditions"]["resourceVersion"]),
            dry_run: document["dryRun"].as_array().is_some_and(|list| !list.is_empty()),
            spares_none: orphan == Some(false),
            ignore_read_error: document[IGNORE_READ_ERROR] == true,
        })
    }

    /// The options as webhooks see them.
    pub(crate) fn to_document(&self) -> Value {
        let mut document = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        if let Some(grace) = self.grace {
            document["gracePeriodSeconds"] = grace.into();
        }
        if let Some(propagation) = self.propagation {
            document["propagationPolicy"] = propagation.as_str().into();
        }
        for (field, wanted) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
            if let Some(wanted) = wanted {
                document["preconditions"][field] = wanted.as_str().into();
            }
        }
        if self.dry_run {
            document["dryRun"] = json!(["All"]);
        }
        document
    }
}

fn invalid(errors: &[FieldError]) -> Status {
    let what = Named { group: "meta.k8s.io", resource: "DeleteOptions", name: "" };
    Status::invalid(what, errors)
}

fn mistakes(options: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policy = &options["propagationPolicy"];
    if !options["orphanDependents"].is_null() && !policy.is_null() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", policy, why));
    }
    if !matches!(policy.as_str(), None | Some("Background" | "Foreground" | "Orphan")) {
        let known = ["Foreground", "Background", "Orphan", "nil"];
        errors.push(FieldError::not_supported("propagationPolicy", policy, &known));
    }
    let dry_run = options["dryRun"].as_array().map_or(&[][..], Vec::as_slice);
    if dry_run.iter().any(|value| value != "All") {
        errors.push(FieldError::not_supported("dryRun", &options["dryRun"], &["All"]));
    }
    errors
}

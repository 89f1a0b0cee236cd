//! What an admission webhook answers.

use std::collections::{BTreeMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use kube::core::Status;
use serde::Serialize;
use serde_json::Value;

use super::denied::Denied;
use super::request::AdmissionRequest;

/// Warnings for the user, who sees them but gets what was asked for.
pub type Warnings = Vec<String>;

/// What the API server passes on of all warnings of one request, in characters.
const WARNINGS_MAX: usize = 4 * 1024;
/// What is left of one warning where all together are too long.
const WARNING_MAX: usize = 256;

/// Whether an operation is admitted, and how the object is to be changed before.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdmissionResponse {
    /// Whether the operation may go on.
    pub allowed: bool,
    /// Why not; not looked at if it may.
    pub status: Option<Status>,
    /// Changes to the object, by a mutating webhook.
    pub patch: Patch,
    /// What to warn the user of.
    pub warnings: Warnings,
    /// Facts for the audit log; the server prefixes the keys with the webhook's name.
    pub audit_annotations: BTreeMap<String, String>,
}

impl AdmissionResponse {
    /// Admits the operation.
    pub fn allowed() -> Self {
        Self {
            allowed: true,
            status: None,
            patch: Patch::default(),
            warnings: Warnings::new(),
            audit_annotations: BTreeMap::new(),
        }
    }

    /// Admits the operation and changes the object that was sent into `changed`.
    pub fn patched(request: &AdmissionRequest, changed: &Value) -> Self {
        let original = request.object.as_ref().unwrap_or(&Value::Null);
        Self::allowed().with_patch(json_patch::diff(original, changed))
    }

    /// Refuses the operation.
    pub fn denied(request: &AdmissionRequest, denied: impl Into<Denied>) -> Self {
        let mut denied = denied.into();
        let warnings = std::mem::take(&mut denied.warnings);
        let status = Some(denied.into_status(&request.kind, &request.name));
        Self { allowed: false, status, warnings, ..Self::allowed() }
    }

    /// Changes the object before the operation goes on.
    #[must_use]
    pub fn with_patch(mut self, patch: Patch) -> Self {
        self.patch = patch;
        self
    }

    /// Warns the user.
    #[must_use]
    pub fn with_warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Leaves a fact in the audit log.
    #[must_use]
    pub fn with_audit_annotation(
        mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        self.audit_annotations.insert(key.into(), value.into());
        self
    }

    /// This answer to the question of that uid, as it is sent.
    pub(super) fn into_review(self, uid: &str) -> Review<'_> {
        let patch = (self.allowed && !self.patch.0.is_empty()).then_some(self.patch);
        let status = if self.allowed { ok() } else { self.status.unwrap_or_else(refused) };
        Review {
            api_version: API_VERSION,
            kind: KIND,
            response: WireResponse {
                uid,
                allowed: self.allowed,
                status,
                patch_type: patch.is_some().then_some("JSONPatch"),
                patch: patch
                    .and_then(|patch| Some(STANDARD.encode(serde_json::to_vec(&patch).ok()?))),
                audit_annotations: self.audit_annotations,
                warnings: limited(self.warnings),
            },
        }
    }
}

fn ok() -> Status {
    Status { code: 200, ..Status::default() }
}

fn refused() -> Status {
    Status::failure("the webhook gave no reason", "Forbidden").with_code(403)
}

/// The only version of reviews that is served; v1beta1 is gone since Kubernetes 1.22.
pub(super) const API_VERSION: &str = kube::core::admission::META_API_VERSION_V1;
pub(super) const KIND: &str = kube::core::admission::META_KIND;

/// An AdmissionReview with an answer. kube's own type would write the patch as numbers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: WireResponse<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireResponse<'a> {
    uid: &'a str,
    allowed: bool,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Warnings,
}

/// Warnings as the API server would pass them on: no empty ones, none twice, no characters that
/// a header cannot hold, and if they are long altogether, each cut, until nothing more fits.
fn limited(warnings: Warnings) -> Warnings {
    let mut seen = HashSet::new();
    let mut kept: Warnings = warnings.into_iter().map(|warning| printable(&warning)).collect();
    kept.retain(|warning| !warning.is_empty() && seen.insert(warning.clone()));
    let length = |warning: &String| warning.chars().count();
    if kept.iter().map(length).sum::<usize>() <= WARNINGS_MAX {
        return kept;
    }
    let mut left = WARNINGS_MAX;
    let cut = kept.into_iter().map(|warning| warning.chars().take(WARNING_MAX).collect::<String>());
    cut.take_while(|warning| {
        let fits = length(warning) <= left;
        left = left.saturating_sub(length(warning));
        fits
    })
    .collect()
}

fn printable(warning: &str) -> String {
    let spaced: String = warning.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_warnings_pass_as_they_are_and_long_ones_are_cut() {
        let short = vec!["a".to_owned(), String::new(), "a".to_owned(), "two\nlines".to_owned()];
        assert_eq!(limited(short), ["a", "two lines"]);
        assert_eq!(limited(vec!["ä".repeat(4096)])[0].chars().count(), 4096);
        let long: Warnings = (0..40).map(|i| format!("{i} {}", "ä".repeat(300))).collect();
        let cut = limited(long);
        assert_eq!(cut.len(), 16);
        assert!(cut.iter().all(|warning| warning.chars().count() == 256));
    }
}

//! Conflicts between field managers, and how they read on the wire.

use super::fieldset::FieldSet;
use super::managed_fields::{Managers, Operation};
use super::versions::Changes;

/// One field that another manager owns with a different value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// Who owns it.
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// The version in which they wrote it.
    pub api_version: String,
    /// Through which subresource they wrote it; empty for the main resource.
    pub subresource: String,
    /// The field, such as `.spec.replicas`.
    pub path: String,
}

/// What a conflict says on the wire; the cause's reason is `FieldManagerConflict`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictCause {
    /// `conflict with "kubectl-client-side-apply" using apps/v1`
    pub message: String,
    /// `.spec.replicas`
    pub field: String,
}

/// The message of a 409 and its causes. Conflicts with one manager stand together.
///
/// `Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1:
/// .spec.replicas`
pub fn conflict_message(conflicts: &[FieldConflict]) -> (String, Vec<ConflictCause>) {
    let causes = conflicts.iter().map(|conflict| ConflictCause {
        message: format!("conflict with {}", conflict.owner()),
        field: conflict.path.clone(),
    });
    let message = match conflicts {
        [one] => {
            format!("Apply failed with 1 conflict: conflict with {}: {}", one.owner(), one.path)
        }
        _ => {
            let owners = conflicts.chunk_by(|a, b| a.owner() == b.owner()).map(|of_one| {
                let paths = of_one.iter().map(|conflict| format!("\n- {}", conflict.path));
                format!("conflicts with {}:{}", of_one[0].owner(), paths.collect::<String>())
            });
            let owners = owners.collect::<Vec<_>>().join("\n");
            format!("Apply failed with {} conflicts: {owners}", conflicts.len())
        }
    };
    (message, causes.collect())
}

impl FieldConflict {
    fn owner(&self) -> String {
        let mut owner = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            owner.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update.as_str() {
            owner.push_str(&format!(" using {}", self.api_version));
        }
        owner
    }
}

/// What others own and this write changes, each with its path as a set.
pub(super) fn find(managers: &Managers, changes: &Changes<'_>) -> Vec<(FieldConflict, FieldSet)> {
    let mut found = Vec::new();
    for (id, owned) in managers {
        let Some(written) = changes.in_version(&owned.api_version).map(|c| &c.written) else {
            continue;
        };
        if !owned.fields.overlaps(written) {
            continue;
        }
        for path in owned.fields.to_set().intersection(written).paths() {
            let mut set = FieldSet::default();
            set.insert(&path);
            let conflict = FieldConflict {
                manager: id.manager.clone(),
                operation: id.operation.as_str().to_owned(),
                api_version: owned.api_version.clone(),
                subresource: id.subresource.clone(),
                path: path.iter().map(ToString::to_string).collect(),
            };
            found.push((conflict, set));
        }
    }
    found
}

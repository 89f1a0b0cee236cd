//! The four languages that a patch can be in.

use serde_json::Value;
use steersman_rules::patch::{self, PatchError};

use crate::call::{APPLY, Call};
use crate::negotiate;
use crate::status::{Result, Status};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The language of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Language {
    /// Reads the content type.
    pub(super) fn of(call: &Call) -> Result<Self> {
        let custom = call.resource.is_custom();
        match negotiate::media_type(call.content_type()) {
            JSON => Ok(Self::Json),
            MERGE => Ok(Self::Merge),
            STRATEGIC if !custom => Ok(Self::Strategic),
            APPLY => Ok(Self::Apply),
            _ if custom => Err(Status::unsupported_media_type(&[JSON, MERGE, APPLY])),
            _ => Err(Status::no_route_reads()),
        }
    }

    /// The document after the patch.
    pub(super) fn run(self, call: &Call, old: &Value) -> Result<Value> {
        let body = &call.body;
        // Nothing changes nothing; only a merge patch would be of another type.
        if self != Self::Merge && body.trim_ascii() == b"null" {
            return Ok(old.clone());
        }
        let patched = match self {
            Self::Json => patch::json_patch(old, body),
            Self::Strategic => patch::strategic_merge_patch(&call.resource.schema, old, body),
            Self::Merge | Self::Apply => patch::merge_patch(old, body),
        };
        patched.map_err(Status::from)
    }

    /// What a patch is called by whose result cannot be read.
    pub(super) fn shown(self, call: &Call, old: &Value) -> String {
        match self {
            Self::Strategic => {
                patch::printed(&serde_json::from_slice(&call.body).unwrap_or_default())
            }
            _ => self.run(call, old).unwrap_or_default().to_string(),
        }
    }
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(why) => Self::bad_request(why),
            // Kubernetes does not tell why; the log does.
            PatchError::Unprocessable(why) => {
                tracing::debug!(why, "JSON patch cannot be applied");
                Self::rejected()
            }
            PatchError::Failed(why) => Self::failure(why),
            PatchError::TooLarge(why) => {
                let mut status = Self::too_large();
                status.message = why;
                status
            }
        }
    }
}

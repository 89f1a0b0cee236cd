//! PATCH: a change of the object, in one of four languages.

use http::StatusCode;
use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::patch::{self, PatchError};

use super::{decode, options, update};
use crate::call::{APPLY, Call};
use crate::negotiate;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::write::{OTHER_NAMESPACE, Tracking, change, prepare};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Patches the object of the path.
pub(crate) async fn patch(call: &Call) -> Result<Reply> {
    let language = Language::of(call)?;
    update::names_one(call)?;
    options::check(call)?;
    if language == Language::Apply {
        return super::apply::apply(call).await;
    }
    let writer = call.writer()?;
    let (merge, found) = decode::patch_findings(call, language);
    let object = change::write(&writer, call.place(), |old| {
        let patched = match &merge {
            Some(merge) => patch::merged(old, merge),
            None => language.run(call, old)?,
        };
        let shown = || language.shown(call, old);
        let mut patched = decode::patched(call, old, patched, language, found.clone(), shown)?;
        same_identity(call, &mut patched)?;
        prepare::prepare(&writer, old, patched, Tracking::Record)
    })
    .await?;
    Ok(Reply::Object { code: StatusCode::OK, object })
}

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

/// A patch may not make another object of it. What it does not say about its place, the path says.
pub(super) fn same_identity(call: &Call, new: &mut Value) -> Result<()> {
    let place = call.place();
    let namespace = metadata::text(new, "namespace");
    if call.resource.namespaced && !namespace.is_empty() && namespace != place.namespace {
        return Err(Status::bad_request(OTHER_NAMESPACE));
    }
    let namespace = call.resource.namespaced.then(|| place.namespace.into());
    metadata::set(new, "namespace", namespace);
    update::has_name(call, new)
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

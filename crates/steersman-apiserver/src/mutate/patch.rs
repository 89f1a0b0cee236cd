//! PATCH: a change of the object, in one of four languages.

use http::StatusCode;
use serde_json::Value;

use super::{Tracking, change, decode};
use crate::call::Call;
use crate::field::FieldError;
use crate::metadata;
use crate::negotiate;
use crate::patch::{self, PatchError};
use crate::reply::Reply;
use crate::status::{Named, Result, Status};

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// Patches the object of the path.
pub(crate) async fn patch(call: &Call) -> Result<Reply> {
    let language = Language::of(call)?;
    if language == Language::Apply {
        return super::apply::apply(call).await;
    }
    refuse_force(call)?;
    let writer = call.writer()?;
    let found = decode::patch_findings(call, language == Language::Json);
    let object = change::change(&writer, call.place(), |old| {
        let patched = language.run(call, old, &call.body)?;
        let patched = decode::patched(call, patched, found.clone())?;
        same_identity(call, old, &patched)?;
        change::prepare(&writer, old, patched, Tracking::Record)
    })
    .await?;
    Ok(Reply::Object { code: StatusCode::OK, object })
}

/// Only an apply can meet other managers, and so only it can be forced.
fn refuse_force(call: &Call) -> Result<()> {
    if call.info.query.get("force").is_none() {
        return Ok(());
    }
    let why = "may not be specified for non-apply patch";
    let what = Named { group: "meta.k8s.io", resource: "PatchOptions", name: "" };
    Err(Status::invalid(what, &[FieldError::forbidden("force", why)]))
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
        let custom = call.server.registry.table().is_custom(&call.resource);
        match negotiate::media_type(call.content_type()) {
            JSON => Ok(Self::Json),
            MERGE => Ok(Self::Merge),
            STRATEGIC if !custom => Ok(Self::Strategic),
            APPLY => Ok(Self::Apply),
            _ if custom => Err(Status::unsupported_media_type(&[JSON, MERGE, APPLY])),
            _ => Err(Status::unsupported_media_type(&[JSON, MERGE, STRATEGIC, APPLY])),
        }
    }

    /// The document after the patch.
    pub(super) fn run(self, call: &Call, old: &Value, body: &[u8]) -> Result<Value> {
        let patched = match self {
            Self::Json => patch::json_patch(old, body),
            Self::Strategic => patch::strategic_merge_patch(&call.resource.schema, old, body),
            Self::Merge | Self::Apply => patch::merge_patch(old, body),
        };
        let patched = patched.map_err(Status::from)?;
        if patched.is_object() {
            Ok(patched)
        } else {
            Err(Status::bad_request("the patch does not leave an object"))
        }
    }
}

/// A patch may not make another object of it.
fn same_identity(call: &Call, old: &Value, new: &Value) -> Result<()> {
    let was = metadata::text(old, "name");
    let is = metadata::text(new, "name");
    if is.is_empty() || was == is {
        return Ok(());
    }
    let name = call.place().name;
    Err(Status::bad_request(format!(
        "the name of the object ({is}) does not match the name on the URL ({name})"
    )))
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(why) => Self::bad_request(why),
            PatchError::Unprocessable(why) => Self::unprocessable(why),
            PatchError::TooLarge(why) => {
                let mut status = Self::too_large();
                status.message = why;
                status
            }
        }
    }
}

//! PATCH: a change of the object, in one of four languages.

use http::StatusCode;
use steersman_rules::patch;

use super::language::Language;
use super::{decode, identity, options};
use crate::call::Call;
use crate::reply::Reply;
use crate::status::Result;
use crate::write::{Tracking, change, prepare};

/// Patches the object of the path.
pub(crate) async fn patch(call: &Call) -> Result<Reply> {
    let language = Language::of(call)?;
    identity::names_one(call)?;
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
        identity::follow_path(call, &mut patched)?;
        prepare::prepare(&writer, old, patched, Tracking::Record)
    })
    .await?;
    Ok(Reply::Object { code: StatusCode::OK, object })
}

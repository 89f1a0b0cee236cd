//! Children that are wanted no longer.

use super::form::Form;
use super::seen::{Action, SeenObject, What};
use crate::context::ErasedContext;
use crate::error::Result;
use crate::object::ObjectKey;

/// Deletes the children of a kind that are not among the wanted ones.
pub(super) async fn prune(
    form: &dyn Form,
    ctx: &ErasedContext,
    wanted: &[SeenObject],
) -> Result<Vec<Action>> {
    let (kind, id) = (form.kind(), form.id());
    let is_wanted = |key: &ObjectKey| wanted.iter().any(|it| it.kind == id && it.key == *key);
    let mut unwanted = form.children(ctx)?;
    unwanted.retain(|child| {
        let meta = child.metadata();
        ctx.controls(meta) && !is_wanted(&ObjectKey::of_meta(meta))
    });
    let deleted = unwanted.iter().map(|child| Action {
        kind: kind.names().name.into_owned(),
        key: ObjectKey::of_meta(child.metadata()),
        what: What::Deleted,
    });
    let deleted = deleted.collect();
    ctx.delete_all(kind, unwanted).await?;
    Ok(deleted)
}

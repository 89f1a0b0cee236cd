//! Who has a finalizer, and who should.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// What happens to an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Settled,
    /// It gets its finalizer.
    Add,
    /// It is let go if nobody uses it.
    RemoveIfUnused,
}

/// What happens to an object that this finalizer is to hold.
pub(super) fn step(meta: &ObjectMeta, finalizer: &str) -> Step {
    let is_held = meta.finalizers.iter().flatten().any(|held| held == finalizer);
    match (meta.deletion_timestamp.is_some(), is_held) {
        (false, false) => Step::Add,
        (true, true) => Step::RemoveIfUnused,
        _ => Step::Settled,
    }
}

/// Whether something may have to be done.
pub(super) fn concerns(meta: &ObjectMeta, finalizer: &str) -> bool {
    step(meta, finalizer) != Step::Settled
}

/// With the finalizer.
pub(super) fn with(meta: &ObjectMeta, finalizer: &str) -> ObjectMeta {
    let mut meta = meta.clone();
    meta.finalizers.get_or_insert_default().push(finalizer.to_owned());
    meta
}

/// Without it.
pub(super) fn without(meta: &ObjectMeta, finalizer: &str) -> ObjectMeta {
    let mut meta = meta.clone();
    meta.finalizers.iter_mut().for_each(|all| all.retain(|held| held != finalizer));
    meta
}

//! Moving from client-side to server-side apply.
//!
//! `kubectl apply` leaves its configuration in an annotation. When `kubectl apply --server-side`
//! follows, what that annotation says is not a conflict, and the annotation is kept in step so
//! that one can go back.

use serde_json::Value;
use steersman_values::html_escaped;

use super::fieldset::FieldSet;
use super::typed::{compare, paths_of};
use super::{Apply, FieldConflict, check};
use crate::names;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The only manager that speaks for the annotation.
const KUBECTL: &str = "kubectl";

/// The conflicts that remain when fields last applied by the client are taken over.
pub(super) fn without_own(
    apply: &Apply<'_>,
    live: &Value,
    conflicts: Vec<(FieldConflict, FieldSet)>,
) -> Vec<(FieldConflict, FieldSet)> {
    if apply.manager != KUBECTL || conflicts.is_empty() {
        return conflicts;
    }
    let Some(own) = last_applied(apply, live) else { return conflicts };
    conflicts.into_iter().filter(|(_, path)| !path.difference(&own).is_empty()).collect()
}

/// Writes the new configuration into the annotation, if there is one. Where there is no room for it,
/// the annotation goes.
pub(super) fn refresh(apply: &Apply<'_>, object: &mut Value) {
    if apply.manager != KUBECTL {
        return;
    }
    let Some(annotations) = object.pointer_mut("/metadata/annotations") else { return };
    if annotations.get(ANNOTATION).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    annotations[ANNOTATION] = written(apply.applied).into();
    if names::are_too_large(annotations)
        && let Value::Object(annotations) = annotations
    {
        annotations.remove(ANNOTATION);
    }
}

/// A configuration as Go writes it: a line of JSON that a page may include.
fn written(applied: &Value) -> String {
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    html_escaped(&applied.to_string()) + "\n"
}

/// The fields that the annotation sets and that still have its values.
fn last_applied(apply: &Apply<'_>, live: &Value) -> Option<FieldSet> {
    let text = live.pointer("/metadata/annotations")?.get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    let root = apply.schema.root();
    let node = &*root;
    let is_other = last.get("apiVersion")? != apply.api_version || last["kind"] != live["kind"];
    if is_other || check::check(node, &last).is_err() {
        return None;
    }
    let changes = compare(node, &last, live);
    let fields = paths_of(node, &last);
    Some(
        fields
            .difference(&changes.modified)
            .difference(&changes.added)
            .difference(&changes.removed),
    )
}

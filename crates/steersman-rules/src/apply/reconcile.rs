//! Ownership after a definition has changed its schema.
//!
//! A list or map that became atomic is owned as a whole by whoever owned something in it. The
//! other way nothing is to be done: who owned the whole still does, and new owners own parts.

use super::encoded::{is_atomic, outdates};
use super::fieldset::{FieldSet, at};
use super::managed_fields::{Fields, Managers};
use crate::schema::{Node, Shape};

/// Brings what managers own up to date with the schema. Built-in types do not change.
pub(super) fn reconcile(node: &Node, managers: &mut Managers) {
    if matches!(node.shape, Shape::Named(_)) {
        return;
    }
    for owned in managers.values_mut() {
        let outdated = matches!(&owned.fields, Fields::Encoded(fields) if outdates(node, fields));
        if outdated {
            owned.fields = Fields::Set(reconciled(node, &owned.fields.to_set()));
        }
    }
}

fn reconciled(node: &Node, set: &FieldSet) -> FieldSet {
    let mut current = FieldSet::default();
    for entry in set.entries() {
        let child = at(node, &entry.step);
        if is_atomic(child) {
            current.push(entry.step.clone(), true, FieldSet::default());
        } else {
            current.push(entry.step.clone(), entry.member, reconciled(child, &entry.below));
        }
    }
    current
}

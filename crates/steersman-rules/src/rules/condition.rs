//! Conditions of the general type, `metav1.Condition`, wherever they stand.

use super::at::{At, Errors};
use super::document::text;
use crate::field::FieldError;
use crate::names;

const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// The mistakes in conditions of the general type.
pub(crate) fn conditions(list: &At<'_, '_>, errors: &mut Errors) {
    const REASON_MAX: usize = 1024;
    const MESSAGE_MAX: usize = 32 * 1024;
    let mut seen = Vec::new();
    for condition in list.items() {
        let kind = condition.at("type");
        let reason = condition.at("reason");
        if seen.contains(&kind.text()) {
            errors.push(kind.duplicate());
        }
        seen.push(kind.text());
        kind.follows(names::qualified_name, errors);
        let status = condition.at("status");
        if !STATUSES.contains(&status.text()) {
            let given = status.text().into();
            errors.push(FieldError::not_supported(status.path(), &given, STATUSES));
        }
        let generation = condition.at("observedGeneration");
        if generation.number().is_some_and(|number| number < 0) {
            errors.push(generation.invalid("must be greater than or equal to zero"));
        }
        condition.require_all(&["lastTransitionTime", "reason"], errors);
        if !reason.text().is_empty() && !is_reason(reason.text()) {
            let why = "a condition reason must start with alphabetic character, optionally \
                       followed by a string of alphanumeric characters or '_,:', and must end \
                       with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
                       'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for \
                       validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
            errors.push(reason.invalid(why));
        }
        for (field, max) in [(reason, REASON_MAX), (condition.at("message"), MESSAGE_MAX)] {
            if text(field.value).len() > max {
                errors.push(field.too_long(max));
            }
        }
    }
}

fn is_reason(reason: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || "_,:".contains(c);
    reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && reason.chars().all(inner)
}

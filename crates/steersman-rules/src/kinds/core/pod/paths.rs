//! Where paths in a container or in a volume may lead.

use crate::rules::at::{At, Errors};

/// Complains about a path that climbs up.
pub(super) fn no_backsteps(path: &At<'_, '_>, errors: &mut Errors) {
    if path.text().split('/').any(|part| part == "..") {
        errors.push(path.invalid("must not contain '..'"));
    }
}

/// Complains about a path that does not lead down from where it starts.
pub(super) fn descending(path: &At<'_, '_>, errors: &mut Errors) {
    if path.text().starts_with('/') {
        errors.push(path.invalid("must be a relative path"));
    }
    no_backsteps(path, errors);
}

/// Complains also about a path that begins as the kubelet's own files do.
pub(super) fn descending_unreserved(path: &At<'_, '_>, errors: &mut Errors) {
    descending(path, errors);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        errors.push(path.invalid("must not start with '..'"));
    }
}

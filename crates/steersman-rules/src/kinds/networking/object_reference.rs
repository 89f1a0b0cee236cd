//! References to an object of any kind: the backend of an ingress, the parameters of a class.

use crate::names;
use crate::rules::at::{At, Errors};

/// The mistakes in a reference by group, kind and name.
pub(super) fn object_reference(reference: &At<'_, '_>, errors: &mut Errors) {
    let group = reference.at("apiGroup");
    if group.is_set() {
        group.follows(names::dns1123_subdomain, errors);
    }
    reference.at("kind").requires(names::path_segment, errors);
    reference.at("name").requires(names::path_segment, errors);
}

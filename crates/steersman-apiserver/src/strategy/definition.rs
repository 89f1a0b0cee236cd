//! `CustomResourceDefinitions`: what of them may not change. What they define, and their own
//! names, versions and status, are the business of [`crate::crd`].

use super::document::immutable;
use super::simple::Simple;

/// The strategy of custom resource definitions.
pub(super) fn strategy() -> Simple {
    Simple {
        validate_change: |old, new| {
            let (old, new) = (&old["spec"], &new["spec"]);
            let of_spec = ["group", "scope"].iter().filter_map(|k| immutable(old, new, "spec", k));
            let (old, new) = (&old["names"], &new["names"]);
            let names = ["plural", "kind"];
            let of_names = names.iter().filter_map(|k| immutable(old, new, "spec.names", k));
            of_spec.chain(of_names).collect()
        },
        ..Simple::NOTHING
    }
}

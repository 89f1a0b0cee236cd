//! Service accounts: whom pods act as. They are taken as they are.

use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::document::text;
use crate::table::age;

/// What is said of `ServiceAccount`.
pub(super) const KIND: Kind = Kind {
    plural: "serviceaccounts",
    name: "ServiceAccount",
    short_names: &["sa"],
    traits: &[Trait::Token],
    rules: &RULES,
    columns: || vec![age()],
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    warn: |account, _| {
        let enforced = "kubernetes.io/enforce-mountable-secrets";
        if text(&account["metadata"]["annotations"][enforced]).is_empty() {
            return Vec::new();
        }
        let advice = "prefer separate namespaces to isolate access to mounted secrets";
        vec![format!("metadata.annotations[{enforced}]: deprecated in v1.32+; {advice}")]
    },
    ..Rules::NONE
};

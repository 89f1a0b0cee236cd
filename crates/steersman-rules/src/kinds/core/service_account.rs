//! Service accounts: whom pods act as. They are taken as they are.

use serde_json::Value;

use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
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
    warn: |account, old| {
        let enforced = "kubernetes.io/enforce-mountable-secrets";
        let has = |account: &Value| !account["metadata"]["annotations"][enforced].is_null();
        if !has(account) || old.is_some_and(has) {
            return Vec::new();
        }
        let advice = "prefer separate namespaces to isolate access to mounted secrets";
        vec![format!("metadata.annotations[{enforced}]: deprecated in v1.32+; {advice}")]
    },
    ..Rules::NONE
};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::RULES;

    #[test]
    fn an_annotation_of_old_is_warned_of_when_it_comes() {
        let plain = json!({"metadata": {"name": "a"}});
        let annotations = json!({"kubernetes.io/enforce-mountable-secrets": ""});
        let enforced = json!({"metadata": {"name": "a", "annotations": annotations}});
        let warning = "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated \
                       in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        assert_eq!(RULES.warnings(&enforced, None), [warning]);
        assert_eq!(RULES.warnings(&enforced, Some(&plain)), [warning]);
        assert_eq!(RULES.warnings(&enforced, Some(&enforced)), [""; 0]);
    }
}

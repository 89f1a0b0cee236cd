//! Service accounts: whom pods act as. Of the secrets of one only the names count.

use serde_json::Value;

use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::document::each;
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
    create: name_secrets,
    keep: |_, account| name_secrets(account),
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

/// Secrets are of the account's own namespace and of one kind, so nothing else is told of them.
fn name_secrets(account: &mut Value) {
    each(account, "secrets", |secret| {
        if let Some(fields) = secret.as_object_mut() {
            fields.retain(|field, _| field == "name");
        }
    });
}

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

    #[test]
    fn of_secrets_only_the_names_stay() {
        let wanted = json!({"secrets": [
            {"kind": "Secret", "name": "a", "namespace": "n", "uid": "u"},
            {"fieldPath": "x"},
        ]});
        let kept = json!({"secrets": [{"name": "a"}, {}]});
        let mut created = wanted.clone();
        RULES.prepare_create(&mut created);
        assert_eq!(created, kept);
        let mut updated = wanted;
        RULES.prepare_update(&json!({}), &mut updated);
        assert_eq!(updated, kept);
    }
}

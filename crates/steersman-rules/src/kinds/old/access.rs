//! Service accounts.

use crate::rules::Rules;
use crate::rules::document::text;

/// The strategy of service accounts.
pub(in crate::kinds) const SERVICE_ACCOUNT: Rules = Rules {
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

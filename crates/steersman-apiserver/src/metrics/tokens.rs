//! Which tokens of service accounts are used.

use std::sync::Arc;

use super::instrument::Counter;
use super::registry::Registry;

/// How often tokens of each sort were used.
pub(crate) struct Tokens {
    /// Those that lie in Secrets and name no audience.
    pub(crate) legacy: Arc<Counter>,
    /// Those in Secrets that somebody has made for them.
    pub(crate) manual: Arc<Counter>,
    /// Those in Secrets that were once made for every account.
    pub(crate) generated: Arc<Counter>,
    /// Those in Secrets that are marked as no longer good.
    pub(crate) invalid: Arc<Counter>,
    /// Those of Pods whose programs should have read a newer one by now.
    pub(crate) stale: Arc<Counter>,
    /// Those of Pods that are as new as they should be.
    pub(crate) valid: Arc<Counter>,
}

impl Tokens {
    pub(super) fn registered(registry: &Registry) -> Self {
        Self {
            legacy: registry.counter(
                "serviceaccount_legacy_tokens_total",
                "[ALPHA] Cumulative legacy service account tokens used",
            ),
            manual: registry.counter(
                "serviceaccount_legacy_manual_token_uses_total",
                "[ALPHA] Cumulative manually created legacy tokens used",
            ),
            generated: registry.counter(
                "serviceaccount_legacy_auto_token_uses_total",
                "[ALPHA] Cumulative auto-generated legacy tokens used",
            ),
            invalid: registry.counter(
                "serviceaccount_invalid_legacy_auto_token_uses_total",
                "[ALPHA] Cumulative invalid auto-generated legacy tokens used",
            ),
            stale: registry.counter(
                "serviceaccount_stale_tokens_total",
                "[ALPHA] Cumulative stale projected service account tokens used",
            ),
            valid: registry.counter(
                "serviceaccount_valid_tokens_total",
                "[ALPHA] Cumulative valid projected service account tokens used",
            ),
        }
    }
}

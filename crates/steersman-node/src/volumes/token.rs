//! Tokens of service accounts in projected volumes: which are needed, and until when they are fresh.

use std::collections::{BTreeSet, HashMap};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, ServiceAccountTokenProjection};

/// However long a token lasts, a newer one is fetched after this time.
const OLDEST: SignedDuration = SignedDuration::from_hours(24);

/// How long a token lasts if the Pod does not say; the API server's default.
const LIFETIME: i64 = 3600;

/// A token as a Pod asks for it, always of its own service account and bound to the Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TokenKey {
    /// For whom it is; for the API server if this is missing.
    pub(crate) audience: Option<String>,
    pub(crate) expiration_seconds: i64,
}

impl TokenKey {
    /// The token that a volume asks for.
    pub(crate) fn of(source: &ServiceAccountTokenProjection) -> Self {
        Self {
            audience: source.audience.clone().filter(|audience| !audience.is_empty()),
            expiration_seconds: source.expiration_seconds.unwrap_or(LIFETIME),
        }
    }

    /// The tokens that a Pod asks for.
    pub(crate) fn of_pod(pod: &Pod) -> BTreeSet<Self> {
        let volumes = pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten();
        let projected = volumes.filter_map(|volume| volume.projected.as_ref());
        let sources = projected.filter_map(|projected| projected.sources.as_ref()).flatten();
        sources.filter_map(|source| source.service_account_token.as_ref()).map(Self::of).collect()
    }
}

/// A token that was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) value: String,
    pub(crate) expires: Timestamp,
    /// How long it was meant to last, as the API server answered.
    pub(crate) lifetime: SignedDuration,
}

impl Token {
    /// When to fetch a newer one: a fifth of its time before it expires, or when it is a day old.
    /// The jitter, up to ten seconds, keeps Pods from asking all at once.
    pub(crate) fn refresh_at(&self, jitter: SignedDuration) -> Timestamp {
        let issued = self.expires - self.lifetime;
        (issued + OLDEST).min(self.expires - self.lifetime / 5) - jitter
    }

    /// Whether nobody accepts it any more. Until then it is used though a newer one cannot be had.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        now > self.expires
    }
}

/// What was fetched for a Pod: tokens, or why they could not be had.
pub(crate) type Tokens = HashMap<TokenKey, Result<Token, String>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_refreshed_at_four_fifths_of_its_time_or_after_a_day() {
        let issued: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let token = |lifetime: SignedDuration| Token {
            value: String::new(),
            expires: issued + lifetime,
            lifetime,
        };
        let hours = SignedDuration::from_hours;
        for (lifetime, jitter, expected) in [
            (hours(1), 0, "2026-01-01T00:48:00Z"),
            (hours(1), 10, "2026-01-01T00:47:50Z"),
            (hours(30), 0, "2026-01-02T00:00:00Z"),
            (hours(24 * 365), 5, "2026-01-01T23:59:55Z"),
        ] {
            let refresh = token(lifetime).refresh_at(SignedDuration::from_secs(jitter));
            assert_eq!(refresh.to_string(), expected);
        }
        let short = token(hours(1));
        assert!(!short.is_expired(issued + hours(1)));
        assert!(short.is_expired(issued + hours(1) + SignedDuration::from_secs(1)));
    }
}

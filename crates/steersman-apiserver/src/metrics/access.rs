//! Who was known, and who was allowed.

use std::sync::Arc;
use std::time::Duration;

use super::instrument::{Counter, Histogram};
use super::registry::{Family, Registry};

const DURATIONS: &[f64] = &[
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
    8.192, 16.384,
];

/// What came of asking who somebody is, and what somebody may do.
pub(crate) struct Access {
    authenticated: Outcome,
    not_authenticated: Outcome,
    not_known: Outcome,
    users: Family<1, Counter>,
    other_users: Arc<Counter>,
    allowed: Outcome,
    no_opinion: Outcome,
    undecided: Outcome,
    acting: Family<2, Counter>,
    acting_durations: Family<2, Histogram>,
}

/// One thing that can come of it: how often it did, and after how long.
struct Outcome {
    number: Arc<Counter>,
    durations: Arc<Histogram>,
}

impl Outcome {
    fn came(&self, after: Duration) {
        self.number.increment();
        self.durations.took(after);
    }
}

/// The names that are told; those of others would be too many.
const USERS: [&str; 5] =
    ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];

impl Access {
    pub(super) fn registered(registry: &Registry) -> Self {
        let attempts = registry.counters(
            "authentication_attempts",
            "[ALPHA] Counter of authenticated attempts.",
            ["result"],
        );
        let attempt_durations = registry.histograms(
            "authentication_duration_seconds",
            "[ALPHA] Authentication duration in seconds broken out by result.",
            ["result"],
            DURATIONS,
        );
        let attempt = |result| Outcome {
            number: attempts.with([result]),
            durations: attempt_durations.with([result]),
        };
        let users = registry.counters(
            "authenticated_user_requests",
            "[ALPHA] Counter of authenticated requests broken out by username.",
            ["username"],
        );
        let decisions = registry.counters(
            "authorization_attempts_total",
            "[ALPHA] Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'.",
            ["result"],
        );
        let decision_durations = registry.histograms(
            "authorization_duration_seconds",
            "[ALPHA] Authorization duration in seconds broken out by result.",
            ["result"],
            DURATIONS,
        );
        let decision = |result| Outcome {
            number: decisions.with([result]),
            durations: decision_durations.with([result]),
        };
        Self {
            authenticated: attempt("success"),
            not_authenticated: attempt("failure"),
            not_known: attempt("error"),
            other_users: users.with(["other"]),
            users,
            allowed: decision("allowed"),
            no_opinion: decision("no-opinion"),
            undecided: decision("error"),
            acting: registry.counters(
                "apiserver_impersonation_attempts_total",
                "[ALPHA] Total number of impersonation attempts split by mode and decision.",
                ["decision", "mode"],
            ),
            acting_durations: registry.histograms(
                "apiserver_impersonation_attempts_duration_seconds",
                "[ALPHA] Latency of impersonation attempts in seconds split by mode and decision.",
                ["decision", "mode"],
                DURATIONS,
            ),
        }
    }

    /// Somebody is known by this name.
    pub(crate) fn knows(&self, user: &str, took: Duration) {
        self.authenticated.came(took);
        if USERS.contains(&user) {
            self.users.with([user]).increment();
        } else if user.contains('@') {
            self.users.with(["email_id"]).increment();
        } else {
            self.other_users.increment();
        }
    }

    /// Nobody is known: what was `shown` is not good, or nothing was.
    pub(crate) fn knows_not(&self, shown: bool, took: Duration) {
        let outcome = if shown { &self.not_known } else { &self.not_authenticated };
        outcome.came(took);
    }

    /// Something is allowed.
    pub(crate) fn allows(&self, took: Duration) {
        self.allowed.came(took);
    }

    /// Nothing allows it (403), or it could not be found out.
    pub(crate) fn allows_not(&self, code: u16, took: Duration) {
        let outcome = if code == 403 { &self.no_opinion } else { &self.undecided };
        outcome.came(took);
    }

    /// Somebody acts as another in a mode, or may not in any.
    pub(crate) fn acts(&self, mode: Option<&str>, took: Duration) {
        let decision = if mode.is_some() { "allowed" } else { "denied" };
        let labels = [decision, mode.unwrap_or("")];
        self.acting.with(labels).increment();
        self.acting_durations.with(labels).took(took);
    }
}

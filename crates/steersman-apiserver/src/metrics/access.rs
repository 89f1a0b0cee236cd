//! Who was known, and who was allowed.

use std::sync::Arc;

use super::instrument::Counter;
use super::registry::{Family, Registry};

/// What came of asking who somebody is, and what somebody may do.
pub(crate) struct Access {
    authenticated: Arc<Counter>,
    not_authenticated: Arc<Counter>,
    not_known: Arc<Counter>,
    users: Family<1, Counter>,
    other_users: Arc<Counter>,
    allowed: Arc<Counter>,
    no_opinion: Arc<Counter>,
    undecided: Arc<Counter>,
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
        Self {
            authenticated: attempts.with(["success"]),
            not_authenticated: attempts.with(["failure"]),
            not_known: attempts.with(["error"]),
            other_users: users.with(["other"]),
            users,
            allowed: decisions.with(["allowed"]),
            no_opinion: decisions.with(["no-opinion"]),
            undecided: decisions.with(["error"]),
        }
    }

    /// Somebody is known by this name.
    pub(crate) fn knows(&self, user: &str) {
        self.authenticated.increment();
        if USERS.contains(&user) {
            self.users.with([user]).increment();
        } else if user.contains('@') {
            self.users.with(["email_id"]).increment();
        } else {
            self.other_users.increment();
        }
    }

    /// Nobody is known: what was shown is not good (401), or it could not be found out.
    pub(crate) fn knows_not(&self, code: u16) {
        let number = if code == 401 { &self.not_authenticated } else { &self.not_known };
        number.increment();
    }

    /// Something is allowed.
    pub(crate) fn allows(&self) {
        self.allowed.increment();
    }

    /// Nothing allows it (403), or it could not be found out.
    pub(crate) fn allows_not(&self, code: u16) {
        let number = if code == 403 { &self.no_opinion } else { &self.undecided };
        number.increment();
    }
}

//! What is wrong with a Pod, in the words of whoever refuses it.

/// What one check finds wrong with a Pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// What is wrong, in a word or two: all that is said of Pods that exist already.
    reason: &'static str,
    /// Who is to blame, and what to do about it.
    detail: String,
}

impl Violation {
    pub(super) fn new(reason: &'static str, detail: String) -> Self {
        Self { reason, detail }
    }
}

/// All that is wrong with a Pod, in the order of the checks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Violations(Vec<Violation>);

impl Violations {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `hostPort, privileged`
    pub(super) fn reasons(&self) -> String {
        let reasons: Vec<&str> = self.0.iter().map(|violation| violation.reason).collect();
        reasons.join(", ")
    }

    /// `hostPort (container "a" uses hostPort 80), privileged (…)`
    pub(super) fn details(&self) -> String {
        let detail = |found: &Violation| format!("{} ({})", found.reason, found.detail);
        let details: Vec<String> = self.0.iter().map(detail).collect();
        details.join(", ")
    }
}

impl FromIterator<Violation> for Violations {
    fn from_iter<I: IntoIterator<Item = Violation>>(found: I) -> Self {
        Self(found.into_iter().collect())
    }
}

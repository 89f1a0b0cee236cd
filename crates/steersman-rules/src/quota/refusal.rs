//! Why quotas refuse a write.

/// Why a write does not get what it wants of quotas, in the words of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is forbidden.
    Forbidden(String),
    /// It is in scopes that no quota covers, to which Kubernetes has no answer but this text.
    Uncovered(String),
}

//! Why a node refuses a Pod that is bound to it.

use std::borrow::Cow;

use crate::preemption::NobodyHelps;

/// Why a node does not take a Pod. Said as a kubelet says it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Rejection {
    /// It runs as many Pods as it can.
    #[error(
        "Node didn't have enough resource: pods, requested: 1, used: {used}, capacity: {capacity}"
    )]
    OutOfPods {
        /// How many Pods it runs.
        used: usize,
        /// How many it can run.
        capacity: u32,
    },
    /// It has not as much of something.
    #[error(
        "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, \
         capacity: {capacity}"
    )]
    OutOf {
        /// Of what.
        resource: String,
        /// How much of it the Pod asks for.
        requested: i64,
        /// How much other Pods have.
        used: i64,
        /// How much there is.
        capacity: i64,
    },
    /// Another Pod has a port that it asks for.
    #[error(
        "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    )]
    NodePorts,
    /// It wants another node.
    #[error("Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")]
    NodeAffinity,
    /// The node is tainted, and it does not tolerate that.
    #[error("Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate")]
    TaintToleration,
    /// It sets a parameter of the kernel that it must not.
    #[error("forbidden sysctl: {0}")]
    Sysctl(String),
    /// Its label names another operating system.
    #[error("Failed to admit pod as the `kubernetes.io/os` label doesn't match node label")]
    OsLabel,
    /// It is for another operating system.
    #[error("Failed to admit pod as the OS field doesn't match node OS")]
    Os,
    /// Its containers must be in no groups but its own, which the runtime cannot do.
    #[error("SupplementalGroupsPolicy=Strict is not supported in this node")]
    StrictGroups,
    /// It has a profile that nothing enforces.
    #[error("Cannot enforce AppArmor: {0}")]
    AppArmor(String),
    /// It needs what this kubelet does not say that it can do.
    #[error("Pod requires node features that are not available: {0}")]
    Features(String),
    /// It asks for something that the node cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// The system needs it, and nobody can go for it.
    #[error(transparent)]
    NobodyHelps(NobodyHelps),
    /// The node is short of something.
    #[error("{0}")]
    Evicted(String),
}

impl Rejection {
    /// The reason in the Pod's status.
    pub(crate) fn reason(&self) -> Cow<'static, str> {
        match self {
            Self::OutOfPods { .. } => "OutOfpods".into(),
            Self::OutOf { resource, .. } => format!("OutOf{resource}").into(),
            Self::NodePorts => "NodePorts".into(),
            Self::NodeAffinity => "NodeAffinity".into(),
            Self::TaintToleration => "TaintToleration".into(),
            Self::Sysctl(_) => "SysctlForbidden".into(),
            Self::OsLabel => "PodOSSelectorNodeLabelDoesNotMatch".into(),
            Self::Os => "PodOSNotSupported".into(),
            Self::StrictGroups => "SupplementalGroupsPolicyNotSupported".into(),
            Self::AppArmor(_) => "AppArmor".into(),
            Self::Features(_) => "PodFeatureUnsupported".into(),
            Self::Unsupported(_) | Self::NobodyHelps(_) => "UnexpectedAdmissionError".into(),
            Self::Evicted(_) => crate::eviction::REASON.into(),
        }
    }

    /// Whether it follows from what others have or what the Node says, which may not be so any more.
    pub(crate) fn may_be_late(&self) -> bool {
        matches!(
            self,
            Self::OutOfPods { .. }
                | Self::OutOf { .. }
                | Self::NodePorts
                | Self::NodeAffinity
                | Self::TaintToleration
        )
    }
}

//! The framework that scheduling is made of: what plug-ins are given and asked.
//!
//! A [`Plugin`] takes part in any of the extension points. What it is given is one [`Cycle`]: the Pod,
//! a [`Snapshot`] of the nodes, other objects, and room for what it remembers meanwhile. A [`Profile`]
//! is the plug-ins for the Pods of one scheduler name, and runs them.

mod class_resources;
mod cycle;
mod events;
mod features;
mod fit_error;
mod host_ports;
mod kin;
mod lister;
mod node_info;
mod nominator;
mod plugin;
mod pod_info;
mod profile;
mod refusal;
mod requests;
mod resources;
mod search;
mod selector;
mod snapshot;
mod topology;
mod verdicts;

pub(crate) use class_resources::{ClassResources, IMPLICIT};
pub(crate) use cycle::Timed;
pub use cycle::{Cycle, CycleState};
pub(crate) use events::named;
pub use events::{Action, Before, ClusterEvent, Hint, Interest, Object, Resource};
pub use features::{declares, may_restart_all, needed_features};
pub(crate) use fit_error::FitError;
pub use host_ports::HostPort;
pub use kin::Kin;
pub use lister::Lister;
pub use node_info::NodeInfo;
pub use nominator::Nominator;
pub(crate) use plugin::Candidate;
pub use plugin::{
    Binding, Permit, Plugin, Points, PostFilter, PreFilter, PreScore, QueuedPod, Replacement,
    SCORE_MAX,
};
pub use pod_info::{AffinityTerm, AffinityTerms, PodInfo, WeightedTerm};
pub(crate) use pod_info::{PREEMPTED, is_exclusive};
pub use profile::Profile;
pub(crate) use profile::{Enabled, Failure, Helped, status_of};
pub use refusal::{Code, NodeRefusals, Refusal};
pub use requests::PodRequests;
pub use resources::Resources;
pub(crate) use search::{Feasible, top_of_heap};
pub use selector::{Labels, Selector};
pub use snapshot::Snapshot;
pub use topology::Topology;
pub(crate) use verdicts::{Remembered, Trial};

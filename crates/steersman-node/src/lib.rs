//! The node agent: registers Nodes, keeps them alive, and makes the Pods bound to them run.
//!
//! [`SimulatedNodes`] stands for any number of machines that exist only as objects, [`ContainerdNode`]
//! for the one that this runs on: `machine` says what it has and `health` how it is. For each,
//! `registration` says what the Node object is, `heartbeat` renews its Lease and reports its
//! status when [`Heartbeats`] say so and nobody has [cut it off](Outages), and `pods` runs the Pods
//! bound to it, and those that `static_pods` says, through a `runtime`. Simulated containers do what a [`script`] says, and what they use,
//! `metrics` tell; real ones run by a container runtime that speaks `cri`. A cluster is seen only
//! through its client; this crate knows nothing of API servers, stores or controllers. Which ports of
//! a node are free it decides as the scheduler does and by its code, as a kubelet.
//!
//! A machine that is no member of a cluster yet can [`join`] one.
//!
//! What a kubelet decides about real containers stands apart from those who run them: `objects` are
//! what Pods refer to, of which `environment` makes variables and `volumes` files, with what the
//! `downward` API tells; `probes` say whether containers live, and `garbage` which of them, and which
//! images, are left over. `eviction` says who must go when a node runs out of something,
//! and `logs` how those of containers are rotated.

mod addresses;
mod admission;
mod families;
mod outages;
mod registration;
mod rejection;
mod restart_policy;
mod termination_order;

mod duration;

mod agenda;
mod heartbeat;
mod heartbeats;

mod script;

mod cri;
mod runtime;

mod preemption;
mod standing;
mod static_pods;

mod pods;

mod groups;
mod nodes;

mod health;
mod housekeeping;
mod machine;
mod node;

pub mod join;

mod metrics;

mod objects;

mod downward;
mod environment;

#[allow(unused_imports, reason = "its tests use more of it")]
mod volumes;

#[allow(unused_imports, reason = "its tests use more of it")]
mod probes;

mod garbage;

mod eviction;

mod logs;

pub use families::IpFamilies;
pub use groups::{NodeFailure, NodeGroup, UsageProfile};
pub use heartbeats::{Heartbeats, Sign, Watching};
pub use housekeeping::Housekeeping;
pub use metrics::ResourceMetrics;
pub use node::{ConnectedNode, ContainerdNode, NodeError};
pub use nodes::SimulatedNodes;
pub use outages::{NodeOutage, Outages};
pub use script::{PodRule, Scripts};

//! Tests with a whole cluster inside, on virtual time.
//!
//! `#[steersman::test]` gives a test a [`Cluster`]: API server, controllers, scheduler and
//! nodes in one process on one thread. Its clock stands still while anything can run and
//! jumps to the next timer when nothing can, so a test never waits and never sleeps.
//!
//! ```
//! use k8s_openapi::api::core::v1::ServiceAccount;
//! use steersman_testkit::Cluster;
//!
//! #[steersman::test]
//! async fn every_namespace_has_a_service_account(cluster: Cluster) -> steersman::Result<()> {
//!     cluster.eventually("default/default", |_: &ServiceAccount| true).await
//! }
//! ```
//!
//! `#[steersman::test(nodes = 5, seed = 7, controllers = false)]` chooses another cluster, see
//! [`Settings`], and [`Controllers`] to leave out some of the built-in ones.
//! `#[steersman::test(anywhere)]` says that the test asks for nothing that only
//! this cluster has: with `STEERSMAN_TEST_KUBECONFIG` in the environment, it runs on that one
//! instead, on real time, in a namespace of its own.
//!
//! [`Cluster::pods`] says what simulated Pods do otherwise than to run for ever: complete, fail,
//! never become ready, have an image that cannot be pulled.
//!
//! [`Cluster::fork`] gives a test a second cluster with all that is in the first, and [`Prepared`]
//! gives many tests forks of one cluster that was prepared once.
//!
//! `RUST_LOG=debug cargo test` shows the logs, on the clock of the test ([`VirtualTime`]).
//!
//! [`Cluster::deploy`] runs controllers under the permissions that their manifests grant, and no
//! others: a missing rule fails the test and says what to add.
//!
//! [`Restarts`] runs a scenario again and again, with a restart of a controller after each of its
//! writes, and compares what comes of it.
//!
//! [`faults`] puts trouble between a client and that cluster, from a seed; a [`link`] between
//! them can be slow, lossy or held up.

mod cluster;
mod deployed;
mod existing;
pub mod faults;
pub mod link;
mod logs;
mod permissions;
mod prepared;
mod restarts;
mod rule_costs;
mod run;
mod settings;
mod settle;
mod test;
mod webhooks;
mod wire;

pub use cluster::Cluster;
pub use deployed::Deployed;
pub use faults::{Fault, Faults};
pub use link::{Condition, Link};
pub use logs::VirtualTime;
pub use permissions::MissingRule;
pub use prepared::Prepared;
pub use restarts::Restarts;
pub use rule_costs::{BrokenRules, RuleCosts};
pub use run::{run, run_with};
pub use settings::Settings;
pub use steersman_cluster::audit::AuditRecord;
pub use steersman_cluster::{
    Controllers, Measured, Metrics, NodeOutage, Outages, PodRule, RuleCost,
};

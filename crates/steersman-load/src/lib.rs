//! Load from outside: what a file describes is put on any cluster, and what its clients saw is told.
//!
//! A [`Scenario`] says what there is (namespaces, and objects in each), and what happens then for a
//! while: updates, churn, reads, watchers. A [`Load`] makes it so with one client of the cluster, in
//! phases: fill, settle, load, settle, clean. It knows nothing of who serves the API and asks for
//! nothing but the API, so that two clusters are measured by the same means. A [`Report`] has what
//! was measured, as data, [as a table](Report::table) and [as a page](Report::html).
//!
//! Requests of the load are sent when they are due, whether or not earlier ones have been answered,
//! and their time counts from when they were due: a server that falls behind is not asked less.
//!
//! ```
//! use steersman_load::{Load, Scenario};
//! use tokio_util::sync::CancellationToken;
//!
//! let scenario: Scenario = "
//!     namespaces: 2
//!     objects:
//!       - count: 3
//!         deployment: {replicas: 2}
//!     load: {for: 10s, updates: 5}
//! ".parse().unwrap();
//! steersman_testkit::run(|cluster| async move {
//!     let load = Load::new(cluster.client().clone(), scenario);
//!     let report = load.run(&CancellationToken::new()).await.unwrap();
//!     let created = report.operation("create deployments").unwrap();
//!     assert_eq!((created.count, created.errors), (6, 0));
//!     assert_eq!(report.operation("patch deployments").unwrap().count, 50);
//! });
//! ```

mod crowd;
mod error;
mod histogram;
mod html;
mod observer;
mod pace;
pub mod plot;
mod population;
mod readiness;
mod recorder;
mod report;
mod requests;
mod run;
mod scenario;
mod server;
mod table;
mod template;
mod watchers;

pub use error::LoadError;
pub use histogram::Histogram;
pub use report::{Gauges, Operation, Phase, Point, Report};
pub use run::{Load, Progress};
pub use scenario::{Activity, ConfigMaps, Deployments, InvalidScenario, Objects, Ready, Scenario};

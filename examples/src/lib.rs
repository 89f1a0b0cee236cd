//! Controllers to read, run and copy.
//!
//! - [`app_service`]: a custom resource that owns a Deployment, the "hello world" of operators.
//! - [`replica_set`]: a custom resource that keeps a number of Pods: plan, act, report.
//! - [`thrifty`]: a scheduler with a plug-in of one's own: nodes have a price.
//! - [`workqueue`]: what a controller is made of, by hand.

#[expect(clippy::duplicated_attributes, reason = "two columns may have the same type")]
pub mod app_service;
#[expect(clippy::duplicated_attributes, reason = "two columns may have the same type")]
pub mod replica_set;
pub mod thrifty;
pub mod workqueue;

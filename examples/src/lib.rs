//! Controllers to read, run and copy.
//!
//! - [`app_service`]: a custom resource that owns a Deployment, the "hello world" of operators.
//! - [`replica_set`]: a custom resource that keeps a number of Pods: plan, act, report.
//! - [`workqueue`]: what a controller is made of, by hand.

#[expect(clippy::duplicated_attributes, reason = "two columns may have the same type")]
pub mod app_service;
#[expect(clippy::duplicated_attributes, reason = "two columns may have the same type")]
pub mod replica_set;
pub mod workqueue;

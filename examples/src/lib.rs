//! Controllers to read, run and copy.
//!
//! - [`app_service`]: a custom resource that owns a Deployment, the "hello world" of operators.

#[expect(unreachable_pub, reason = "the derive repeats the type inside a function")]
#[expect(clippy::duplicated_attributes, reason = "two columns may have the same type")]
pub mod app_service;
pub mod workqueue;

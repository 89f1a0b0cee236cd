//! Admission: others who may change or refuse what is written.
//!
//! A write asks them through a [`Request`]: the [plug-ins](crate::state::plugins) that are switched
//! on, in order, and the webhooks that are [registered](crate::admission_registration):
//! mutating webhooks one after the other, before the object is validated, validating ones all at
//! once, right before it is stored. Plug-ins see what mutating webhooks have changed once more, so
//! that a container that one adds is treated like the others. [`crate::write`] is where it asks; a write that finds the
//! object changed asks again, but not for ever. Nothing is locked meanwhile, so webhooks may call
//! back.
//!
//! Match conditions are expressions in CEL, which this server cannot evaluate: a webhook that has
//! any is treated as Kubernetes treats one whose conditions fail to evaluate. With the failure
//! policy `Fail` the request is refused, with `Ignore` the webhook is passed over.

mod admission_review;
mod conditions;
mod dispatch;
mod matching;
mod request;

pub(crate) use crate::admission_registration::Operation;
pub(crate) use request::{About, Request};

//! Admission: others who may change or refuse what is written.
//!
//! A write [asks](questions) them through a [`Request`]: the [plug-ins](crate::state::plugins) that are
//! switched on, in order, the [policies](crate::admission_policies) that are about it, and the webhooks
//! that are [registered](crate::admission_registration): mutating ones one after the other, policies
//! before webhooks, before the object is validated ([`rounds`]); validating policies, then
//! validating webhooks all at once, right before it is stored. Plug-ins see what policies and
//! webhooks have changed once more, so that a container that one adds is treated like the others.
//! [`crate::write`] is where it asks; a write that finds the object changed asks again, but not for
//! ever. Nothing is locked meanwhile, so webhooks may call back.
//!
//! Of policies, [`policy_matching`] says which a request concerns, and in which version;
//! [`policy_params`] finds the parameters of a binding; [`policy_evaluation`] computes expressions,
//! which waits for nobody; [`policy_validation`] and [`policy_mutation`] do what follows from them.

mod admission_review;
mod conditions;
mod dispatch;
mod matching;
mod policy_evaluation;
mod policy_matching;
mod policy_mutation;
mod policy_params;
mod policy_patch;
mod policy_validation;
mod questions;
mod request;
mod rounds;

pub(crate) use crate::admission_registration::Operation;
pub(crate) use request::{About, Request};

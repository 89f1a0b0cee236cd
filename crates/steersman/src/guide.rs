//! The guide: one page per module, the same pages as in `docs/guide`. Every snippet is compiled
//! by the tests, and most of them run.

#[doc = include_str!("../guide/first-controller.md")]
pub mod first_controller {}

#[doc = include_str!("../guide/owning-children.md")]
pub mod owning_children {}

#[doc = include_str!("../guide/status-and-conditions.md")]
pub mod status_and_conditions {}

#[doc = include_str!("../guide/finalizers.md")]
pub mod finalizers {}

#[doc = include_str!("../guide/webhooks.md")]
pub mod webhooks {}

#[doc = include_str!("../guide/testing.md")]
pub mod testing {}

#[doc = include_str!("../guide/an-operator.md")]
pub mod an_operator {}

#[doc = include_str!("../guide/production.md")]
pub mod production {}

#[doc = include_str!("../guide/clusters.md")]
pub mod clusters {}

#[doc = include_str!("../guide/scheduling.md")]
pub mod scheduling {}

#[doc = include_str!("../guide/from-controller-runtime.md")]
pub mod from_controller_runtime {}

#[doc = include_str!("../guide/from-kube-rs.md")]
pub mod from_kube_rs {}

//! The rules of a definition: `x-kubernetes-validations`, written in CEL.
//!
//! When a definition is written, every expression is [checked](mod@check): it must compile against the
//! shape of its part of the schema, and must not cost too much for the largest object that
//! the schema allows. When an object is written, the rules are [evaluated](mod@evaluate) on it and, where
//! they speak of `oldSelf`, on what it replaces. In between stands a tree of [levels](level), made
//! when the first object comes.

mod check;
mod costs;
mod evaluate;
mod field_path;
mod level;
mod rule;
#[cfg(test)]
mod tests;

pub(crate) use check::of_root as check;
pub use costs::{RuleCost, rule_costs};
pub(super) use evaluate::evaluate;
pub(crate) use field_path::resolved as resolved_field_path;
pub(super) use level::{Level, has_rules};

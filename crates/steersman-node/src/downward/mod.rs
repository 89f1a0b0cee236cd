//! The downward API: what a container may learn of its Pod and of the resources it was given.
//!
//! [`fields`] reads `fieldRef`s and [`resources`] `resourceFieldRef`s, for environment variables and
//! for volumes, which do not know the same fields.

mod fields;
mod resources;
#[cfg(test)]
mod tests;

pub(crate) use fields::{Addresses, FieldError, field, metadata_field};
pub(crate) use resources::{Defaults, ResourceError, resource};

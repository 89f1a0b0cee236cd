//! What the crate promises, from outside.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in shared functions too")]

mod kubernetes;
mod limits;
mod properties;
mod spec;
mod values;

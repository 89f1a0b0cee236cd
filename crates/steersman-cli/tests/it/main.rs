//! The program as its users meet it: its output, its exit codes, and kubectl against it.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking, in shared functions too")]

mod demo;
mod flags;
mod helm;
mod kubectl;
mod openapi;
mod program;

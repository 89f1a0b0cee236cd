//! Rules that have yet to move to the files of their kinds.

pub(super) mod access;
pub(super) mod claim;
pub(super) mod config;
pub(super) mod endpoints;
pub(super) mod event;
pub(super) mod namespace;
pub(super) mod node;
pub(super) mod pod;
pub(super) mod quota;
pub mod service;
pub(super) mod template;
pub(super) mod volume;

//! Kubernetes' small values: names, quantities and label selectors, read and compared as it does.
//!
//! Server and framework both need them and must not know each other, so they stand below both.
//! Nothing here knows an object.

pub mod label_selector;
pub mod names;
pub mod quantity;

pub use label_selector::LabelSelector;
pub use quantity::Quantity;

//! Nodes register themselves, with a status of their own.

use serde_json::Value;

use super::Strategy;
use super::document::{fill, within_existing};

/// The strategy of nodes.
#[derive(Debug)]
pub(super) struct Node;

impl Strategy for Node {
    /// A node that does not say what it can give away gives away what it has.
    fn default(&self, node: &mut Value) {
        within_existing(node, "status", |status| {
            if !status["capacity"].is_null() {
                let capacity = status["capacity"].clone();
                fill(status, "allocatable", capacity);
            }
        });
    }

    fn keeps_status(&self) -> bool {
        true
    }
}

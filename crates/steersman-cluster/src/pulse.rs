//! Tells controllers of simulated nodes that their hearts beat, though nobody looks and so nothing of
//! it is written.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use steersman_controllers::Pulse;
use steersman_node::Heartbeats;

/// The hearts of simulated nodes.
pub(crate) struct Hearts(pub(crate) Arc<Heartbeats>);

impl Pulse for Hearts {
    fn beats(&self, node: &str) -> bool {
        self.0.beats(node)
    }

    fn changes(&self) -> BoxStream<'static, String> {
        self.0.changes().boxed()
    }
}

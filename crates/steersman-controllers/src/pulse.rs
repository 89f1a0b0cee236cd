//! Signs of life of nodes that no client shows.

use futures::stream::BoxStream;

/// One who knows of nodes that their hearts beat, though nothing of it is written: a kubelet in the
/// same process may spare itself to renew a Lease that nobody looks at.
pub trait Pulse: Send + Sync {
    /// Whether the node of this name is alive. Of one that is not, Lease and status tell.
    fn beats(&self, node: &str) -> bool;

    /// The names of nodes of which [`beats`](Self::beats) says something else than before.
    fn changes(&self) -> BoxStream<'static, String>;
}

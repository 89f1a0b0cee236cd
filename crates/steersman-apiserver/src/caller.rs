//! Where a request comes from, which decides what can happen to its answer on the way.

use std::net::IpAddr;

/// The address of the other end of the connection that a request came over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Where a request comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Caller {
    /// From afar, or through something that may hold up, break or lose what passes it. Its watches
    /// get a bookmark every minute, by which it knows that they live.
    #[default]
    Distant,
    /// From this process, with nothing in between: a watch that is silent lives, and one that ends
    /// is seen to end.
    Direct,
    /// The same, from a part of the cluster that does not mind if what is kept up to date
    /// [on demand](crate::on_demand) is not.
    Own,
}

impl Caller {
    /// Whether nothing lies in between.
    pub(crate) fn is_direct(self) -> bool {
        self != Self::Distant
    }
}

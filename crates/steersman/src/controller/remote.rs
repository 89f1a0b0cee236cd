//! Objects of other clusters that wake a controller, or are read by it.

use super::Builder;
use super::source::{self, Attach, Watch};
use crate::handler::{EnqueueRequestsFromMapFunc, Request};
use crate::object::{AnyObject, Object};
use crate::remote::RemoteCluster;

impl<K: AnyObject> Builder<K> {
    /// Also wakes the objects that `keys` names when an object of another cluster changes. What
    /// it was and what it is are asked, as for [`watches`](Self::watches). Reconcilers read it
    /// from [`RemoteCluster::cache`].
    pub fn watches_in<C: Object, I: IntoIterator<Item: Into<Request>>>(
        mut self,
        cluster: &RemoteCluster,
        keys: impl Fn(&C) -> I + Send + Sync + 'static,
    ) -> Self {
        let handler = EnqueueRequestsFromMapFunc::new(keys);
        self.sources.push(in_cluster(cluster, source::watched(Watch::<C>::of(), handler)));
        self
    }

    /// Keeps a cache of another cluster's objects to read from, without being woken by them.
    pub fn reads_in<C: Object>(mut self, cluster: &RemoteCluster) -> Self {
        self.sources.push(in_cluster(cluster, source::silent(&Watch::<C>::of())));
        self
    }
}

/// The same source, attached to the caches of another cluster.
fn in_cluster(cluster: &RemoteCluster, source: Attach) -> Attach {
    let caches = cluster.caches().clone();
    Box::new(move |_, keys| source(caches, keys))
}

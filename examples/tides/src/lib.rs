//! An API server of one's own behind the aggregation layer: [tides](tide::Tide), which are computed
//! when somebody asks and stored nowhere. `kubectl get tides`, with `--watch` too, and `kubectl
//! explain tide` go through the cluster's API server, which passes them on here.
//!
//! The resource is a type with `kube`'s derive, as an operator's is; instead of a controller it has a
//! [`Computed`](steersman_apiserver::Computed). Who may read tides, the cluster is asked about.

pub mod server;
pub mod tide;

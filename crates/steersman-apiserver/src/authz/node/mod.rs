//! What a node may do: Kubernetes' node authorizer.
//!
//! A user `system:node:<name>` in the group `system:nodes` may read only what Pods on that node
//! need, and the node's own objects; [`rights`] says what follows from a request alone, and where an
//! object must be related to the node. Everybody else, and whatever is not decided here, is up to
//! roles.
//!
//! Relations are pulled, not pushed. [`Related`] has an index of them and cursors into the history of
//! the store; a request that depends on a relation first takes in what was written since the last
//! such request. So nobody pays for it who writes Pods, neither in a cluster without such nodes nor
//! in one with thousands of them, for what nodes do all day (status, leases, events, watches of their
//! own Pods) depends on no relation. What a server has written counts for its next decision, also
//! that something is gone. Who asks after history went by has all of it read anew.

mod object;
mod references;
mod related;
mod relations;
mod rights;

use std::borrow::Cow;
use std::time::Duration;

use steersman_store::{Store, StoreError};

use super::attributes::Attributes;
use crate::user::User;
use related::Related;
use rights::Right;

/// How long a request waits for what is related to its node.
const TIME_MAX: Duration = Duration::from_secs(10);

/// The group that nodes are in.
const NODES: &str = "system:nodes";

/// Decides about requests of nodes.
#[derive(Debug, Default)]
pub(crate) struct Nodes(Related);

/// The node that a user is; empty if it is one, but nobody can tell which.
pub(crate) fn node_of(user: &User) -> Option<&str> {
    let node = user.name.strip_prefix("system:node:")?;
    user.groups.iter().any(|group| group == NODES).then_some(node)
}

impl Nodes {
    /// Allows a request of a node, or says why not; `None` if it is not one's.
    pub(super) fn decide(&self, asked: &Attributes<'_>) -> Option<Result<(), Cow<'static, str>>> {
        let node = node_of(asked.user)?;
        if node.is_empty() {
            let why = format!("unknown node for user {:?}", asked.user.name);
            return Some(Err(why.into()));
        }
        Some(match rights::of(node, asked) {
            Right::Allowed => Ok(()),
            Right::IfRelated(object) if self.0.is_related(node, object) => Ok(()),
            Right::IfRelated(_) => {
                Err(format!("no relationship found between node '{node}' and this object").into())
            }
            Right::Refused(why) => Err(why),
        })
    }

    /// Sees to it that a decision about a request counts what was written before it. Costs nothing
    /// where the decision depends on no relation.
    pub(super) async fn look(
        &self,
        store: &dyn Store,
        asked: &Attributes<'_>,
    ) -> Result<(), StoreError> {
        let Some(node) = node_of(asked.user) else { return Ok(()) };
        let Right::IfRelated(object) = rights::of(node, asked) else { return Ok(()) };
        let catch_up = async {
            self.0.catch_up(store, true).await?;
            // Another server may have related them a moment ago, and this one not have heard of it.
            if !self.0.is_related(node, object) {
                self.0.catch_up(store, false).await?;
            }
            Ok(())
        };
        // On the heap, so that requests stay small that depend on no relation.
        match Box::pin(tokio::time::timeout(TIME_MAX, catch_up)).await {
            Ok(caught_up) => caught_up,
            Err(_) => {
                let reason = "what is related to the node could not be read in time".to_owned();
                Err(StoreError::Unavailable { reason })
            }
        }
    }
}

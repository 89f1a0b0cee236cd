//! `ResourceQuota`: what is written into a namespace must fit into its quotas, which are charged
//! for it.
//!
//! What an object uses and whether that fits is [arithmetic](steersman_rules::quota). Here is when
//! it is done: last of all, when nobody else refuses the write. A quota is charged by comparing and
//! swapping its stored status before the object is written, so that whoever comes next, on
//! whatever server, finds it charged; nobody can be admitted to what is left twice. A write that
//! then fails gives back what it was charged, where that can be done without counting anew; else,
//! and of everything that is deleted, a controller does so.
//!
//! A namespace without quotas costs a look into an empty folder. One with quotas costs a write for
//! each of those that are charged, whatever else is in it; the writers of one server take turns,
//! so that they do not get into each other's way.

mod bill;
mod charge;
mod turns;

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::quota::{self, Demand, Evaluator};

use crate::admission_registration::Operation;
use crate::state::effects::Taken;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;
use bill::{Bill, Fresh, quotas};
use turns::Turns;

/// Charges quotas.
#[derive(Default)]
pub(super) struct ResourceQuota {
    turns: Turns,
}

impl Plugin for ResourceQuota {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        let path = quota::Path {
            group: &write.resource.group,
            plural: &write.resource.plural,
            subresource: write.subresource,
            is_new: write.operation == Operation::Create,
        };
        write.operation != Operation::Delete
            && !write.place.namespace.is_empty()
            && quota::is_counted(path)
    }

    fn take<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Taken>>>> {
        Box::pin(async move {
            let quotas = quotas(write, Fresh::AsHeard).await?;
            if quotas.is_empty() {
                return Ok(None);
            }
            let evaluator = Evaluator::of(&write.resource.group, &write.resource.plural);
            let concerned = |it: &Evaluator| it.is_concerned(write.subresource, new, old);
            let Some(evaluator) = evaluator.filter(concerned) else { return Ok(None) };
            let is_status = write.subresource == "status";
            let now = (write.server.clock)();
            let bill =
                Bill { write, demand: Demand { evaluator: &evaluator, new, old, is_status, now } };
            if bill.is_free(&quotas) { Ok(None) } else { bill.pay(&self.turns).await }
        })
    }
}

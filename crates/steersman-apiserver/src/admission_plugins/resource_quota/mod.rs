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
//! each of those that are charged, whatever else is in it; writes that come at once are charged
//! [together](queue).

mod batch;
mod charge;
mod configuration;
mod queue;
mod wish;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::quota::{self, Amounts, Evaluator, Limited, LimitedResource, Quota};

use crate::admission_registration::Operation;
use crate::state::effects::Taken;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;
use batch::Fresh;
use queue::Queue;
use wish::Wish;

/// Makes the plug-in, with what its configuration says.
pub(super) fn plugin(configuration: Option<&Value>) -> Result<Box<dyn Plugin>, String> {
    let limited = configuration.map(configuration::limited).transpose()?.unwrap_or_default();
    Ok(Box::new(ResourceQuota { queue: Arc::default(), limited }))
}

/// Charges quotas.
struct ResourceQuota {
    queue: Arc<Queue>,
    /// What may be used only where a quota limits it.
    limited: Vec<LimitedResource>,
}

impl ResourceQuota {
    /// What a write wants, if it could want anything.
    fn wish(&self, write: Attributes<'_>, new: &Value, old: Option<&Value>) -> Option<Wish> {
        let (group, plural) = (&write.resource.group, &write.resource.plural);
        let evaluator = Evaluator::of(group, plural);
        let evaluator = evaluator.filter(|it| it.is_concerned(write.subresource, new, old))?;
        Some(Wish {
            group: group.to_string(),
            plural: plural.to_string(),
            new: wish::counted(&evaluator, new),
            old: old.map(|old| wish::counted(&evaluator, old)),
            limited: Limited::of(&self.limited, group, plural),
            is_status: write.subresource == "status",
            dry_run: write.dry_run,
            now: (write.server.clock)(),
            evaluator,
        })
    }
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
            let Attributes { server, place, .. } = write;
            let entries = batch::quotas(server, place.namespace, Fresh::AsHeard).await?;
            if entries.is_empty() && self.limited.is_empty() {
                return Ok(None);
            }
            let Some(wish) = self.wish(write, new, old) else { return Ok(None) };
            // Most are charged nothing, by what they do not limit: then nobody has to wait.
            let quotas: Vec<Quota> = entries.iter().map(batch::quota).collect();
            if wish.charges(&quotas, true).is_ok_and(|all| all.iter().all(Amounts::is_empty)) {
                return Ok(None);
            }
            let charged = self.queue.charge(server, place.namespace, wish).await?;
            Ok((!charged.is_empty()).then(|| Box::new(charged) as Box<dyn Taken>))
        })
    }
}

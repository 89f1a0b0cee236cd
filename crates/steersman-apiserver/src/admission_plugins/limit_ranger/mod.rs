//! `LimitRanger`: what the limit ranges of a namespace say of its Pods and claims.
//!
//! Containers that say nothing of how much they need get [defaults]; then what is too little or too
//! much is refused by [limits]. Both are functions of a limit range and an object. A Pod is looked
//! at when it is made, and when its resources are resized.

mod amounts;
mod defaults;
mod limits;
#[cfg(test)]
mod tests;
mod totals;

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::metadata;

use super::stored;
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

/// Makes the plug-in.
pub(super) fn plugin() -> Box<dyn Plugin> {
    Box::new(LimitRanger)
}

struct LimitRanger;

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Concern {
    Pod,
    Claim,
}

impl Concern {
    fn of(write: &Attributes<'_>) -> Option<Self> {
        let is_resize = write.subresource == "resize" && write.resource.is("", "pods");
        match write.operation {
            Operation::Create if write.is_of("", "pods") => Some(Self::Pod),
            Operation::Update if is_resize => Some(Self::Pod),
            Operation::Delete => None,
            _ => write.is_of("", "persistentvolumeclaims").then_some(Self::Claim),
        }
    }
}

impl Plugin for LimitRanger {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        Concern::of(write).is_some()
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let mut changed = false;
            if Concern::of(&write) == Some(Concern::Pod) && !is_going(old) {
                for limit_range in limit_ranges(write).await? {
                    changed |= defaults::apply(&limit_range, new);
                }
            }
            Ok(changed)
        })
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let (Some(new), Some(concern)) = (new, Concern::of(&write)) else { return Ok(()) };
            if is_going(old) {
                return Ok(());
            }
            let refusal = match concern {
                Concern::Pod => limits::refusal_of_pod,
                Concern::Claim => limits::refusal_of_claim,
            };
            let ranges = limit_ranges(write).await?;
            match ranges.iter().find_map(|limit_range| refusal(limit_range, new)) {
                Some(why) => {
                    let named = write.resource.named(write.place.name);
                    Err(Status::forbidden(named, &why, Vec::new()))
                }
                None => Ok(()),
            }
        })
    }
}

/// Whether an object is being deleted: then nobody cares how much it needs.
fn is_going(old: Option<&Value>) -> bool {
    old.is_some_and(metadata::is_deleting)
}

/// The limit ranges of the namespace of a write, as far as this server has heard. One that cannot
/// be read may limit anything, so that nothing is written until it can.
async fn limit_ranges(write: Attributes<'_>) -> Result<Vec<Value>> {
    let folder = format!("/registry/limitranges/{}/", write.place.namespace);
    stored::all(write.server, &folder).await
}

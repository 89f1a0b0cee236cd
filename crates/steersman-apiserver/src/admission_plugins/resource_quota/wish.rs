//! A write that wants something of the quotas of its namespace.

use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_rules::metadata;
use steersman_rules::quota::{Amounts, Demand, Evaluator, Limited, Quota, Refusal, charges};
use steersman_rules::resource::Named;
use tokio::sync::oneshot;

use super::charge::Charges;
use crate::status::{Result, Status};

/// A write, as far as quotas need to know it. It owns what it needs: whoever charges quotas for it
/// goes on if the client goes away.
pub(super) struct Wish {
    pub(super) evaluator: Evaluator,
    pub(super) group: String,
    pub(super) plural: String,
    /// What is to be written, as far as it counts.
    pub(super) new: Value,
    /// What that replaces.
    pub(super) old: Option<Value>,
    /// What may be used only where a quota limits it.
    pub(super) limited: Limited,
    /// Whether it says what is, rather than what is wanted.
    pub(super) is_status: bool,
    /// Whether everything is done but the write.
    pub(super) dry_run: bool,
    pub(super) now: Timestamp,
}

/// A write that waits, and where it is told.
pub(super) struct Waiter {
    pub(super) wish: Wish,
    pub(super) answer: oneshot::Sender<Result<Charges>>,
}

impl Wish {
    /// What quotas are charged for it, or why they refuse it. `is_first` unless some have been
    /// charged already: then it is certain that what is limited is covered.
    pub(super) fn charges(&self, quotas: &[Quota], is_first: bool) -> Result<Vec<Amounts>> {
        let covered = Limited::default();
        let demand = Demand {
            evaluator: &self.evaluator,
            new: &self.new,
            old: self.old.as_ref(),
            is_status: self.is_status,
            limited: if is_first { &self.limited } else { &covered },
            now: self.now,
        };
        charges(quotas, demand).map_err(|refusal| self.refused(&refusal))
    }

    /// The write is not allowed. Where the client has left the name to the server, it has one by
    /// now.
    fn refused(&self, refusal: &Refusal) -> Status {
        let name = metadata::text(&self.new, "name");
        let named = Named { group: &self.group, resource: &self.plural, name };
        match refusal {
            Refusal::Forbidden(why) => Status::forbidden(named, why, Vec::new()),
            Refusal::Uncovered(why) => Status::failure(why),
        }
    }
}

/// An object, as far as it counts.
pub(super) fn counted(evaluator: &Evaluator, object: &Value) -> Value {
    match evaluator.reads_objects() {
        true => object.clone(),
        false => json!({"metadata": {"name": metadata::text(object, "name")}}),
    }
}

//! `AlwaysDeny` refuses everything. It is of no use, and Kubernetes has it.

use futures::future::{self, BoxFuture};
use serde_json::Value;

use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

const WHY: &str = "admission control is denying all modifications";

/// Refuses everything.
pub(super) struct AlwaysDeny;

impl Plugin for AlwaysDeny {
    fn handles(&self, _write: &Attributes<'_>) -> bool {
        true
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(future::ready(Err(write.forbidden(new, WHY))))
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(future::ready(Err(write.forbidden(new.unwrap_or(&Value::Null), WHY))))
    }
}

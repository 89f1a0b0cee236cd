//! Limit ranges, and nothing else, are named by the server where nobody names them.

use serde_json::Value;
use steersman_rules::metadata;

use crate::state::effects::{Effects, Write};

/// Names limit ranges.
pub(super) struct LimitRanges;

impl Effects for LimitRanges {
    fn name(&self, write: Write<'_>, object: &mut Value) {
        let given = |field: &str| !metadata::text(object, field).is_empty();
        if !given("name") && !given("generateName") {
            let name = write.server.random.uid();
            metadata::set(object, "name", Some(name.into()));
        }
    }
}

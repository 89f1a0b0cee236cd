//! `TaintNodesByCondition` keeps pods off a new node until a controller finds it ready.

use futures::future::{self, BoxFuture};
use serde_json::{Value, json};

use super::fields::{items, push};
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

const KEY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

/// Taints new nodes.
pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.creates("", "nodes")
    }

    fn admit<'a>(
        &'a self,
        _write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        if !new["spec"].is_object() {
            new["spec"] = json!({});
        }
        let spec = &mut new["spec"];
        let same = |taint: &Value| taint["key"] == KEY && taint["effect"] == EFFECT;
        let is_tainted = items(&spec["taints"]).iter().any(same);
        if !is_tainted {
            push(spec, "taints", json!({"key": KEY, "effect": EFFECT}));
        }
        Box::pin(future::ready(Ok(!is_tainted)))
    }
}

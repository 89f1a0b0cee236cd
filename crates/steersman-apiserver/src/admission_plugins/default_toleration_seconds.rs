//! `DefaultTolerationSeconds` lets a pod stay for five minutes on a node that is lost, unless it
//! says otherwise.

use futures::future::{self, BoxFuture};
use serde_json::{Value, json};

use super::fields::{items, push, text};
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

const KEYS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// How long a pod stays on such a node.
const SECONDS: i64 = 300;

/// Adds the tolerations that every pod has.
pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.writes("", "pods")
    }

    fn admit<'a>(
        &'a self,
        _write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(future::ready(Ok(tolerate(&mut new["spec"]))))
    }
}

fn tolerate(spec: &mut Value) -> bool {
    let lacks = |key: &&str| {
        !items(&spec["tolerations"]).iter().any(|toleration| {
            let any = |field: &str, value: &str| ["", value].contains(&text(&toleration[field]));
            any("key", key) && any("effect", "NoExecute")
        })
    };
    let lacking: Vec<&str> = KEYS.into_iter().filter(lacks).collect();
    for key in &lacking {
        let toleration = json!({
            "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS,
        });
        push(spec, "tolerations", toleration);
    }
    !lacking.is_empty()
}

//! Which items of a list replace which: those of the same keys.

use std::collections::HashMap;

use serde_json::{Value, json};

/// The items of a list that was replaced, by their keys.
pub(super) struct Items<'a, K> {
    keys: Option<&'a [K]>,
    by_keys: HashMap<String, &'a Value>,
}

impl<'a, K: AsRef<str>> Items<'a, K> {
    /// Items that are known again by keys, or not at all.
    pub(super) fn new(keys: Option<&'a [K]>, items: &'a [Value]) -> Self {
        let by_keys = keys.map(|keys| items.iter().map(|it| (identity(keys, it), it)).collect());
        Self { keys, by_keys: by_keys.unwrap_or_default() }
    }

    /// The item that another one replaces.
    pub(super) fn like(&self, item: &Value) -> Option<&'a Value> {
        let keys = self.keys.filter(|_| !self.by_keys.is_empty())?;
        self.by_keys.get(&identity(keys, item)).copied()
    }
}

fn identity<K: AsRef<str>>(keys: &[K], item: &Value) -> String {
    let values: Vec<&Value> = keys.iter().map(|key| &item[key.as_ref()]).collect();
    json!(values).to_string()
}

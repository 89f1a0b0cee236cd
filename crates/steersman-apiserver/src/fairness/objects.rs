//! The objects that configure the server, as far as it has heard of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use steersman_store::{Event, RangeRequest, Revision, Store, StoreError};

use super::configuration::Objects;
use super::schema::FlowSchema;
use super::spec::LevelSpec;

/// Where schemas and levels are stored.
pub(crate) fn folders() -> [String; 2] {
    ["flowschemas", "prioritylevelconfigurations"].map(|plural| format!("/registry/{plural}/"))
}

/// What is known, by key.
#[derive(Debug, Default)]
pub(super) struct Known(BTreeMap<String, (Revision, Object)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Object {
    Schema(Arc<FlowSchema>),
    Level(Arc<LevelSpec>),
}

impl Object {
    fn of(object: &Value) -> Option<Self> {
        match object["kind"].as_str()? {
            "FlowSchema" => Some(Self::Schema(Arc::new(FlowSchema::of(object)))),
            _ => Some(Self::Level(Arc::new(LevelSpec::of(object)?))),
        }
    }
}

impl Known {
    /// Takes in what a watch tells; false, if nothing that matters is new.
    pub(super) fn hear(&mut self, event: &Event) -> bool {
        let object = event.current.as_ref().and_then(|entry| decode(&entry.value));
        let (at, key) = (event.revision, event.key.to_string());
        let known = self.0.get(&key);
        if known.is_some_and(|(seen, _)| *seen >= at) {
            return false;
        }
        let is_new = known.map(|(_, known)| known) != object.as_ref();
        match object {
            Some(object) => _ = self.0.insert(key, (at, object)),
            // Old news of it, if there are any, end with this one.
            None => _ = self.0.remove(&key),
        }
        is_new
    }

    /// Takes in all objects that there were at a revision.
    pub(super) fn replace(&mut self, objects: Vec<(String, Revision, Option<Value>)>) {
        let parsed = objects
            .into_iter()
            .filter_map(|(key, at, object)| Some((key, (at, Object::of(&object?)?))));
        self.0 = parsed.collect();
    }

    /// What there is.
    pub(super) fn objects(&self) -> Objects {
        let mut objects = Objects::default();
        for (_, object) in self.0.values() {
            match object {
                Object::Schema(schema) => objects.schemas.push(Arc::clone(schema)),
                Object::Level(level) => objects.levels.push(Arc::clone(level)),
            }
        }
        objects
    }
}

/// A stored object; one that cannot be read configures nothing.
fn decode(bytes: &[u8]) -> Option<Object> {
    Object::of(&serde_json::from_slice(bytes).ok()?)
}

/// All objects that there are, and the revision that this is so at.
pub(super) async fn read(
    store: &dyn Store,
) -> Result<(Vec<(String, Revision, Option<Value>)>, Revision), StoreError> {
    let mut objects = Vec::new();
    let mut at = None;
    for prefix in folders() {
        let state = store.range(RangeRequest { prefix, at, ..RangeRequest::default() }).await?;
        at = Some(state.revision);
        objects.extend(state.entries.iter().map(|entry| {
            let object = serde_json::from_slice(&entry.value).ok();
            (entry.key.to_string(), entry.modified, object)
        }));
    }
    Ok((objects, at.unwrap_or_default()))
}

//! `metadata.managedFields`: who owns which fields, since when.
//!
//! An updater is known by its name, version and subresource; an applier by its name and
//! subresource, because it speaks for its whole configuration whatever version it sends.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::fieldset::FieldSet;
use super::path::Step;

/// How many updaters are told apart; the oldest beyond are merged into [`ANCIENT_CHANGES`].
const MAX_UPDATE_MANAGERS: usize = 10;
const ANCIENT_CHANGES: &str = "ancient-changes";

/// What tells managers apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ManagerId {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Empty for appliers.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

/// How a manager came to own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) fields: FieldSet,
    pub(super) api_version: String,
    pub(super) time: Option<String>,
}

/// All managers of an object.
pub(super) type Managers = BTreeMap<ManagerId, Owned>;

/// What a request says about managedFields.
pub(super) enum Sent {
    /// Nothing, or nothing that can be read.
    Nothing,
    /// `[]` or `[{}]`: forget everybody.
    Reset,
    Managers(Managers),
}

impl ManagerId {
    pub(super) fn new(
        operation: Operation,
        manager: &str,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        let api_version = if operation == Operation::Apply { "" } else { api_version };
        Self {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Reads the managers of an object.
pub(super) fn decode(object: &Value) -> Result<Managers, String> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().map(decode_entry).collect()
}

/// Reads what a request wants managedFields to be.
pub(super) fn sent(object: &Value) -> Sent {
    let Some(entries) = object["metadata"]["managedFields"].as_array() else {
        return Sent::Nothing;
    };
    match entries.as_slice() {
        [] => return Sent::Reset,
        [Value::Object(entry)] if entry.is_empty() => return Sent::Reset,
        _ => {}
    }
    match decode(object) {
        Ok(managers) => Sent::Managers(managers),
        Err(_) => Sent::Nothing,
    }
}

/// Takes managedFields out of an object.
pub(super) fn strip(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
}

/// Writes the managers into an object, in Kubernetes' order: appliers first, then by age.
pub(super) fn encode(managers: &Managers, object: &mut Value) {
    strip(object);
    let mut entries: Vec<_> =
        managers.iter().filter(|(_, owned)| !owned.fields.is_empty()).collect();
    if entries.is_empty() {
        return;
    }
    entries.sort_by(|(a, x), (b, y)| {
        let key = |id: &ManagerId, owned: &Owned| {
            let names = (id.manager.clone(), owned.api_version.clone(), id.subresource.clone());
            (id.operation, owned.time.clone().unwrap_or_default(), names)
        };
        key(a, x).cmp(&key(b, y))
    });
    let entries = entries.into_iter().map(|(id, owned)| encode_entry(id, owned)).collect();
    if let Value::Object(map) = object {
        let metadata = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        metadata["managedFields"] = Value::Array(entries);
    }
}

/// The paths that nobody owns: identity, and what the server maintains.
pub(super) static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let field = |name: &str| Step::Field(name.to_owned());
    let mut set = FieldSet::default();
    for name in ["apiVersion", "kind", "metadata"] {
        set.insert(&[field(name)]);
    }
    for name in METADATA {
        set.insert(&[field("metadata"), field(name)]);
    }
    set
});

/// Merges the oldest updaters, per version, until there are at most ten.
pub(super) fn cap_updaters(managers: &mut Managers) {
    let mut updaters: Vec<ManagerId> =
        managers.keys().filter(|id| id.operation == Operation::Update).cloned().collect();
    let mut excess = updaters.len().saturating_sub(MAX_UPDATE_MANAGERS);
    updaters.sort_by_key(|id| (managers[id].time.clone(), id.clone()));
    let mut first_of: BTreeMap<String, ManagerId> = BTreeMap::new();
    for id in updaters {
        if excess == 0 {
            break;
        }
        let version = id.api_version.clone();
        let Some(first) = first_of.get(&version) else {
            first_of.insert(version, id);
            continue;
        };
        let bucket = ManagerId::new(Operation::Update, ANCIENT_CHANGES, &version, "");
        let older = managers.remove(&bucket).or_else(|| managers.remove(first));
        let Some(Owned { fields, api_version, time }) = managers.remove(&id) else { continue };
        let fields = older.map_or(fields.clone(), |older| fields.union(&older.fields));
        managers.insert(bucket, Owned { fields, api_version, time });
        excess -= 1;
    }
}

fn decode_entry(entry: &Value) -> Result<(ManagerId, Owned), String> {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    if text("fieldsType") != "FieldsV1" {
        return Err(format!("invalid fieldsType {:?} in managed fields entry", text("fieldsType")));
    }
    let fields = match &entry["fieldsV1"] {
        Value::Null => FieldSet::default(),
        fields => FieldSet::decode(fields)?,
    };
    let id = ManagerId::new(operation, text("manager"), api_version, text("subresource"));
    let time = entry["time"].as_str().map(str::to_owned);
    Ok((id, Owned { fields, api_version: api_version.to_owned(), time }))
}

fn encode_entry(id: &ManagerId, owned: &Owned) -> Value {
    let mut entry = json!({
        "manager": id.manager,
        "operation": id.operation.as_str(),
        "apiVersion": owned.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields.encode(),
    });
    if let Some(time) = &owned.time {
        entry["time"] = json!(time);
    }
    if !id.subresource.is_empty() {
        entry["subresource"] = json!(id.subresource);
    }
    entry
}

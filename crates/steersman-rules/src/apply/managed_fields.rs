//! `metadata.managedFields`: who owns which fields, since when.
//!
//! An updater is known by its name, version and subresource; an applier by its name and
//! subresource, because it speaks for its whole configuration whatever version it sends.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::encoded;
use super::fieldset::FieldSet;
use super::path::Step;

/// How many updaters are told apart; the oldest beyond are merged into [`ANCIENT_CHANGES`].
const MAX_UPDATE_MANAGERS: usize = 10;
const ANCIENT_CHANGES: &str = "ancient-changes";

/// How many managers a client may name. An object that really has more keeps them.
const SENT_MAX: usize = 1000;

/// What tells managers apart.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owned {
    pub(super) fields: Fields,
    pub(super) api_version: String,
    pub(super) time: Option<String>,
}

/// Owned fields, decoded only when a write touches them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fields {
    /// As FieldsV1.
    Encoded(Value),
    Set(FieldSet),
}

/// All managers of an object.
pub(super) type Managers = BTreeMap<ManagerId, Owned>;

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

/// The order of the JSON by which Kubernetes knows managers: of names that begin alike the shorter
/// is the one whose quote comes first, and a subresource comes before the end of the object.
impl Ord for ManagerId {
    fn cmp(&self, other: &Self) -> Ordering {
        let quoted = |a: &str, b: &str| a.bytes().chain([b'"']).cmp(b.bytes().chain([b'"']));
        quoted(&self.manager, &other.manager)
            .then_with(|| self.operation.cmp(&other.operation))
            .then_with(|| quoted(&self.api_version, &other.api_version))
            .then_with(|| self.subresource.is_empty().cmp(&other.subresource.is_empty()))
            .then_with(|| quoted(&self.subresource, &other.subresource))
    }
}

impl PartialOrd for ManagerId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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

impl Fields {
    /// The fields as a set. What the server has written can be read.
    pub(super) fn to_set(&self) -> FieldSet {
        match self {
            Self::Encoded(fields) => FieldSet::decode(fields).unwrap_or_default(),
            Self::Set(set) => set.clone(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Encoded(fields) => fields.as_object().is_none_or(Map::is_empty),
            Self::Set(set) => set.is_empty(),
        }
    }

    pub(super) fn overlaps(&self, set: &FieldSet) -> bool {
        match self {
            Self::Encoded(fields) => encoded::overlaps(fields, set),
            Self::Set(own) => !own.intersection(set).is_empty(),
        }
    }

    /// Gives up the paths of a set.
    pub(super) fn subtract(&mut self, set: &FieldSet) {
        if self.overlaps(set) {
            *self = Self::Set(self.to_set().minus(set));
        }
    }

    /// Takes the paths of a set.
    pub(super) fn add(&mut self, set: FieldSet) {
        let covered = matches!(&*self, Self::Encoded(fields) if encoded::covers(fields, &set));
        if !covered {
            let own = self.to_set();
            *self = Self::Set(if own.is_empty() { set } else { own.union(&set) });
        }
    }

    pub(super) fn encode(self) -> Value {
        match self {
            Self::Encoded(fields) => fields,
            Self::Set(set) => set.encode(),
        }
    }
}

/// Takes managedFields out of an object.
pub(super) fn take(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// Whether a request wants everybody forgotten: `[]` or `[{}]`.
pub(super) fn is_reset(entries: &Value) -> bool {
    match entries.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([Value::Object(entry)]) => entry.is_empty(),
        _ => false,
    }
}

/// Reads managers that the server itself has written.
pub(super) fn read(entries: Value) -> Managers {
    read_entries(entries, Ok).unwrap_or_default()
}

/// Reads managers that a client sends, which may be anything.
pub(super) fn read_sent(entries: Value) -> Result<Managers, String> {
    let sent = entries.as_array().map_or(0, Vec::len);
    if sent > SENT_MAX {
        return Err(format!("must have at most {SENT_MAX} managed fields entries, got {sent}"));
    }
    read_entries(entries, |fields| FieldSet::decode(&fields).map(|set| set.encode()))
}

/// What is wrong with managers that someone else has written, if anything.
pub fn fault(entries: &Value) -> Option<String> {
    match entries {
        Value::Null => None,
        Value::Array(_) => read_sent(entries.clone()).err(),
        _ => Some("not a list".to_owned()),
    }
}

/// Reads entries; `fields` reads what each of them owns.
fn read_entries(
    entries: Value,
    fields: impl Fn(Value) -> Result<Value, String>,
) -> Result<Managers, String> {
    let Value::Array(entries) = entries else { return Ok(Managers::new()) };
    let mut managers = Managers::new();
    for (index, mut entry) in entries.into_iter().enumerate() {
        let sent = entry.get_mut("fieldsV1").map(mem::take).unwrap_or_default();
        let (id, mut owned) = read_entry(&entry, index)?;
        if !sent.is_null() {
            owned.fields = Fields::Encoded(fields(sent)?);
        }
        managers.insert(id, owned);
    }
    Ok(managers)
}

/// Reads an entry, but for what it owns.
fn read_entry(entry: &Value, index: usize) -> Result<(ManagerId, Owned), String> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => {
            return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}"));
        }
    }
    let id = ManagerId::new(operation, text("manager"), api_version, text("subresource"));
    let fields = Fields::Encoded(Value::Object(Map::new()));
    let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
    Ok((id, Owned { fields, api_version: api_version.to_owned(), time }))
}

/// Writes the managers into an object, in Kubernetes' order: appliers first, then by age.
pub(super) fn write(managers: Managers, object: &mut Value) {
    let mut entries: Vec<(ManagerId, Owned)> =
        managers.into_iter().filter(|(_, owned)| !owned.fields.is_empty()).collect();
    if entries.is_empty() {
        take(object);
        return;
    }
    entries.sort_by(|(a, x), (b, y)| {
        let names = (&a.manager, &x.api_version, &a.subresource);
        // No time comes before all others.
        (a.operation.cmp(&b.operation))
            .then_with(|| x.time.as_deref().cmp(&y.time.as_deref()))
            .then_with(|| names.cmp(&(&b.manager, &y.api_version, &b.subresource)))
    });
    let entries = entries.into_iter().map(|(id, owned)| write_entry(id, owned)).collect();
    if let Value::Object(map) = object {
        let metadata = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        metadata["managedFields"] = Value::Array(entries);
    }
}

fn write_entry(id: ManagerId, owned: Owned) -> Value {
    let texts = [
        ("manager", Some(id.manager)),
        ("operation", Some(id.operation.as_str().to_owned())),
        ("apiVersion", Some(owned.api_version)),
        ("time", owned.time),
        ("fieldsType", Some("FieldsV1".to_owned())),
        ("subresource", Some(id.subresource).filter(|name| !name.is_empty())),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key, Value::String(text?))));
    let fields = [("fieldsV1", owned.fields.encode())];
    Value::Object(texts.chain(fields).map(|(key, value)| (key.to_owned(), value)).collect())
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
    let is_updater = |id: &&ManagerId| id.operation == Operation::Update;
    let excess = managers.keys().filter(is_updater).count().saturating_sub(MAX_UPDATE_MANAGERS);
    if excess == 0 {
        return;
    }
    let mut updaters: Vec<ManagerId> = managers.keys().filter(is_updater).cloned().collect();
    updaters.sort_by_cached_key(|id| (managers[id].time.clone(), id.clone()));
    for id in joining(managers, updaters, excess) {
        join(managers, &id);
    }
}

/// The updaters that become one, oldest first, for each version that has some: into the bucket of
/// that version if there is one, else into the oldest.
fn joining(
    managers: &Managers,
    updaters: Vec<ManagerId>,
    mut excess: usize,
) -> impl Iterator<Item = Vec<ManagerId>> + use<> {
    let mut joining: BTreeMap<String, Vec<ManagerId>> = BTreeMap::new();
    for id in updaters {
        if excess == 0 {
            break;
        }
        let bucket = bucket(&id);
        match joining.get_mut(&id.api_version) {
            Some(_) if id == bucket => {}
            Some(group) => {
                group.push(id);
                excess -= 1;
            }
            None => {
                let version = id.api_version.clone();
                let into = if managers.contains_key(&bucket) { bucket } else { id };
                joining.insert(version, vec![into]);
            }
        }
    }
    joining.into_values().filter(|group| group.len() > 1)
}

/// Where old updaters of the same version end up.
fn bucket(id: &ManagerId) -> ManagerId {
    ManagerId::new(Operation::Update, ANCIENT_CHANGES, &id.api_version, "")
}

/// Makes one updater of some, as old as the last of them.
fn join(managers: &mut Managers, group: &[ManagerId]) {
    let all: Vec<Owned> = group.iter().filter_map(|id| managers.remove(id)).collect();
    let Some(Owned { api_version, time, .. }) = all.last().cloned() else { return };
    let fields = FieldSet::union_of(all.iter().map(|owned| owned.fields.to_set()).collect());
    managers.insert(bucket(&group[0]), Owned { fields: Fields::Set(fields), api_version, time });
}

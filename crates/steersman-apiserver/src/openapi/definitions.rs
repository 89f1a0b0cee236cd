//! The definitions of built-in types, from the table that also drives apply and validation.
//!
//! The table says what fields there are and how they merge; [`Descriptions`] says what they
//! mean, and which opaque type stands where the table has `any` or `raw`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use steersman_rules::kinds;
use steersman_rules::resource::{Resource, Verb};
use steersman_rules::schema::builtin::{self as table, Kind};
use steersman_rules::schema::{Field, ListKind, Merge, Node, Scalar, Shape};

use super::descriptions::{Common, Descriptions};
use super::facts::Facts;
use super::{Dialect, names};

/// How JSON schemas call the kinds that a definition is.
pub(super) const GVK: &str = "x-kubernetes-group-version-kind";

/// Every definition of a built-in type, with its name, one after the other.
pub(super) fn all(dialect: Dialect) -> impl Iterator<Item = (String, Value)> {
    let renderer = Renderer::new(dialect);
    let structs: BTreeSet<String> =
        renderer.types.iter().map(|type_name| names::builtin(type_name)).collect();
    let described = renderer.described.0.keys();
    let others: Vec<String> = described.filter(|name| !structs.contains(*name)).cloned().collect();
    let lists = kinds::all_and(|_| true)
        .into_iter()
        .filter(|resource| resource.verbs.contains(&Verb::List));
    let lists: Vec<(String, Value)> = lists.map(|resource| renderer.list(&resource)).collect();
    let watch_event = (names::meta("WatchEvent"), renderer.watch_event());
    let mut places = 0..renderer.types.len();
    let mut others = others.into_iter();
    let written = std::iter::from_fn(move || match places.next() {
        Some(place) => Some((names::builtin(renderer.types[place]), renderer.object(place))),
        None => others.next().map(|name| (name.clone(), renderer.other(&name))),
    });
    written.chain(lists).chain([watch_event])
}

struct Renderer {
    dialect: Dialect,
    kinds: Vec<Kind>,
    /// The names of the table's types, by place.
    types: Vec<&'static str>,
    described: Descriptions,
    facts: Facts,
}

impl Renderer {
    fn new(dialect: Dialect) -> Self {
        let mut types: Vec<(usize, &str)> =
            table::types().into_iter().map(|(name, place)| (place, name)).collect();
        types.sort_unstable();
        let types = types.into_iter().map(|(_, name)| name).collect();
        let described = Descriptions::collect();
        Self { dialect, kinds: table::kinds(), types, described, facts: Facts::read() }
    }

    /// A struct of the table.
    fn object(&self, index: usize) -> Value {
        let type_name = self.types[index];
        let described = self.described.of(&names::builtin(type_name));
        let object = table::object(index);
        let mut schema = Map::from_iter([("type".to_owned(), json!("object"))]);
        copy_description(&mut schema, described);
        let properties: Map<String, Value> = object
            .fields
            .iter()
            .map(|field| {
                let described = &described["properties"][field.name.as_ref()];
                (field.name.to_string(), self.field(index, field, described))
            })
            .collect();
        if !properties.is_empty() {
            schema.insert("properties".to_owned(), properties.into());
        }
        let required = object.fields.iter().filter(|field| field.required);
        let required: Vec<&str> = required.map(|field| field.name.as_ref()).collect();
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        if object.atomic {
            schema.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
        }
        let kinds = self.kinds_of(type_name);
        if !kinds.is_empty() {
            schema.insert(GVK.to_owned(), kinds.into());
        }
        self.facts.of(type_name).iter().for_each(|fact| fact.put(&mut schema));
        schema.into()
    }

    /// The kinds that a type is. Options of deletions are registered everywhere.
    fn kinds_of(&self, type_name: &str) -> Vec<Value> {
        if type_name == "meta.v1.DeleteOptions" {
            return self.everywhere("DeleteOptions");
        }
        let kinds = self.kinds.iter().filter(|kind| kind.type_name == type_name);
        kinds.map(|kind| group_version_kind(kind.api_version, kind.name)).collect()
    }

    fn everywhere(&self, kind: &str) -> Vec<Value> {
        let mut versions: Vec<&str> = self.kinds.iter().map(|kind| kind.api_version).collect();
        versions.sort_unstable();
        versions.dedup();
        versions.into_iter().map(|version| group_version_kind(version, kind)).collect()
    }

    fn field(&self, index: usize, field: &Field, described: &Value) -> Value {
        let mut schema = self.node(&field.node, described);
        if let Shape::List(list) = &field.node.shape {
            list_type(&mut schema, &list.kind);
        }
        let values = table::enumeration(index, &field.name);
        if !values.is_empty() {
            let below =
                ["items", "additionalProperties"].iter().find(|key| schema.contains_key(**key));
            match below.and_then(|key| schema.get_mut(*key)) {
                Some(inner) => inner["enum"] = json!(values),
                None => drop(schema.insert("enum".to_owned(), json!(values))),
            }
        }
        copy_description(&mut schema, described);
        patch_rule(&mut schema, &field.node);
        if let Some(atomic) = field.node.atomic {
            let kind = if atomic { "atomic" } else { "granular" };
            schema.insert("x-kubernetes-map-type".to_owned(), json!(kind));
        }
        let mut default = if field.value { Some(json!({})) } else { field.default.clone() };
        for fact in self.facts.of(&format!("{}#{}", self.types[index], field.name)) {
            match fact.key {
                "default" => default.clone_from(&fact.value),
                _ => fact.put(&mut schema),
            }
        }
        self.finish(schema, default)
    }

    fn node(&self, node: &Node, described: &Value) -> Map<String, Value> {
        match &node.shape {
            Shape::Named(index) => self.reference(&names::builtin(self.types[*index])),
            Shape::Scalar(scalar) => self.scalar(*scalar),
            Shape::Map(value) => {
                let below = self.item(value, &described["additionalProperties"]);
                object(json!({"type": "object", "additionalProperties": below}))
            }
            Shape::List(list) => {
                let items = self.item(&list.item, &described["items"]);
                object(json!({"type": "array", "items": items}))
            }
            Shape::Any | Shape::Raw | Shape::Part(_) | Shape::Object(_) => {
                match described["$ref"].as_str() {
                    Some(reference) => self.reference(names::referred(reference)),
                    None => Map::new(),
                }
            }
        }
    }

    /// An item of a list or map; it always exists, so it has a default.
    fn item(&self, node: &Node, described: &Value) -> Value {
        let schema = self.node(node, described);
        let default = match &node.shape {
            Shape::Named(_) => Some(json!({})),
            Shape::Scalar(Scalar::String) => Some(json!("")),
            Shape::Scalar(Scalar::Int32 | Scalar::Int64) => Some(json!(0)),
            Shape::Scalar(Scalar::Bool) => Some(json!(false)),
            _ => None,
        };
        self.finish(schema, default)
    }

    fn scalar(&self, scalar: Scalar) -> Map<String, Value> {
        let schema = match scalar {
            Scalar::String => json!({"type": "string"}),
            Scalar::Int32 => json!({"type": "integer", "format": "int32"}),
            Scalar::Int64 => json!({"type": "integer", "format": "int64"}),
            Scalar::Integer => json!({"type": "integer"}),
            Scalar::Number => json!({"type": "number", "format": "double"}),
            Scalar::Bool => json!({"type": "boolean"}),
            Scalar::Bytes => json!({"type": "string", "format": "byte"}),
            Scalar::Time => return self.reference(&names::meta("Time")),
            Scalar::MicroTime => return self.reference(&names::meta("MicroTime")),
            Scalar::Quantity => return self.reference(QUANTITY),
            Scalar::IntOrString => return self.reference(INT_OR_STRING),
        };
        object(schema)
    }

    fn reference(&self, name: &str) -> Map<String, Value> {
        object(json!({"$ref": names::reference(self.dialect, name)}))
    }

    /// Adds a default, which only version 3 has, and wraps a reference that is not alone, which
    /// only version 3 needs.
    fn finish(&self, mut schema: Map<String, Value>, default: Option<Value>) -> Value {
        if let (Dialect::V3, Some(default)) = (self.dialect, default) {
            schema.insert("default".to_owned(), default);
        }
        if self.dialect == Dialect::V3
            && schema.len() > 1
            && let Some(reference) = schema.remove("$ref")
        {
            schema.insert("allOf".to_owned(), json!([{"$ref": reference}]));
        }
        schema.into()
    }

    /// A type that no kind contains, or one that is more than its fields.
    fn other(&self, name: &str) -> Value {
        let described = self.described.of(name);
        let mut schema = match (name, self.dialect) {
            (QUANTITY, Dialect::V3) => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            (QUANTITY, Dialect::V2) => json!({"type": "string"}),
            (INT_OR_STRING, Dialect::V3) => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
            (INT_OR_STRING, Dialect::V2) => json!({"type": "string", "format": "int-or-string"}),
            _ if name.contains(".apiextensions.v1.JSON") => json!({}),
            _ => self.translated(described),
        };
        if let Some(text) = described.get("description") {
            schema["description"] = text.clone();
        }
        // k8s-openapi holds metadata by value, so it says that it is required.
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|field| field != "metadata");
            if required.is_empty() {
                schema.as_object_mut().map(|schema| schema.remove("required"));
            }
        }
        let kind = name.rsplit('.').next().unwrap_or(name);
        if ["Status", "APIGroup", "APIGroupList", "APIResourceList", "APIVersions"].contains(&kind)
        {
            schema[GVK] = json!([group_version_kind("v1", kind)]);
        }
        schema
    }

    /// A schema of k8s-openapi in our dialect.
    fn translated(&self, schema: &Value) -> Value {
        match schema {
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| match value.as_str() {
                    Some(to) if key == "$ref" => {
                        (key.clone(), names::reference(self.dialect, names::referred(to)).into())
                    }
                    _ => (key.clone(), self.translated(value)),
                });
                self.finish(fields.collect(), None)
            }
            Value::Array(items) => items.iter().map(|item| self.translated(item)).collect(),
            other => other.clone(),
        }
    }

    /// The list of a built-in resource.
    fn list(&self, resource: &Resource) -> (String, Value) {
        let type_name = table::type_of(&resource.api_version(), &resource.kind).unwrap_or_default();
        let name = names::builtin(type_name);
        let item = self.finish(self.reference(&name), Some(json!({})));
        let Resource { kind, list_kind, .. } = resource;
        let described = &self.described.of(&names::meta("APIResourceList"))["properties"];
        let mut metadata = self.reference(&names::meta("ListMeta"));
        let text = Common::texts().of_list("metadata");
        metadata.insert("description".to_owned(), json!(text));
        let schema = json!({
            "description": format!("{list_kind} is a list of {kind}."),
            "type": "object",
            "properties": {
                "apiVersion": described["apiVersion"],
                "kind": described["kind"],
                "metadata": self.finish(metadata, Some(json!({}))),
                "items": {
                    "description": format!("The objects of kind {kind}."),
                    "type": "array", "items": item,
                },
            },
            "required": ["items"],
            GVK: [group_version_kind(&resource.api_version(), list_kind)],
        });
        (name + "List", schema)
    }

    fn watch_event(&self) -> Value {
        let raw = self.reference("io.k8s.apimachinery.pkg.runtime.RawExtension");
        json!({
            "description": "One change that a watch reports.",
            "type": "object",
            "properties": {"type": {"type": "string"}, "object": raw},
            "required": ["type", "object"],
            GVK: self.everywhere("WatchEvent"),
        })
    }
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// Group, version and kind as the extension has them.
pub(super) fn group_version_kind(api_version: &str, kind: &str) -> Value {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    json!({"group": group, "version": version, "kind": kind})
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn copy_description(schema: &mut Map<String, Value>, described: &Value) {
    if let Some(text) = described.get("description") {
        schema.insert("description".to_owned(), text.clone());
    }
}

fn list_type(schema: &mut Map<String, Value>, kind: &ListKind) {
    let name = match kind {
        ListKind::Atomic => "atomic",
        ListKind::Set => "set",
        ListKind::Map(keys) => {
            schema.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
            "map"
        }
    };
    schema.insert("x-kubernetes-list-type".to_owned(), json!(name));
}

/// Strategic merge's rule; lists that are replaced have none.
fn patch_rule(schema: &mut Map<String, Value>, node: &Node) {
    let is_list = matches!(node.shape, Shape::List(_));
    let merge = match &node.patch.merge {
        Merge::Default => None,
        Merge::Replace => (!is_list).then_some("replace"),
        Merge::Set => Some("merge"),
        Merge::Key(key) => {
            schema.insert("x-kubernetes-patch-merge-key".to_owned(), json!(key));
            Some("merge")
        }
    };
    let retain = node.patch.retain_keys.then_some("retainKeys");
    let strategy: Vec<&str> = merge.into_iter().chain(retain).collect();
    if !strategy.is_empty() {
        schema.insert("x-kubernetes-patch-strategy".to_owned(), json!(strategy.join(",")));
    }
}

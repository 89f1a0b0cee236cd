//! From a definition to resources, one a version.

use serde_json::Value;

use super::INSTANCE;
use crate::resource::{Effect, Resource, ScalePaths, Subresource, Verb};
use crate::schema::{Schema, Text};
use crate::{table, versions};

const VERBS: &[Verb] = &[
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];
const PART_VERBS: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];

/// The name of the version in which instances are stored.
pub fn storage_version(definition: &Value) -> Option<&str> {
    versions_of(definition).find(|version| version["storage"] == true)?["name"].as_str()
}

/// What a definition defines.
pub struct Defined {
    /// The resources of the served versions.
    pub served: Vec<Resource>,
    /// The resource of the storage version, if it is not among those.
    pub unserved_storage: Option<Resource>,
}

/// The resources of a definition. Versions that say the same share what is made of it.
pub fn resources(definition: &Value) -> Defined {
    let mut schemas: Vec<(&Value, Schema)> = Vec::new();
    let mut of = |version| resource(definition, version, &mut schemas);
    let mut defined = Defined { served: Vec::new(), unserved_storage: None };
    for version in versions_of(definition) {
        if version["served"] == true {
            defined.served.push(of(version));
        } else if version["storage"] == true {
            defined.unserved_storage = Some(of(version));
        }
    }
    defined
}

pub(super) fn versions_of(definition: &Value) -> impl Iterator<Item = &Value> {
    definition["spec"]["versions"].as_array().into_iter().flatten()
}

fn resource<'a>(
    definition: &'a Value,
    version: &'a Value,
    schemas: &mut Vec<(&'a Value, Schema)>,
) -> Resource {
    let spec = &definition["spec"];
    let names = names_of(definition);
    let group = text(&spec["group"]);
    let plural = text(&names["plural"]);
    let schema = schema(&version["schema"]["openAPIV3Schema"], schemas);
    Resource {
        storage_prefix: format!("{group}/{plural}").into(),
        group,
        version: text(&version["name"]),
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        plural,
        singular: text(&names["singular"]),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        namespaced: spec["scope"] == "Namespaced",
        verbs: VERBS,
        subresources: subresources(names, version),
        create_on_update: false,
        unconditional_update: false,
        has_generation: true,
        schema,
        rules: &INSTANCE,
        has_status_table: true,
        columns: table::columns_from_crd(&version["additionalPrinterColumns"]),
        selectable_fields: selectable_fields(version),
        deprecation: deprecation(definition, version),
        stored_as: storage_version(definition)
            .map(|version| format!("{}/{version}", text(&spec["group"])).into()),
        converter: None,
        effect: Some(Effect::Instance),
    }
}

/// What is made of a schema, or was made of an equal one a few versions ago: there may be as many
/// as fit into an object.
fn schema<'a>(text: &'a Value, known: &mut Vec<(&'a Value, Schema)>) -> Schema {
    if let Some((_, schema)) = known.iter().rev().take(4).find(|(known, _)| *known == text) {
        return schema.clone();
    }
    let schema = Schema::structural(text);
    known.push((text, schema.clone()));
    schema
}

/// The names under which a definition is served: those that were accepted. One that has none yet is
/// known by those that it asks for.
fn names_of(definition: &Value) -> &Value {
    let accepted = &definition["status"]["acceptedNames"];
    let has = |field: &str| accepted[field].as_str().is_some_and(|name| !name.is_empty());
    if has("plural") && has("kind") { accepted } else { &definition["spec"]["names"] }
}

/// What a deprecated version warns of: its own words, or where to go.
fn deprecation(definition: &Value, version: &Value) -> Option<Text> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(warning) = version["deprecationWarning"].as_str() {
        return Some(warning.to_owned().into());
    }
    let spec = &definition["spec"];
    let group = text(&spec["group"]);
    let kind = text(&spec["names"]["kind"]);
    let name = text(&version["name"]);
    let mut warning = format!("{group}/{name} {kind} is deprecated");
    let better = versions_of(definition).filter(|v| v["served"] == true && v["deprecated"] != true);
    let better = better.filter_map(|v| v["name"].as_str());
    let better = better.filter(|v| versions::order(v, &name).is_gt());
    if let Some(best) = better.max_by(|a, b| versions::order(a, b)) {
        warning += &format!("; use {group}/{best} {kind}");
    }
    Some(warning.into())
}

fn subresources(names: &Value, version: &Value) -> Vec<Subresource> {
    let subresources = &version["subresources"];
    let mut found = Vec::new();
    if subresources["status"].is_object() {
        found.push(Subresource {
            name: "status".into(),
            kind: text(&names["kind"]),
            group_version: None,
            verbs: PART_VERBS,
            metadata: &[],
            scale: None,
        });
    }
    if let Some(scale) = subresources.get("scale").filter(|scale| scale.is_object()) {
        found.push(Subresource {
            name: "scale".into(),
            kind: "Scale".into(),
            group_version: Some(("autoscaling".into(), "v1".into())),
            verbs: PART_VERBS,
            metadata: &[],
            scale: Some(ScalePaths {
                spec_replicas: path(&scale["specReplicasPath"]),
                status_replicas: path(&scale["statusReplicasPath"]),
                selector: scale.get("labelSelectorPath").map(path),
            }),
        });
    }
    found
}

fn selectable_fields(version: &Value) -> Vec<Text> {
    let fields = version["selectableFields"].as_array().into_iter().flatten();
    fields.map(|field| path(&field["jsonPath"])).collect()
}

fn text(value: &Value) -> Text {
    value.as_str().unwrap_or("").to_owned().into()
}

fn texts(value: &Value) -> Vec<Text> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// A simple JSON path such as `.spec.replicas`, without its leading dot.
fn path(value: &Value) -> Text {
    value.as_str().unwrap_or("").trim_start_matches('.').to_owned().into()
}

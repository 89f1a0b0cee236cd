//! From a definition to resources, one a version.

use serde_json::Value;

use crate::resource::{Effect, Resource, ScalePaths, Subresource, Verb};
use crate::rules::Rules;
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

/// The resource of the storage version.
pub fn storage(definition: &Value) -> Option<Resource> {
    let version = versions_of(definition).find(|version| version["storage"] == true)?;
    Some(resource(definition, version))
}

/// The resources of the served versions.
pub fn served(definition: &Value) -> Vec<Resource> {
    let served = versions_of(definition).filter(|version| version["served"] == true);
    served.map(|version| resource(definition, version)).collect()
}

pub(super) fn versions_of(definition: &Value) -> impl Iterator<Item = &Value> {
    definition["spec"]["versions"].as_array().into_iter().flatten()
}

fn resource(definition: &Value, version: &Value) -> Resource {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let group = text(&spec["group"]);
    let plural = text(&names["plural"]);
    let schema = &version["schema"]["openAPIV3Schema"];
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
        schema: Schema::structural(schema),
        rules: &Rules::NONE,
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

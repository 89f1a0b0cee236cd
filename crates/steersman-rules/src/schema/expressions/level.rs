//! The rules of a schema by where they stand: a tree that leaves out what has no rules below it.

use std::collections::{BTreeMap, HashSet};
use std::marker::PhantomData;
use std::sync::Arc;

use serde_json::Value;
use steersman_cel::{Shape, ShapeKind, escape};

use super::rule::{self, Rule, Seen};

/// What the types of objects are called in messages.
pub(super) const SELF_TYPE: &str = "selfType";

/// One place in a schema.
pub(in crate::schema) struct Level {
    /// The type of the schema, which messages show instead of an object.
    pub(super) type_name: Box<str>,
    pub(super) rules: Vec<Rule>,
    /// Whether any of them speaks of what an object replaces.
    pub(super) uses_old: bool,
    pub(super) parts: Vec<Level>,
    pub(super) properties: BTreeMap<Box<str>, Level>,
    pub(super) additional: Option<Box<Level>>,
    pub(super) items: Option<Box<Level>>,
    /// By which fields items are known again, if they are.
    pub(super) list_keys: Option<Vec<Box<str>>>,
}

impl Level {
    /// The schema of a kind, or of a part of one.
    pub(in crate::schema) fn of_schema(schema: &Value, is_root: bool) -> Option<Self> {
        let shape = Shape::of_schema(schema, SELF_TYPE, is_root)?;
        Self::of(schema, schema, &Arc::new(shape))
    }

    /// The rules in one schema about what another one shapes: parts of `allOf` have rules and no
    /// shape.
    fn of(ruling: &Value, schema: &Value, shape: &Arc<Shape>) -> Option<Self> {
        let seen = Seen::of(shape);
        let rules = rule::all_of(ruling).filter_map(|it| Rule::new(it, schema, &seen));
        let rules: Vec<Rule> = rules.collect();
        let type_name = schema["type"].as_str().unwrap_or_default().into();
        let list_type = &schema["x-kubernetes-list-type"];
        let keys = || list_keys(schema).map(Box::from).collect();
        let mut level = Self {
            type_name,
            uses_old: rules.iter().any(|rule| rule.uses_old),
            rules,
            parts: Vec::new(),
            properties: BTreeMap::new(),
            additional: None,
            items: None,
            list_keys: (list_type == "map").then(keys),
        };
        if let ShapeKind::List(of, _) = &shape.kind {
            level.items = Self::of(&ruling["items"], &schema["items"], of).map(Box::new);
        }
        if let ShapeKind::Map(of) = &shape.kind {
            let [ruling, schema] = [ruling, schema].map(|it| &it["additionalProperties"]);
            level.additional = Self::of(ruling, schema, of).map(Box::new);
        }
        for (name, ruling) in ruling["properties"].as_object().into_iter().flatten() {
            let below = &schema["properties"][name];
            let Some(shape) = shape_of_property(shape, name, below) else { continue };
            if let Some(property) = Self::of(ruling, below, &shape) {
                level.properties.insert(name.as_str().into(), property);
            }
        }
        let parts = ruling["allOf"].as_array().into_iter().flatten();
        level.parts = parts.filter_map(|part| Self::of(part, schema, shape)).collect();
        let is_empty = level.rules.is_empty()
            && level.parts.is_empty()
            && level.properties.is_empty()
            && level.additional.is_none()
            && level.items.is_none();
        (!is_empty).then_some(level)
    }
}

/// The shape of a property: its parent's, or its own where no expression could name it.
pub(super) fn shape_of_property(parent: &Shape, name: &str, schema: &Value) -> Option<Arc<Shape>> {
    let ShapeKind::Object(object) = &parent.kind else { return None };
    match escape(name) {
        Some(escaped) => Some(Arc::clone(&object.fields.get(escaped.as_str())?.shape)),
        None => {
            let is_root = schema["x-kubernetes-embedded-resource"] == true;
            Shape::of_schema(schema, SELF_TYPE, is_root).map(Arc::new)
        }
    }
}

/// The schemas with rules, and those around them, each by where it lies in memory: asked of every
/// part of a schema, a walk over what is below it would be the most work of all.
pub(super) struct Ruled<'a> {
    schemas: HashSet<*const Value>,
    root: PhantomData<&'a Value>,
}

impl<'a> Ruled<'a> {
    pub(super) fn below(root: &'a Value) -> Self {
        let mut ruled = Self { schemas: HashSet::new(), root: PhantomData };
        ruled.look(root);
        ruled
    }

    /// Whether there are rules in a part of the schema or below it.
    pub(super) fn contains(&self, schema: &Value) -> bool {
        self.schemas.contains(&std::ptr::from_ref(schema))
    }

    /// Whether any of them has a rule. All are looked at.
    fn look_at_all<'b>(&mut self, schemas: impl IntoIterator<Item = &'b Value>) -> bool {
        let mut any = false;
        for schema in schemas {
            any |= self.look(schema);
        }
        any
    }

    fn look(&mut self, schema: &Value) -> bool {
        let Some(fields) = schema.as_object() else { return false };
        let mut is_ruled = rule::all_of(schema).next().is_some();
        for (word, below) in fields {
            is_ruled |= match (word.as_str(), below) {
                ("properties", Value::Object(properties)) => self.look_at_all(properties.values()),
                ("allOf", Value::Array(parts)) => self.look_at_all(parts),
                ("items" | "additionalProperties", below) => self.look(below),
                _ => false,
            };
        }
        if is_ruled {
            self.schemas.insert(std::ptr::from_ref(schema));
        }
        is_ruled
    }
}

/// Whether there are rules in a schema or below it.
pub(in crate::schema) fn has_rules(schema: &Value) -> bool {
    let below = |key: &str| has_rules(&schema[key]);
    schema.is_object()
        && (rule::all_of(schema).next().is_some()
            || schema["properties"].as_object().into_iter().flatten().any(|(_, it)| has_rules(it))
            || schema["allOf"].as_array().into_iter().flatten().any(has_rules)
            || below("items")
            || below("additionalProperties"))
}

/// The keys of a list that is a map.
pub(super) fn list_keys(schema: &Value) -> impl Iterator<Item = &str> {
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    keys.into_iter().flatten().filter_map(Value::as_str)
}

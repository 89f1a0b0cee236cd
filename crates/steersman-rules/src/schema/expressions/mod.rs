//! The rules of a definition: `x-kubernetes-validations`, written in CEL.
//!
//! When a definition is written, every expression is [checked](mod@check): it must compile against the
//! shape of its part of the schema, and must not cost too much for the largest object that
//! the schema allows. When an object is written, the rules are [evaluated](mod@evaluate) on it and, where
//! they speak of `oldSelf`, on what it replaces. In between stands a tree of [levels](level), made
//! when the first object comes: definitions that nobody uses keep only the text of their schema.

mod check;
mod costs;
mod evaluate;
mod field_path;
mod level;
mod rule;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use serde_json::Value;

pub(crate) use check::of_root as check;
pub use costs::{RuleCost, rule_costs};
pub(crate) use evaluate::Findings;
pub(crate) use field_path::resolved as resolved_field_path;
use level::Level;

/// The rules of a structural schema.
pub(super) struct Expressions {
    /// The schema, for when the rules are needed.
    schema: Box<str>,
    /// Whether it describes a resource, which has metadata.
    is_root: bool,
    root: OnceLock<Option<Level>>,
}

impl Expressions {
    /// The rules of a schema; `None` if it has none.
    pub(super) fn of(schema: &Value, is_root: bool) -> Option<Self> {
        let has_rules = level::has_rules(schema);
        has_rules.then(|| Self { schema: described(schema).into(), is_root, root: OnceLock::new() })
    }

    /// What the rules say of an object, and of how it differs from what it replaces.
    pub(super) fn evaluate(&self, new: &Value, old: Option<&Value>) -> Findings {
        let root = self.root.get_or_init(|| {
            let schema = serde_json::from_str(&self.schema).unwrap_or_default();
            Level::of_schema(&schema, self.is_root)
        });
        root.as_ref().map_or_else(Findings::default, |root| evaluate::evaluate(root, new, old))
    }
}

/// A schema without what only readers want of it, which is most of many.
fn described(schema: &Value) -> String {
    let mut schema = schema.clone();
    drop_descriptions(&mut schema);
    schema.to_string()
}

fn drop_descriptions(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    for text in ["description", "title", "example", "externalDocs"] {
        fields.remove(text);
    }
    for (key, below) in fields {
        match (key.as_str(), below) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(drop_descriptions);
            }
            ("items" | "additionalProperties" | "not", below) => drop_descriptions(below),
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                parts.iter_mut().for_each(drop_descriptions);
            }
            _ => {}
        }
    }
}

//! Whether the rules of a definition can be used: they compile, they do not cost too much, and speak
//! of `oldSelf` only where old and new can be told to belong together.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_cel::{REQUEST_BYTES_MAX, Shape, ShapeKind};

use super::level::{Ruled, SELF_TYPE, has_rules, shape_of_property};
use super::rule::{OLD_SELF, Seen, all_of, bool_of, first, message_of, not_made};
use crate::abandoned::is_abandoned;
use crate::field::{FieldError, FieldErrorKind, shown_as_json};

/// What one expression may cost for the largest object that the schema allows.
pub(super) const RULE_COST_MAX: u64 = 10_000_000;
/// What all of them may cost together.
pub(super) const SCHEMA_COST_MAX: u64 = 100_000_000;
/// How many of the most expensive are named.
const NAMED_MAX: usize = 4;

/// The mistakes in those rules of a schema that stand where it is sound otherwise.
pub(crate) fn of_root(
    schema: &Value,
    path: &str,
    is_sound: &dyn Fn(&Value) -> bool,
) -> Vec<FieldError> {
    if !has_rules(schema) {
        return Vec::new();
    }
    checked(schema, path, is_sound).finish(path)
}

/// What the rules of a schema can cost: where they stand, their texts, and the most. Or what is
/// wrong with them.
pub(super) fn estimates(schema: &Value) -> Result<Vec<(String, String, u64)>, Vec<FieldError>> {
    let mut check = checked(schema, "", &|_| true);
    let rules = std::mem::take(&mut check.rules);
    let is_broken = |error: &FieldError| {
        matches!(error.kind, FieldErrorKind::Invalid | FieldErrorKind::Internal)
    };
    let broken: Vec<FieldError> = check.errors.into_iter().filter(is_broken).collect();
    if broken.is_empty() { Ok(rules) } else { Err(broken) }
}

fn checked<'a>(schema: &'a Value, path: &str, is_sound: &'a dyn Fn(&Value) -> bool) -> Check<'a> {
    let mut check = Check {
        ruled: Ruled::below(schema),
        is_sound,
        errors: Vec::new(),
        rules: Vec::new(),
        total: 0,
        expensive: Vec::new(),
    };
    let shape = Shape::of_schema(schema, SELF_TYPE, true).map(Arc::new);
    let place = Place { path, cardinality: Some(1), uncorrelatable: None };
    check.schema(schema, shape.as_ref(), &place);
    check
}

struct Check<'a> {
    ruled: Ruled<'a>,
    /// Whether nothing else is wrong with a schema or below it. Elsewhere, what is said of rules would
    /// hardly help.
    is_sound: &'a dyn Fn(&Value) -> bool,
    errors: Vec<FieldError>,
    /// Where rules stand, their texts, and what they can cost.
    rules: Vec<(String, String, u64)>,
    total: u64,
    /// What cost how much, the most expensive first.
    expensive: Vec<(String, u64)>,
}

/// Where a schema stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    /// How often what it describes can occur in an object; unknown if nothing limits it.
    cardinality: Option<u64>,
    /// The nearest schema around it whose parts cannot be found again in a new version.
    uncorrelatable: Option<&'a str>,
}

impl Check<'_> {
    fn schema(&mut self, schema: &Value, shape: Option<&Arc<Shape>>, place: &Place<'_>) {
        if !self.ruled.contains(schema) {
            return;
        }
        self.children(schema, shape, place);
        if all_of(schema).next().is_none() || !(self.is_sound)(schema) {
            return;
        }
        match shape {
            Some(shape) => {
                let seen = Seen::of(shape);
                for (index, rule) in all_of(schema).enumerate() {
                    let at = format!("{}.x-kubernetes-validations[{index}]", place.path);
                    self.rule(rule, &seen, &at, place);
                }
            }
            None => {
                let field = format!("{}.x-kubernetes-validations", place.path);
                let why = "Internal error: internal error: failed to construct type information \
                           for x-kubernetes-validations rules: unable to convert structural \
                           schema to CEL declarations";
                let kind = FieldErrorKind::Internal;
                self.errors.push(FieldError { kind, field, text: why.to_owned() });
            }
        }
    }

    fn children(&mut self, schema: &Value, shape: Option<&Arc<Shape>>, place: &Place<'_>) {
        let cardinality = occurrences(schema).zip(place.cardinality);
        let cardinality = cardinality.map(|(times, outer)| times.saturating_mul(outer));
        let below = Place { cardinality, ..*place };
        let additional = &schema["additionalProperties"];
        if additional.is_object() {
            let path = format!("{}.additionalProperties", place.path);
            let of = shape.and_then(|shape| match &shape.kind {
                ShapeKind::Map(of) => Some(Arc::clone(of)),
                _ => None,
            });
            self.schema(additional, of.as_ref(), &Place { path: &path, ..below });
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if !self.ruled.contains(property) {
                continue;
            }
            let path = format!("{}.properties[{name}]", place.path);
            let of = shape.and_then(|shape| shape_of_property(shape, name, property));
            self.schema(property, of.as_ref(), &Place { path: &path, ..below });
        }
        if schema["items"].is_object() {
            let path = format!("{}.items", place.path);
            let of = shape.and_then(|shape| match &shape.kind {
                ShapeKind::List(of, _) => Some(Arc::clone(of)),
                _ => None,
            });
            let is_map = schema["x-kubernetes-list-type"] == "map";
            let uncorrelatable = match place.uncorrelatable {
                None if !is_map => Some(place.path),
                outer => outer,
            };
            let place = Place { path: &path, uncorrelatable, ..below };
            self.schema(&schema["items"], of.as_ref(), &place);
        }
    }

    fn rule(&mut self, rule: &Value, seen: &Seen<'_>, at: &str, place: &Place<'_>) {
        let Some(text) = rule["rule"].as_str().filter(|text| !text.trim().is_empty()) else {
            return;
        };
        let field = format!("{at}.rule");
        let env = seen.environment(rule);
        let compiled = match is_abandoned() {
            true => Err("not checked in time".to_owned()),
            false => bool_of(env, text),
        };
        let compiled = compiled.and_then(|it| match it.program() {
            Ok(_) => Ok(it),
            Err(why) => Err(not_made(&why)),
        });
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(why) => {
                self.errors.push(uncompilable(field, rule, &why));
                self.unused_option(rule, at);
                return;
            }
        };
        let times = place.cardinality.unwrap_or(REQUEST_BYTES_MAX / (seen.shape.bytes_min + 1));
        let cost = compiled.estimate().max.saturating_mul(times);
        self.rules.push((at.trim_start_matches('.').to_owned(), text.to_owned(), cost));
        self.cost("estimated rule cost", &field, cost);
        match message_of(env, rule) {
            None => {}
            Some(Err(why)) => {
                let field = format!("{at}.messageExpression");
                self.errors.push(uncompilable(field, rule, &why));
            }
            Some(Ok(message)) => {
                let field = format!("{at}.messageExpression");
                if let Err(why) = message.program() {
                    let why = format!("messageExpression instantiation failed: {}", first(&why));
                    self.errors.push(uncompilable(field.clone(), rule, &why));
                }
                self.cost("estimated messageExpression cost", &field, message.estimate().max);
            }
        }
        if !compiled.uses(OLD_SELF) {
            self.unused_option(rule, at);
        } else if let Some(outer) = place.uncorrelatable {
            let why = format!(
                "oldSelf cannot be used on the uncorrelatable portion of the schema within {outer}"
            );
            self.errors.push(FieldError::invalid(field, &rule["rule"], &why));
        }
    }

    fn unused_option(&mut self, rule: &Value, at: &str) {
        let option = &rule["optionalOldSelf"];
        if !option.is_null() {
            let why = "may not be set if oldSelf is not used in rule";
            let field = format!("{at}.optionalOldSelf");
            self.errors.push(FieldError::invalid(field, option, why));
        }
    }

    fn cost(&mut self, name: &str, field: &str, cost: u64) {
        if cost > RULE_COST_MAX {
            self.errors
                .push(FieldError::forbidden(field, &too_expensive(name, cost, RULE_COST_MAX)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_COST_MAX / 100 {
            self.expensive.push((field.to_owned(), cost));
            self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.expensive.truncate(NAMED_MAX);
        }
    }

    fn finish(mut self, path: &str) -> Vec<FieldError> {
        if self.total > SCHEMA_COST_MAX {
            for (field, _) in &self.expensive {
                let why = "contributed to estimated rule cost total exceeding cost limit for \
                           entire OpenAPIv3 schema";
                self.errors.push(FieldError::forbidden(field.as_str(), why));
            }
            let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 \
                        schema";
            let why = too_expensive(name, self.total, SCHEMA_COST_MAX);
            self.errors.push(FieldError::forbidden(path, &why));
        }
        self.errors
    }
}

/// A limit that a schema sets; what is below zero is zero.
fn limit(schema: &Value, name: &str) -> Option<u64> {
    schema[name].as_i64().map(|limit| u64::try_from(limit).unwrap_or(0))
}

/// How often what is in a schema can occur in what it describes.
fn occurrences(schema: &Value) -> Option<u64> {
    match schema["type"].as_str() {
        Some("object") if !schema["additionalProperties"].is_null() => {
            limit(schema, "maxProperties")
        }
        Some("array") => limit(schema, "maxItems"),
        _ => Some(1),
    }
}

fn too_expensive(name: &str, cost: u64, max: u64) -> String {
    let factor = cost as f64 / max as f64;
    let factor = match factor {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, \
         maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// An expression of a rule does not compile. Kubernetes shows the whole rule.
fn uncompilable(field: String, rule: &Value, why: &str) -> FieldError {
    let text = |field: &str| shown_as_json(&json!(rule[field].as_str().unwrap_or_default()));
    let text = format!(
        "Invalid value: {{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\
         \"FieldPath\":{},\"OptionalOldSelf\":{}}}: {why}",
        text("rule"),
        text("message"),
        text("messageExpression"),
        shown_as_json(&rule["reason"]),
        text("fieldPath"),
        rule["optionalOldSelf"],
    );
    FieldError { kind: FieldErrorKind::Invalid, field, text }
}

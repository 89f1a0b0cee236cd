//! What the rules of a schema cost, for their authors to ask: what each can cost at most, by which a
//! definition is accepted, and what it costs on an object.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use steersman_cel::{Budget, PER_CALL_LIMIT, RUNTIME_BUDGET, Shape, ShapeKind};

use super::super::correlation::Items;
use super::check::{self, RULE_COST_MAX, SCHEMA_COST_MAX};
use super::evaluate::activation;
use super::level::{SELF_TYPE, list_keys, shape_of_property};
use super::rule::{Rule, Seen, all_of};
use crate::field::FieldError;

/// What one rule costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCost {
    /// Where it stands in the schema, such as `properties[spec].x-kubernetes-validations[0]`.
    pub at: String,
    /// Its text.
    pub rule: String,
    /// What it can cost on the largest object that the schema allows, all times together.
    pub estimated: u64,
    /// What it costs on the object that was asked about, all times together.
    pub actual: u64,
    /// The most that one of those times costs.
    pub actual_max: u64,
    /// How often it is evaluated on that object.
    pub evaluations: u64,
}

impl RuleCost {
    /// What a rule may cost by estimate; a definition with one that can cost more is refused.
    pub const ESTIMATED_MAX: u64 = RULE_COST_MAX;
    /// What all rules of a schema may cost together by estimate.
    pub const ESTIMATED_TOTAL_MAX: u64 = SCHEMA_COST_MAX;
    /// What a rule may cost at one place of an object.
    pub const ACTUAL_MAX: u64 = PER_CALL_LIMIT;
    /// What all rules may cost together on one object.
    pub const ACTUAL_TOTAL_MAX: u64 = RUNTIME_BUDGET;
}

/// What the rules of a schema cost on an object, and on how it differs from what it replaces; or
/// what is wrong with them.
pub fn rule_costs(
    schema: &Value,
    object: &Value,
    old: Option<&Value>,
) -> Result<Vec<RuleCost>, Vec<String>> {
    let told = |mistakes: Vec<FieldError>| -> Vec<String> {
        mistakes.iter().map(FieldError::message).collect()
    };
    let estimates = check::estimates(schema).map_err(told)?;
    let mut actual = Actual::default();
    if let Some(shape) = Shape::of_schema(schema, SELF_TYPE, true) {
        actual.schema(schema, &Arc::new(shape), Pair { new: object, old }, "");
    }
    let costs = estimates.into_iter().map(|(at, rule, estimated)| {
        let Spent { total, most, times } = actual.0.remove(&at).unwrap_or_default();
        RuleCost { at, rule, estimated, actual: total, actual_max: most, evaluations: times }
    });
    Ok(costs.collect())
}

/// What was spent on a rule.
#[derive(Default)]
struct Spent {
    total: u64,
    most: u64,
    times: u64,
}

/// What was spent, by where rules stand.
#[derive(Default)]
struct Actual(HashMap<String, Spent>);

/// A value and what it replaces.
#[derive(Clone, Copy)]
struct Pair<'a> {
    new: &'a Value,
    old: Option<&'a Value>,
}

impl Actual {
    fn schema(&mut self, schema: &Value, shape: &Arc<Shape>, pair: Pair<'_>, path: &str) {
        if pair.new.is_null() {
            return;
        }
        let dot = if path.is_empty() { "" } else { "." };
        for (index, rule) in all_of(schema).enumerate() {
            let at = format!("{path}{dot}x-kubernetes-validations[{index}]");
            self.rule(rule, schema, shape, pair, at);
        }
        match (&shape.kind, pair.new) {
            (ShapeKind::List(of, _), Value::Array(items)) => {
                let keys: Vec<&str> = list_keys(schema).collect();
                let is_map = schema["x-kubernetes-list-type"] == "map";
                let before = pair.old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let before = Items::new(is_map.then_some(&keys[..]), before);
                for item in items {
                    let pair = Pair { new: item, old: before.like(item) };
                    self.schema(&schema["items"], of, pair, &format!("{path}{dot}items"));
                }
            }
            (ShapeKind::Map(of), Value::Object(map)) => {
                let path = format!("{path}{dot}additionalProperties");
                for (key, new) in map {
                    let pair = Pair { new, old: pair.old.and_then(|old| old.get(key)) };
                    self.schema(&schema["additionalProperties"], of, pair, &path);
                }
            }
            (_, Value::Object(map)) => {
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    let shape = shape_of_property(shape, name, property);
                    let Some((new, shape)) = map.get(name).zip(shape) else { continue };
                    let pair = Pair { new, old: pair.old.and_then(|old| old.get(name)) };
                    let path = format!("{path}{dot}properties[{name}]");
                    self.schema(property, &shape, pair, &path);
                }
            }
            _ => {}
        }
    }

    fn rule(
        &mut self,
        rule: &Value,
        schema: &Value,
        shape: &Arc<Shape>,
        pair: Pair<'_>,
        at: String,
    ) {
        let Some(rule) = Rule::new(rule, schema, &Seen::of(shape)) else { return };
        let old = pair.old.filter(|old| !old.is_null());
        let is_asked = !rule.uses_old || old.is_some() || rule.optional_old;
        let Some(program) = rule.program.as_ref().ok().filter(|_| is_asked) else { return };
        let outcome = program.evaluate(&activation(&rule, pair.new, old), Budget::default());
        let spent = self.0.entry(at).or_default();
        spent.total = spent.total.saturating_add(outcome.cost);
        spent.most = spent.most.max(outcome.cost);
        spent.times += 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{RuleCost, rule_costs};

    #[test]
    fn a_rule_costs_what_it_is_evaluated_to_and_can_cost_what_the_schema_allows() {
        let schema = json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "x-kubernetes-validations": [{"rule": "self.names.all(n, n.size() < 5)"}],
            "properties": {"names": {
                "type": "array", "maxItems": 100,
                "items": {
                    "type": "string", "maxLength": 10,
                    "x-kubernetes-validations": [
                        {"rule": "self != 'x'"},
                        {"rule": "self == oldSelf"},
                    ],
                },
            }},
        }}});
        let names = |count: usize| json!({"spec": {"names": vec!["ab"; count]}});
        let of = |count: usize| rule_costs(&schema, &names(count), None);
        // It cannot be known which item was which.
        let why = of(1).unwrap_err();
        assert!(why[0].contains("oldSelf cannot be used"), "{why:?}");
        let mut schema = schema.clone();
        let items = &mut schema["properties"]["spec"]["properties"]["names"]["items"];
        items["x-kubernetes-validations"].as_array_mut().unwrap().pop();
        let of = |count: usize| rule_costs(&schema, &names(count), None).unwrap();
        let [few, many] = [of(2), of(50)];
        let at: Vec<&str> = few.iter().map(|cost| cost.at.as_str()).collect();
        let items = "properties[spec].properties[names].items.x-kubernetes-validations[0]";
        assert_eq!(at, [items, "properties[spec].x-kubernetes-validations[0]"]);
        assert_eq!(few[0].rule, "self != 'x'");
        assert_eq!((few[0].evaluations, many[0].evaluations), (2, 50));
        assert_eq!((few[1].evaluations, many[1].evaluations), (1, 1));
        assert!(many[1].actual > 20 * few[1].actual, "{many:?} {few:?}");
        for (few, many) in few.iter().zip(&many) {
            assert_eq!(few.estimated, many.estimated);
            assert!(many.actual <= many.estimated, "{many:?}");
            assert!(many.actual_max <= RuleCost::ACTUAL_MAX);
        }
    }
}

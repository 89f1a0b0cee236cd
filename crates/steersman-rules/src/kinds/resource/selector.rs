//! What selects devices: what an expression may say, and how much it may cost.
//!
//! Expressions see one device as `device`. How long what they see of it can get, the kinds of this
//! group limit, and from that follows what an expression can cost at most.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use serde_json::Value;
use steersman_cel::{Env, Field, Library, ObjectShape, Shape, ShapeKind, Type};

use super::device::{LIST_MAX, at_most};
use crate::rules::at::{At, Errors};

const BYTES_MAX: usize = 10 * 1024;
const COST_MAX: u64 = 1_000_000;
const DRIVER_MAX: u64 = 63;
const VALUE_MAX: u64 = 64;

static LIBRARIES: LazyLock<Env> = LazyLock::new(|| Env::kubernetes_with(&[Library::Bindings]));

/// The mistakes in what selects devices. What is stored already was looked at when it came.
pub(super) fn selectors(part: &At<'_, '_>, stored: &Value, errors: &mut Errors) {
    let list = part.at("selectors");
    if !at_most(&list, LIST_MAX, errors) {
        return;
    }
    let is_stored = !stored.is_null() && list.value == stored;
    for selector in list.items() {
        let cel = selector.at("cel");
        if cel.is_absent() {
            errors.push(cel.required(""));
        } else if !is_stored {
            check(&cel.at("expression"), errors);
        }
    }
}

/// The mistakes in an expression that is new.
fn check(expression: &At<'_, '_>, errors: &mut Errors) {
    let text = expression.text();
    if text.len() > BYTES_MAX {
        errors.push(expression.too_long(BYTES_MAX));
        return;
    }
    match cost(text) {
        Err(why) => errors.push(expression.invalid_value(text, &why)),
        Ok(cost) if cost > COST_MAX => {
            errors.push(expression.forbidden("too complex, exceeds cost limit"));
        }
        Ok(_) => {}
    }
}

/// What an expression costs at most, or why it is none that selects devices.
fn cost(expression: &str) -> Result<u64, String> {
    let env = LIBRARIES.clone().variable("device", device(expression));
    let checked =
        env.check(expression).map_err(|issues| format!("compilation failed: {issues}"))?;
    match checked.result_type() {
        Type::Bool | Type::Dyn => Ok(checked.estimate().max),
        other => Err(format!("must evaluate to bool or the unknown type, not {other}")),
    }
}

/// What an expression sees.
fn device(expression: &str) -> Shape {
    let by_domain = |of: Type| Type::map(Type::String, Type::map(Type::String, of));
    let list_max = LIST_MAX as u64;
    let capacities = Shape::map(Shape::new(ShapeKind::Dyn)).at_most(list_max);
    let fields = [
        ("driver", Type::String, Shape::new(ShapeKind::String).at_most(DRIVER_MAX)),
        ("allowMultipleAllocations", Type::Bool, Shape::new(ShapeKind::Dyn).at_most(1)),
        ("attributes", by_domain(Type::Dyn), Shape::map(attributes(expression)).at_most(list_max)),
        (
            "capacity",
            by_domain(Type::named("kubernetes.Quantity")),
            Shape::map(capacities).at_most(list_max),
        ),
    ];
    object("kubernetes.DRADevice", fields)
}

/// The attributes of one domain. They have names that the expression itself makes up, and whatever
/// it calls them, they are no longer than the longest; so each of its words is declared as one.
fn attributes(expression: &str) -> Shape {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: BTreeSet<&str> = expression.split(|c: char| !is_part(c)).collect();
    let names = words.into_iter().filter(|word| !word.is_empty()).chain(["@values"]);
    let value = Shape::new(ShapeKind::Dyn).at_most(VALUE_MAX);
    // It is a type that no expression can name.
    object("@attributes", names.map(|name| (name, Type::Dyn, value.clone())))
}

fn object<'a>(name: &str, fields: impl IntoIterator<Item = (&'a str, Type, Shape)>) -> Shape {
    let field = |(name, ty, shape): (&str, Type, Shape)| {
        let name: Arc<str> = name.into();
        (Arc::clone(&name), Field { json: name, shape: Arc::new(shape), ty })
    };
    let fields = fields.into_iter().map(field).collect();
    Shape::new(ShapeKind::Object(Arc::new(ObjectShape { name: name.into(), fields, open: false })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_of_kubernetes() {
        let dra = "device.attributes[\"dra.example.com\"]";
        for (expression, expected) in [
            ("\"dra.example.com\" in device.attributes".to_owned(), 3),
            ("device.driver == \"\"".into(), 2),
            ("device.driver == \"dra.example.com\"".into(), 4),
            (format!("{dra}.name"), 4),
            (format!("{dra}[\"name\"]"), 4),
            (format!("cel.bind(dra, {dra}, dra.name)"), 15),
            (format!("{dra}.name > 0"), 5),
            (format!("{dra}.name == \"fish\""), 5),
            (format!("{dra}.name.isGreaterThan(semver(\"0.0.1\"))"), 6),
            (
                "device.capacity[\"dra.example.com\"].name.isGreaterThan(quantity(\"1Ki\"))".into(),
                6,
            ),
            (format!("{dra}.a && {dra}.b && {dra}.c"), 12),
            (format!("{dra}.services.split(\"example\").size() >= 2"), 19),
            (format!("{dra}.services.matches(\"[^a]?sym\")"), 18),
            ("device.allowMultipleAllocations == true".into(), 3),
        ] {
            assert_eq!(cost(&expression), Ok(expected), "{expression}");
        }
    }

    #[test]
    fn what_selects_no_devices_is_told() {
        for (expression, expected) in [
            ("1", "must evaluate to bool or the unknown type, not int"),
            ("[1]", "must evaluate to bool or the unknown type, not list(int)"),
            (
                "device.foo",
                "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo\n | ......^",
            ),
            (
                "device.driver.includes('a')",
                "compilation failed: ERROR: <input>:1:23: undeclared reference to 'includes' (in \
                 container '')\n | device.driver.includes('a')\n | ......................^",
            ),
        ] {
            assert_eq!(cost(expression), Err(expected.to_owned()), "{expression}");
        }
        for expression in ["", "1 +", "true || ", "?!"] {
            let why = cost(expression).unwrap_err();
            assert!(why.starts_with("compilation failed: ERROR: <input>:1:"), "{why}");
            assert!(why.contains("Syntax error: "), "{why}");
        }
    }
}

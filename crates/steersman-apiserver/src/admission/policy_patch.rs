//! What a mutation makes of an object.

use serde_json::{Map, Value, json};
use steersman_cel::{self as cel, RUNTIME_BUDGET};
use steersman_rules::admission_policy::{Mutation, Policy};
use steersman_rules::apply::lay_over;
use steersman_rules::patch::json_patch;
use steersman_rules::schema::Schema;

use super::conditions::OUT_OF_BUDGET;
use super::policy_evaluation::{Composition, Inputs, OutOfBudget};

/// The object as a mutation leaves it, or why it cannot be changed. `object` is what it was before.
pub(super) fn patched(
    policy: &Policy,
    mutation: &Mutation,
    object: &Value,
    inputs: Inputs<'_>,
    schema: &Schema,
) -> Result<Value, String> {
    let expression = mutation.expression();
    if let Err(why) = &expression.program {
        return Err(why.clone());
    }
    let composition = Composition::new(policy, inputs);
    let value = composition.evaluate(expression, &mut { RUNTIME_BUDGET });
    let value = value.map_err(|OutOfBudget| OUT_OF_BUDGET.to_owned())??;
    match mutation {
        Mutation::ApplyConfiguration(_) => applied(&value, object, schema),
        Mutation::JsonPatch(_) => operated(&value, object),
    }
}

fn applied(value: &cel::Value<'_>, object: &Value, schema: &Schema) -> Result<Value, String> {
    check_type_names(value)?;
    let unsupported = || {
        let found = value.type_of();
        format!("unsupported return type from ApplyConfiguration expression: {}", found.name())
    };
    let mut configuration = value.to_json().filter(Value::is_object).ok_or_else(unsupported)?;
    for field in ["apiVersion", "kind"] {
        configuration[field].clone_from(&object[field]);
    }
    lay_over(schema, object, &configuration).map_err(|why| format!("error applying patch: {why}"))
}

fn operated(value: &cel::Value<'_>, object: &Value) -> Result<Value, String> {
    let cel::Value::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut operations = Vec::with_capacity(list.len());
    for item in list.iter() {
        operations.push(operation(&item.map_err(|error| error.to_string())?)?);
    }
    let patch = Value::Array(operations).to_string();
    match json_patch(object, patch.as_bytes()) {
        Ok(patched) => Ok(patched),
        // A test that fails leaves the object alone.
        Err(why) if why.to_string().ends_with("test failed") => Ok(object.clone()),
        Err(why) => Err(format!("JSON Patch: {why}")),
    }
}

fn operation(item: &cel::Value<'_>) -> Result<Value, String> {
    let cel::Value::Struct(operation) = item else {
        return Err(
            "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch"
                .to_owned(),
        );
    };
    let mut fields = Map::new();
    for field in ["op", "path", "from"] {
        let text = operation.fields.get(field).and_then(cel::Value::as_str).unwrap_or_default();
        if field != "from" || !text.is_empty() {
            fields.insert(field.to_owned(), json!(text));
        }
    }
    if let Some(value) = operation.fields.get("value") {
        check_type_names(value)?;
        let json = value.to_json().ok_or_else(|| {
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON".to_owned()
        })?;
        fields.insert("value".to_owned(), json);
    }
    Ok(Value::Object(fields))
}

/// Refuses an object in which a part is of a type that is named after another place.
fn check_type_names(value: &cel::Value<'_>) -> Result<(), String> {
    let cel::Value::Struct(object) = value else { return Ok(()) };
    let mut wrong = Vec::new();
    find_misnamed(value, &object.shape.name, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(format!("type mismatch: {}", wrong.join("\n"))) }
}

fn find_misnamed(value: &cel::Value<'_>, expected: &str, wrong: &mut Vec<String>) {
    match value {
        cel::Value::Struct(object) => {
            if *object.shape.name != *expected {
                wrong.push(format!(
                    "unexpected type name {:?}, expected {expected:?}, which matches field name \
                     path from root Object type",
                    object.shape.name
                ));
            }
            for (field, value) in &object.fields {
                find_misnamed(value, &format!("{expected}.{field}"), wrong);
            }
        }
        cel::Value::List(list) => {
            list.iter().flatten().for_each(|item| find_misnamed(&item, expected, wrong));
        }
        cel::Value::Map(cel::Map::Owned(entries)) => {
            entries.values().for_each(|(_, value)| find_misnamed(value, expected, wrong));
        }
        _ => {}
    }
}

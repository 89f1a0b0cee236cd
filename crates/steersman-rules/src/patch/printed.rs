//! Values as Go prints them, which is how messages about patches show them.

use serde_json::Value;

/// As `%v` prints a decoded document: `map[name:web ports:[80 443]]`.
pub fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, value)| format!("{key}:{}", printed(value)));
            format!("map[{}]", pairs.collect::<Vec<_>>().join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// As `%s` prints it, which says of what is no text that it is none.
pub(super) fn printed_as_text(value: &Value) -> String {
    match value {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("%!s({}={value})", printed_type(value)),
        value => printed(value),
    }
}

/// The type of a decoded value, as `%T` prints it.
pub fn printed_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

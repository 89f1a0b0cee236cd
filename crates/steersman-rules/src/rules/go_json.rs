//! JSON within a text, as Go reads it into a type: what does not fit is told in Go's words.

use serde_json::Value;

use crate::body::{json, syntax};

/// What a type is written as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `{…}`
    Object,
    /// `[…]`, each item of which is an object of the type named.
    Objects(&'static str),
}

/// Why a text cannot be read into a Go type; `None` if it can, as far as its shape goes. Null can
/// be read into anything.
pub(crate) fn mistake(text: &[u8], shape: Shape, of: &str) -> Option<String> {
    if let Some(why) = syntax::mistake(text) {
        return Some(why);
    }
    let found = match text.iter().find(|byte| !byte.is_ascii_whitespace())? {
        b'{' if shape == Shape::Object => return None,
        b'[' if shape != Shape::Object => return None,
        b'n' => return None,
        b'{' => "object",
        b'[' => "array",
        b'"' => "string",
        b't' | b'f' => "bool",
        _ => "number",
    };
    Some(unfit(found, of))
}

/// Reads a text into a Go type, or says why that cannot be.
pub(crate) fn read(text: &str, shape: Shape, of: &str) -> Result<Value, String> {
    if let Some(why) = mistake(text.as_bytes(), shape, of) {
        return Err(why);
    }
    let (value, _) = json::plain(text.as_bytes()).map_err(|error| error.to_string())?;
    if let Shape::Objects(item) = shape {
        let odd = value.as_array().into_iter().flatten().find_map(|value| match value {
            Value::Object(_) | Value::Null => None,
            Value::Array(_) => Some("array"),
            Value::String(_) => Some("string"),
            Value::Bool(_) => Some("bool"),
            Value::Number(_) => Some("number"),
        });
        if let Some(found) = odd {
            return Err(unfit(found, item));
        }
    }
    Ok(value)
}

fn unfit(found: &str, of: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {of}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_told_as_go_tells_it() {
        for (text, expected) in [
            ("zz", "invalid character 'z' looking for beginning of value"),
            ("[{", "unexpected end of JSON input"),
            ("{}", "json: cannot unmarshal object into Go value of type []core.Taint"),
            (" \"a\"", "json: cannot unmarshal string into Go value of type []core.Taint"),
            ("[{}, 1]", "json: cannot unmarshal number into Go value of type core.Taint"),
        ] {
            let read = read(text, Shape::Objects("core.Taint"), "[]core.Taint");
            assert_eq!(read.unwrap_err(), expected, "{text}");
        }
        assert_eq!(read("null", Shape::Objects("a"), "[]a").unwrap(), json!(null));
        assert_eq!(read(" {\"a\":1}", Shape::Object, "a").unwrap(), json!({"a": 1}));
    }
}

//! `fieldPath`: where a rule's failure is told, as a JSON path of fields and keys.

use std::fmt::Write as _;

use serde_json::Value;

/// A path as errors show it, if it leads to a field of a schema.
pub(crate) fn resolved(schema: &Value, path: &str) -> Option<String> {
    let mut shown = String::new();
    let mut schema = schema;
    for name in steps(path)? {
        if let Value::Object(properties) = &schema["properties"] {
            let dot = if shown.is_empty() { "" } else { "." };
            let _ = write!(shown, "{dot}{name}");
            schema = properties.get(&name)?;
        } else {
            let _ = write!(shown, "[{name}]");
            schema = Some(&schema["additionalProperties"]).filter(|below| below.is_object())?;
        }
    }
    Some(shown)
}

/// `.spec['a.b'].c` as `spec`, `a.b`, `c`.
fn steps(path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['") {
            let end = end_of_quoted(quoted)?;
            steps.push(unescaped(&quoted[..end])?);
            rest = quoted[end + 1..].strip_prefix(']')?;
        } else {
            let named = rest.strip_prefix('.')?;
            let end = named.find(['.', '[', ']']).unwrap_or(named.len());
            let name = Some(&named[..end]).filter(|name| !name.is_empty())?;
            steps.push(name.to_owned());
            rest = &named[end..];
        }
    }
    Some(steps)
}

/// Where the quote is that ends a text.
fn end_of_quoted(text: &str) -> Option<usize> {
    let is_escaped = |at: usize| at > 0 && text.as_bytes()[at - 1] == b'\\';
    text.match_indices('\'').map(|(at, _)| at).find(|at| !is_escaped(*at))
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            quoted @ ('\'' | '\\') => quoted,
            _ => return None,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::resolved;

    #[test]
    fn paths_lead_to_fields_of_the_schema() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a.b": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            }},
        }});
        for (path, shown) in [
            (".spec", "spec"),
            (".spec['a.b']", "spec.a.b"),
            (".spec.labels['x']", "spec.labels[x]"),
            (".spec.labels.x", "spec.labels[x]"),
        ] {
            assert_eq!(resolved(&schema, path).as_deref(), Some(shown), "{path}");
        }
        for path in
            ["spec", ".spec.", ".other", ".spec[0]", ".spec['a.b'", ".spec.labels.x.y", ".."]
        {
            assert_eq!(resolved(&schema, path), None, "{path}");
        }
    }
}

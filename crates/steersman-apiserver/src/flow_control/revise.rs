//! What the server makes of a level or schema that somebody has changed.

use serde_json::Value;
use steersman_rules::metadata;

use crate::fairness::defaults::{AUTO_UPDATE, MANDATORY};

/// The object as it should be; `None` if it is.
pub(super) fn revised(wanted: &Value, object: &Value) -> Option<Value> {
    let update = is_kept(object);
    let spec = update.then(|| spec(wanted, object)).filter(|spec| *spec != object["spec"]);
    let annotation = &object["metadata"]["annotations"][AUTO_UPDATE];
    let told = annotation.as_str().and_then(parse_bool) == Some(update);
    if spec.is_none() && told {
        return None;
    }
    let mut new = object.clone();
    if let Some(spec) = spec {
        new["spec"] = spec;
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(0);
        metadata::set(&mut new, "generation", Some((generation + 1).into()));
    }
    if !told {
        new["metadata"]["annotations"][AUTO_UPDATE] = update.to_string().into();
    }
    Some(new)
}

/// Whether the server decides what an object says.
fn is_kept(object: &Value) -> bool {
    if MANDATORY.contains(&metadata::text(object, "name")) {
        return true;
    }
    let said = object["metadata"]["annotations"][AUTO_UPDATE].as_str().and_then(parse_bool);
    said.unwrap_or(object["metadata"]["generation"] == 1)
}

/// What an object should say. How many seats the exempt take, and lend, is for others to decide.
fn spec(wanted: &Value, object: &Value) -> Value {
    let mut spec = wanted["spec"].clone();
    if spec["type"] == "Exempt" && object["spec"]["exempt"].is_object() {
        spec["exempt"] = object["spec"]["exempt"].clone();
    }
    spec
}

/// A boolean as Go reads it.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::revised;
    use crate::fairness::defaults::AUTO_UPDATE;

    fn object(name: &str, annotation: Option<&str>, generation: i64, spec: &Value) -> Value {
        json!({
            "metadata": {
                "name": name, "generation": generation,
                "annotations": annotation.map(|value| json!({AUTO_UPDATE: value})),
            },
            "spec": spec,
        })
    }

    #[test]
    fn what_is_suggested_is_kept_unless_somebody_says_or_does_otherwise() {
        let spec = json!({"type": "Limited", "limited": {"lendablePercent": 1}});
        let other = json!({"type": "Limited", "limited": {"lendablePercent": 2}});
        let wanted = object("system", Some("true"), 1, &spec);
        // The annotation, the generation, whether the spec is another one, and what becomes of
        // the annotation and the spec.
        for (annotation, generation, changed, expected) in [
            (Some("true"), 1, false, None),
            (Some("true"), 5, true, Some(("true", &spec))),
            (Some("false"), 5, true, None),
            (None, 1, true, Some(("true", &spec))),
            (None, 2, true, Some(("false", &other))),
            (Some("odd"), 1, false, Some(("true", &spec))),
        ] {
            let stored =
                object("system", annotation, generation, if changed { &other } else { &spec });
            let new = revised(&wanted, &stored);
            let told = new.as_ref().map(|new| {
                let annotation = new["metadata"]["annotations"][AUTO_UPDATE].as_str().unwrap();
                (annotation, &new["spec"])
            });
            assert_eq!(told, expected, "{annotation:?} {generation} {changed}");
        }
    }

    #[test]
    fn what_is_mandatory_is_put_right_but_for_what_the_exempt_take() {
        let spec = json!({"type": "Exempt", "exempt": {"lendablePercent": 0}});
        let wanted = object("exempt", Some("true"), 1, &spec);
        let seats = json!({"type": "Exempt", "exempt": {"lendablePercent": 50}});
        assert_eq!(revised(&wanted, &object("exempt", Some("true"), 2, &seats)), None);
        let wrong = json!({"type": "Limited"});
        let new = revised(&wanted, &object("exempt", Some("false"), 2, &wrong)).unwrap();
        assert_eq!(new["spec"], spec);
        assert_eq!(new["metadata"]["generation"], 3);
        assert_eq!(new["metadata"]["annotations"][AUTO_UPDATE], "true");
    }
}

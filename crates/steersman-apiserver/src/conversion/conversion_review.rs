//! `ConversionReview`: objects to a webhook, and back in another version.
//!
//! The webhook may change everything but who an object is: of its metadata only labels and
//! annotations are taken from the answer.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::patch::{json_type, printed_type};
use steersman_rules::{metadata, names};
use tokio::time::Instant;

use crate::metrics::Conversion;
use crate::state::Server;
use crate::status::{Result, Status};
use crate::webhook_client::{CONVERSION_REVIEW, Converter};

/// How long a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How many objects are converted at once.
const BATCH: usize = 500;

impl Converter {
    /// The objects in another version, in their order.
    pub(super) async fn convert(
        &self,
        server: &Server,
        objects: Vec<Value>,
        api_version: &str,
    ) -> Result<Vec<Value>> {
        let mut converted = Vec::with_capacity(objects.len());
        for batch in objects.chunks(BATCH) {
            converted.extend(self.convert_batch(server, batch, api_version).await?);
        }
        Ok(converted)
    }

    async fn convert_batch(
        &self,
        server: &Server,
        objects: &[Value],
        api_version: &str,
    ) -> Result<Vec<Value>> {
        let Some(first) = objects.first() else { return Ok(Vec::new()) };
        let began = Instant::now();
        let answer = self.ask(server, objects, api_version).await;
        let took = began.elapsed();
        let metrics = &server.metrics.conversions;
        metrics.asked(answer.as_ref().err().map(|failure| failure.kind), took);
        let stored = first["apiVersion"].as_str().unwrap_or_default();
        let conversion = Conversion {
            definition: &self.definition,
            from: version_of(stored),
            to: version_of(api_version),
            succeeded: answer.is_ok(),
        };
        metrics.converted(conversion, took);
        answer.map_err(|failure| Status::failure(failure.why))
    }

    async fn ask(
        &self,
        server: &Server,
        objects: &[Value],
        api_version: &str,
    ) -> Result<Vec<Value>, Failure> {
        let what = kind_of(objects.first().unwrap_or(&Value::Null));
        let failed = |kind: &'static str, why: &str| {
            let why = format!("conversion webhook for {what} failed: {why}");
            Failure { kind, why }
        };
        let Some(review) = self.review_version else {
            let why = "no supported conversion review versions".to_owned();
            return Err(Failure { kind: Failure::CALL, why });
        };
        let uid = server.random.uid();
        let question = json!({
            "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{review}"),
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": objects},
        });
        let answer = server
            .origins
            .post(&*server.store, &self.target, &question, TIMEOUT)
            .await
            .map_err(|error| failed(Failure::CALL, &error.to_string()))?;
        if let Some(why) = CONVERSION_REVIEW.mistake(review, &answer) {
            return Err(failed(Failure::CALL, &why));
        }
        let converted =
            read(review, &uid, answer).map_err(|why| failed(Failure::MALFORMED, &why))?;
        if converted.len() != objects.len() {
            let why = format!(
                "conversion webhook for {what} returned {} objects, expected {}",
                converted.len(),
                objects.len()
            );
            return Err(Failure { kind: Failure::PARTIAL, why });
        }
        let invalid = |why: String| Failure { kind: Failure::INVALID, why };
        let pairs = objects.iter().zip(converted);
        pairs.map(|(before, after)| checked(before, after, api_version).map_err(invalid)).collect()
    }
}

/// Why a webhook did not convert.
struct Failure {
    /// What is counted.
    kind: &'static str,
    why: String,
}

impl Failure {
    const CALL: &str = "conversion_webhook_call_failure";
    const MALFORMED: &str = "conversion_webhook_malformed_response_failure";
    const PARTIAL: &str = "conversion_webhook_partial_response_failure";
    const INVALID: &str = "conversion_webhook_invalid_converted_object_failure";
}

/// `v1` of `example.com/v1`.
fn version_of(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or(api_version, |(_, version)| version)
}

/// The objects of an answer.
fn read(review_version: &str, uid: &str, mut answer: Value) -> Result<Vec<Value>, String> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let is_v1 = review_version == "v1";
    let version = text(&answer["apiVersion"]);
    let kind = text(&answer["kind"]);
    if is_v1 && (version.as_str(), kind.as_str()) != ("apiextensions.k8s.io/v1", "ConversionReview")
    {
        return Err(format!(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {}",
            kind_of(&answer)
        ));
    }
    if !answer["response"].is_object() {
        return Err("no response provided".to_owned());
    }
    let given = text(&answer["response"]["uid"]);
    if is_v1 && given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    let result = &answer["response"]["result"];
    match (text(&result["status"]).as_str(), text(&result["message"])) {
        ("Success", _) => {}
        (status, message) if message.is_empty() => {
            return Err(format!("response.result.status was '{status}', not 'Success'"));
        }
        (_, message) => return Err(message),
    }
    match answer["response"]["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// A converted object with the metadata that it had, or what is wrong with it. Kubernetes lets each
/// object be converted by itself, also those of a list, so that every one is the first.
fn checked(before: &Value, mut after: Value, api_version: &str) -> Result<Value, String> {
    if !after.is_object() {
        return Err(no_object(&after));
    }
    let what = kind_of(before);
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or("").to_owned();
    let kind = text(&after, "kind");
    if kind.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{after}'"));
    }
    let first = format!("conversion webhook for {what} returned invalid object at index 0");
    let version = text(&after, "apiVersion");
    if version != api_version {
        return Err(format!(
            "{first}: invalid groupVersion (expected {api_version}, received {version})"
        ));
    }
    let expected = text(before, "kind");
    if kind != expected {
        return Err(format!("{first}: invalid kind (expected {expected}, received {kind})"));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let expected = metadata::text(before, field);
        let given = metadata::text(&after, field);
        if expected != given {
            return Err(format!(
                "conversion webhook for {what} returned invalid object: must have the same {name}: \
                 {expected} != {given}"
            ));
        }
    }
    restore_metadata(before, &mut after)
        .map_err(|why| format!("conversion webhook for {what} returned invalid metadata: {why}"))?;
    Ok(after)
}

/// Why something is no object, as Go's decoder says it. Of null it sees nothing at all.
fn no_object(value: &Value) -> String {
    match value {
        Value::Null => "unexpected end of JSON input".to_owned(),
        _ => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(value)
        ),
    }
}

/// Gives an object back the metadata that it had; labels and annotations stay as they are now.
fn restore_metadata(before: &Value, after: &mut Value) -> Result<(), String> {
    match after.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(_)) => {}
        Some(odd) => {
            let found = printed_type(odd);
            return Err(format!("invalid metadata of type {found} in converted object"));
        }
    }
    let given = after["metadata"].take();
    after["metadata"] = before["metadata"].clone();
    for field in ["labels", "annotations"] {
        let given = given.get(field).filter(|given| !given.is_null());
        if let Some(given) = given {
            check_texts(field, given)?;
        }
        if let Some(new) = given.filter(|given| **given != before["metadata"][field]) {
            // Kubernetes forgets a letter in the second.
            let mistakes = match field {
                "labels" => names::validate_labels(new, "metadata.labels"),
                _ => names::validate_annotations(new, "metadata.annotation"),
            };
            if let Some(why) = aggregate(&mistakes) {
                return Err(why);
            }
        }
        metadata::set(after, field, given.cloned());
    }
    Ok(())
}

/// Labels and annotations are texts by name.
fn check_texts(field: &str, given: &Value) -> Result<(), String> {
    let Value::Object(map) = given else {
        let found = printed_type(given);
        return Err(format!("invalid metadata.{field} of type {found} in converted object"));
    };
    match map.iter().find(|(_, value)| !value.is_string()) {
        None => Ok(()),
        Some((key, odd)) => Err(format!(
            "metadata.{field}[{key}] must be a string, but is {} in converted object",
            printed_type(odd)
        )),
    }
}

/// Several mistakes as one, in Go's form.
fn aggregate(mistakes: &[FieldError]) -> Option<String> {
    match mistakes {
        [] => None,
        [only] => Some(only.message()),
        several => {
            let messages: Vec<String> = several.iter().map(FieldError::message).collect();
            Some(format!("[{}]", messages.join(", ")))
        }
    }
}

/// `example.com/v1, Kind=Widget`.
fn kind_of(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().unwrap_or("");
    format!("{}, Kind={}", text("apiVersion"), text("kind"))
}

#[cfg(test)]
mod tests {
    use super::checked;
    use serde_json::json;

    #[test]
    fn of_the_answers_metadata_only_labels_and_annotations_are_taken() {
        let before = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "a", "uid": "1", "finalizers": ["x"], "labels": {"old": "1"}},
        });
        let after = json!({
            "apiVersion": "example.com/v2", "kind": "Widget", "spec": {"size": 1},
            "metadata": {"name": "a", "uid": "1", "finalizers": [], "labels": {"new": "1"}},
        });
        let converted = checked(&before, after, "example.com/v2").unwrap();
        assert_eq!(converted["metadata"]["finalizers"], json!(["x"]));
        assert_eq!(converted["metadata"]["labels"], json!({"new": "1"}));
        assert_eq!(converted["spec"]["size"], 1);
    }

    #[test]
    fn an_answer_that_is_another_object_is_refused() {
        let before = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "a", "namespace": "n", "uid": "1"},
        });
        for (path, value, why) in [
            (
                "/apiVersion",
                json!("example.com/v1"),
                "object at index 0: invalid groupVersion (expected example.com/v2, received \
                 example.com/v1)",
            ),
            (
                "/kind",
                json!("Gadget"),
                "object at index 0: invalid kind (expected Widget, received Gadget)",
            ),
            ("/metadata/name", json!("b"), "object: must have the same name: a != b"),
            ("/metadata/namespace", json!("m"), "object: must have the same namespace: n != m"),
            ("/metadata/uid", json!("2"), "object: must have the same UID: 1 != 2"),
            ("/metadata", json!([]), "object: must have the same name: a != "),
            (
                "/metadata/labels",
                json!({"a": 1}),
                "metadata: metadata.labels[a] must be a string, but is int64 in converted object",
            ),
            (
                "/metadata/labels",
                json!("a"),
                "metadata: invalid metadata.labels of type string in converted object",
            ),
            (
                "/metadata/labels",
                json!({"a": "-"}),
                "metadata: metadata.labels: Invalid value: \"-\": a valid label must be",
            ),
        ] {
            let mut after = before.clone();
            after["apiVersion"] = "example.com/v2".into();
            after["metadata"]["labels"] = json!({});
            *after.pointer_mut(path).unwrap() = value;
            let error = checked(&before, after, "example.com/v2").unwrap_err();
            let start = "conversion webhook for example.com/v1, Kind=Widget returned invalid ";
            assert!(error.starts_with(&format!("{start}{why}")), "{error}");
        }
        for (value, why) in [
            (json!(null), "unexpected end of JSON input"),
            (
                json!("x"),
                "json: cannot unmarshal string into Go value of type map[string]interface {}",
            ),
        ] {
            assert_eq!(checked(&before, value, "example.com/v2").unwrap_err(), why);
        }
        let unkind = json!({"apiVersion": "example.com/v2"});
        let error = checked(&before, unkind, "example.com/v2").unwrap_err();
        assert_eq!(error, r#"Object 'Kind' is missing in '{"apiVersion":"example.com/v2"}'"#);
    }
}

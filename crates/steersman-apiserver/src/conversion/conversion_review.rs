//! `ConversionReview`: objects to a webhook, and back in another version.
//!
//! The webhook may change everything but who an object is: of its metadata only labels and
//! annotations are taken from the answer.

use std::time::Duration;

use serde_json::{Value, json};
use steersman_rules::metadata;

use crate::state::Server;
use crate::status::{Result, Status};
use crate::webhook_client::Converter;

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
        let what = kind_of(objects.first().unwrap_or(&Value::Null));
        let failed =
            |why: String| Status::failure(format!("conversion webhook for {what} failed: {why}"));
        let Some(review) = self.review_version else {
            return Err(Status::failure("no supported conversion review versions"));
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
            .map_err(failed)?;
        let converted = read(review, &uid, answer).map_err(failed)?;
        if converted.len() != objects.len() {
            return Err(Status::failure(format!(
                "conversion webhook for {what} returned {} objects, expected {}",
                converted.len(),
                objects.len()
            )));
        }
        let pairs = objects.iter().zip(converted).enumerate();
        let checked = pairs.map(|(index, (before, after))| {
            checked(before, after, api_version).map_err(|why| {
                Status::failure(format!(
                    "conversion webhook for {what} returned invalid converted object at index \
                     {index}: {why}"
                ))
            })
        });
        checked.collect()
    }
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

/// A converted object with the metadata that it had, or what is wrong with it.
fn checked(before: &Value, mut after: Value, api_version: &str) -> Result<Value, String> {
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or("").to_owned();
    let version = text(&after, "apiVersion");
    if version != api_version {
        return Err(format!("invalid groupVersion (expected {api_version}, received {version})"));
    }
    let expected = text(before, "kind");
    let kind = text(&after, "kind");
    if kind != expected {
        return Err(format!("invalid kind (expected {expected}, received {kind})"));
    }
    for (field, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let expected = metadata::text(before, field);
        let given = metadata::text(&after, field);
        if expected != given {
            return Err(format!("must have the same {name}: {expected} != {given}"));
        }
    }
    if !after["metadata"].is_object() {
        return Err("missing metadata in converted object".to_owned());
    }
    let taken = after["metadata"].take();
    after["metadata"] = before["metadata"].clone();
    for field in ["labels", "annotations"] {
        let given = taken.get(field).filter(|given| !given.is_null()).cloned();
        if given.as_ref().is_some_and(|given| !is_map_of_texts(given)) {
            return Err(format!("metadata.{field} is not a map of texts"));
        }
        metadata::set(&mut after, field, given);
    }
    Ok(after)
}

fn is_map_of_texts(value: &Value) -> bool {
    value.as_object().is_some_and(|map| map.values().all(Value::is_string))
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
            ("/apiVersion", json!("example.com/v1"), "invalid groupVersion"),
            ("/kind", json!("Gadget"), "invalid kind"),
            ("/metadata/name", json!("b"), "must have the same name: a != b"),
            ("/metadata/namespace", json!("m"), "must have the same namespace"),
            ("/metadata/uid", json!("2"), "must have the same UID"),
            ("/metadata/labels", json!({"a": 1}), "not a map of texts"),
        ] {
            let mut after = before.clone();
            after["apiVersion"] = "example.com/v2".into();
            after["metadata"]["labels"] = json!({});
            *after.pointer_mut(path).unwrap() = value;
            let error = checked(&before, after, "example.com/v2").unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}

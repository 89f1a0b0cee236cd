//! From a body to a document of the right type, with what the client should know about it.

use serde_json::Value;

use crate::call::Call;
use crate::metadata;
use crate::schema::Schema;
use crate::status::{Result, Status};

/// Reads the body as an object of the resource's kind.
pub(super) fn object(call: &Call) -> Result<Value> {
    let object = call.document()?;
    checked(call, object)
}

/// Checks type and fields of a document, and drops what the schema does not know.
pub(super) fn checked(call: &Call, mut object: Value) -> Result<Value> {
    check_type(call, &mut object)?;
    call.resource.schema.normalise(&mut object);
    check_metadata(call, &object)?;
    metadata::of(&mut object).retain(|_, value| !value.is_null());
    if let Some(error) = call.resource.schema.type_errors(&object).first() {
        return Err(cannot_handle(call, error));
    }
    report_unknown_fields(call, &object)?;
    call.resource.schema.prune(&mut object);
    Ok(object)
}

/// Checks the types of a body that is not the resource's own kind, such as a Scale.
pub(super) fn part(schema: Option<Schema>, kind: &str, body: &mut Value) -> Result<()> {
    let schema = schema.ok_or_else(|| Status::internal("a kind without a schema"))?;
    schema.normalise(body);
    match schema.type_errors(body).first() {
        None => Ok(()),
        Some(error) => Err(Status::bad_request(format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: {error}"
        ))),
    }
}

fn check_type(call: &Call, object: &mut Value) -> Result<()> {
    let given = |field: &str| object[field].as_str().unwrap_or("").to_owned();
    let (api_version, kind) = (given("apiVersion"), given("kind"));
    if !api_version.is_empty() && api_version != call.api_version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            call.api_version
        )));
    }
    if !kind.is_empty() && kind != call.resource.kind {
        return Err(Status::bad_request(format!(
            "the kind in the data ({kind}) does not match the expected kind ({})",
            call.resource.kind
        )));
    }
    object["apiVersion"] = call.api_version.as_str().into();
    object["kind"] = call.resource.kind.as_ref().into();
    Ok(())
}

/// Metadata is typed for every kind, whatever its schema says.
fn check_metadata(call: &Call, object: &Value) -> Result<()> {
    let metadata = &object["metadata"];
    if !(metadata.is_object() || metadata.is_null()) {
        return Err(cannot_handle(call, "metadata must be an object"));
    }
    let wrong = |field: &str, expected: &str| {
        let text = format!(
            "json: cannot unmarshal into Go struct field ObjectMeta.metadata.{field} of type {expected}"
        );
        Err(cannot_handle(call, &text))
    };
    for field in ["name", "generateName", "namespace", "uid", "resourceVersion"] {
        if !(metadata[field].is_string() || metadata[field].is_null()) {
            return wrong(field, "string");
        }
    }
    for field in ["labels", "annotations"] {
        let texts =
            metadata[field].as_object().is_some_and(|map| map.values().all(Value::is_string));
        if !(texts || metadata[field].is_null()) {
            return wrong(field, "map[string]string");
        }
    }
    for field in ["finalizers", "ownerReferences", "managedFields"] {
        if !(metadata[field].is_array() || metadata[field].is_null()) {
            return wrong(field, "[]");
        }
    }
    Ok(())
}

/// Fields that the schema does not know: an error, a warning or nothing, as the client wants.
fn report_unknown_fields(call: &Call, object: &Value) -> Result<()> {
    let validation = call.info.query.text("fieldValidation").unwrap_or("Warn");
    let unknown = match validation {
        "Ignore" => return Ok(()),
        "Warn" | "Strict" => call.resource.schema.unknown_fields(object),
        other => {
            let text = format!(
                "invalid fieldValidation: {other:?}: supported values: \"Ignore\", \"Warn\", \"Strict\""
            );
            return Err(Status::unprocessable(text));
        }
    };
    let texts: Vec<String> =
        unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
    if validation == "Strict" && !texts.is_empty() {
        let text = format!("strict decoding error: {}", texts.join(", "));
        return Err(cannot_handle(call, &text));
    }
    for text in texts {
        call.warn(text);
    }
    Ok(())
}

fn cannot_handle(call: &Call, why: &str) -> Status {
    let (kind, version) = (&call.resource.kind, &call.resource.version);
    Status::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
    ))
}

//! Match conditions: expressions over a request that say whether a webhook is asked about it.

use std::sync::OnceLock;

use serde_json::{Value, json};
use steersman_cel::{Env, Program, Shape, ShapeKind, Type};

/// The new object; `null` if there is none.
pub const OBJECT: &str = "object";
/// The object that it replaces; `null` if there is none.
pub const OLD_OBJECT: &str = "oldObject";
/// The request, as webhooks are told it.
pub const REQUEST: &str = "request";
/// Who may do what.
pub const AUTHORIZER: &str = "authorizer";
/// A question about the resource of the request.
pub const REQUEST_RESOURCE: &str = "authorizer.requestResource";

/// Reads a condition; says why it is none.
pub fn compile(expression: &str) -> Result<Program, String> {
    let checked = environment().check(expression);
    let checked = checked.map_err(|why| format!("compilation failed: {why}"))?;
    if !matches!(checked.result_type(), Type::Bool | Type::Dyn) {
        return Err("must evaluate to bool".to_owned());
    }
    checked.program().map_err(|why| format!("instantiation failed: {why}"))
}

fn environment() -> &'static Env {
    static ENVIRONMENT: OnceLock<Env> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let any = || Shape::new(ShapeKind::Dyn);
        let request = Shape::of_schema(&request(), "kubernetes.AdmissionRequest", false);
        let named = |name: &str| Type::named(&format!("kubernetes.authorization.{name}"));
        Env::kubernetes()
            .variable(OBJECT, any())
            .variable(OLD_OBJECT, any())
            .variable(REQUEST, request.unwrap_or_else(any))
            .typed_variable(AUTHORIZER, named("Authorizer"))
            .typed_variable(REQUEST_RESOURCE, named("ResourceCheck"))
    })
}

/// What is known of a request.
fn request() -> Value {
    let text = json!({"type": "string"});
    let object = |fields: &[&str]| {
        let fields = fields.iter().map(|field| ((*field).to_owned(), text.clone()));
        json!({"type": "object", "properties": Value::Object(fields.collect())})
    };
    let kind = object(&["group", "version", "kind"]);
    let resource = object(&["group", "version", "resource"]);
    let texts = json!({"type": "array", "items": text});
    json!({"type": "object", "properties": {
        "kind": kind, "requestKind": kind,
        "resource": resource, "requestResource": resource,
        "subResource": text, "requestSubResource": text,
        "name": text, "namespace": text, "operation": text,
        "dryRun": {"type": "boolean"},
        "userInfo": {"type": "object", "properties": {
            "username": text, "uid": text, "groups": texts,
            "extra": {"type": "object", "additionalProperties": texts},
        }},
    }})
}

#[cfg(test)]
mod tests {
    use super::compile;

    #[test]
    fn conditions_speak_of_objects_the_request_and_permissions() {
        for sound in [
            "object.metadata.name != 'x'",
            "request.userInfo.username == 'jane' && 'a' in request.userInfo.groups",
            "oldObject == null || request.operation == 'DELETE'",
            "authorizer.group('apps').resource('deployments').check('get').allowed()",
            "authorizer.requestResource.check('update').allowed()",
        ] {
            assert!(compile(sound).is_ok(), "{sound}: {:?}", compile(sound).err());
        }
        for (wrong, why) in [
            ("request.user == 'jane'", "undefined field 'user'"),
            ("'text'", "must evaluate to bool"),
            ("params.a == 1", "undeclared reference to 'params'"),
            ("object.", "compilation failed: ERROR: <input>:1:8: Syntax error"),
        ] {
            let told = compile(wrong).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}

//! What a call and its answer leave in its [trail](Trail), for those who audit.

use serde_json::Value;
use steersman_rules::body::yaml;
use steersman_rules::resource::Verb;

use crate::audit::Trail;
use crate::call::Call;
use crate::negotiate;
use crate::reply::{self, Reply};

/// Notes what was sent, as far as it can be read: objects with their defaults, patches as they are.
pub(crate) fn request(call: &Call, trail: &Trail) {
    note_deprecation(call, trail);
    if call.body.is_empty() {
        return;
    }
    match call.info.verb {
        Verb::Get | Verb::List | Verb::Watch => {}
        Verb::Patch if call.is_apply() => {
            if let Ok(configuration) = yaml::read(&call.body) {
                trail.sent_patch(configuration.to_string().as_bytes());
            }
        }
        Verb::Patch => trail.sent_patch(&call.body),
        _ if trail.wants_request() => {
            if let Ok(object) = call.document() {
                trail.sent(completed(call, object));
            }
        }
        _ => note_name(call, trail),
    }
}

/// Notes what an object says of itself, and nothing else of it.
fn note_name(call: &Call, trail: &Trail) {
    match negotiate::media_type(call.content_type()) {
        "" | "application/json" => trail.sent_named(&call.body),
        _ => {
            if let Ok(object) = call.document() {
                trail.sent_named(object.to_string().as_bytes());
            }
        }
    }
}

/// An object of the resource's kind as it is read: without unknown fields, with defaults.
fn completed(call: &Call, mut object: Value) -> Value {
    let resource = &call.resource;
    let is_own = object["kind"] == *resource.kind || object["kind"].is_null();
    let writes = matches!(call.info.verb, Verb::Create | Verb::Update);
    if is_own && writes && call.subresource().is_empty() && object.is_object() {
        resource.schema.prune(&mut object);
        resource.schema.normalise(&mut object);
        if resource.schema.type_errors(&object).is_empty() {
            // What becomes too large is refused where it is written.
            let _ = resource.schema.apply_defaults(&mut object);
            resource.rules.fill_in(&mut object);
        }
        object["apiVersion"] = call.api_version.as_str().into();
        object["kind"] = resource.kind.as_ref().into();
    }
    object
}

/// A version that goes is told, and when.
fn note_deprecation(call: &Call, trail: &Trail) {
    let Some(deprecation) = &call.resource.deprecation else { return };
    trail.annotate("k8s.io/deprecated", "true");
    let release = deprecation.split("unavailable in v").nth(1);
    let release = release.and_then(|rest| rest.split('+').next()).unwrap_or("");
    if !release.is_empty() {
        trail.annotate("k8s.io/removed-release", release);
    }
}

/// Notes what is answered.
pub(crate) fn reply(call: &Call, trail: &Trail, reply: &Reply) {
    if let Reply::Document { value, .. } = reply {
        trail.answers_status(value);
    }
    if trail.wants_response()
        && let Some(json) = reply::plain(call, reply)
    {
        trail.answers(&json);
    }
}

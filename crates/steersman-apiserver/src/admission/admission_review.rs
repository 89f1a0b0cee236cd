//! `AdmissionReview`: the question to a webhook, and what its answer means.

use serde_json::{Value, json};
use steersman_rules::names;
use steersman_rules::resource::Resource;
use steersman_rules::schema::Text;

use super::matching::Version;
use super::request::Request;
use crate::admission_registration::Webhook;
use crate::status::{Details, Status};
use crate::webhook_client::{ADMISSION_REVIEW, bytes};

/// The one type of patches that there is.
pub(super) const JSON_PATCH: &str = "JSONPatch";

/// What a webhook answered.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) allowed: bool,
    /// A patch; empty if nothing is to be changed.
    pub(super) patch: Vec<u8>,
    /// Of which type it is. Reviews of version v1beta1 need not say.
    pub(super) patch_type: String,
    pub(super) warnings: Vec<String>,
    /// What it has to say to those who audit, by names of its own.
    pub(super) annotations: Vec<(String, String)>,
    result: Value,
}

/// Whether a webhook may answer with a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Mutating,
    Validating,
}

/// The objects of a question, in the version of the webhook.
#[derive(Clone, Copy, Debug)]
pub(super) struct Objects<'a> {
    pub(super) new: Option<&'a Value>,
    pub(super) old: Option<&'a Value>,
}

/// The question.
pub(super) fn question(
    request: &Request<'_>,
    webhook: &Webhook,
    version: &Version,
    uid: &str,
    objects: Objects<'_>,
) -> Result<Value, String> {
    let Some(review) = webhook.review_version else {
        return Err("could not create admission objects: webhook does not accept known \
                    AdmissionReview versions (v1, v1beta1)"
            .to_owned());
    };
    let mut question = asked(request, version, objects);
    question["uid"] = uid.into();
    question["object"] = json!(objects.new);
    question["oldObject"] = json!(objects.old);
    Ok(json!({
        "kind": "AdmissionReview", "apiVersion": format!("admission.k8s.io/{review}"),
        "request": question,
    }))
}

/// What is asked about, without the objects themselves.
pub(super) fn asked(request: &Request<'_>, version: &Version, objects: Objects<'_>) -> Value {
    let asked = version.resource(request);
    let mut question = json!({
        "kind": kind(asked, request.subresource),
        "resource": resource(asked),
        "requestKind": kind(request.resource, request.subresource),
        "requestResource": resource(request.resource),
        "operation": request.operation.as_str(),
        "userInfo": request.call.user.to_info(),
        "dryRun": request.dry_run,
        "options": request.options(),
    });
    let name = request.object_name(objects.new);
    for (field, text) in [
        ("subResource", request.subresource),
        ("requestSubResource", request.subresource),
        ("name", &name),
        ("namespace", request.namespace()),
    ] {
        if !text.is_empty() {
            question[field] = text.into();
        }
    }
    question
}

/// The resource that a request is for.
pub(super) fn asked_resource(request: &Request<'_>) -> Value {
    resource(request.resource)
}

fn resource(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "resource": resource.plural})
}

/// Group, version and kind of what is sent to a path: of the resource, or of its subresource.
fn kind_of<'a>(resource: &'a Resource, subresource: &str) -> [&'a Text; 3] {
    let part = resource.subresource(subresource);
    let kind = part.map_or(&resource.kind, |part| &part.kind);
    match part.and_then(|part| part.group_version.as_ref()) {
        Some((group, version)) => [group, version, kind],
        None => [&resource.group, &resource.version, kind],
    }
}

fn kind(resource: &Resource, subresource: &str) -> Value {
    let [group, version, kind] = kind_of(resource, subresource);
    json!({"group": group, "version": version, "kind": kind})
}

/// Says of a body what it is, if it does not itself.
pub(super) fn name_kind(body: &mut Value, resource: &Resource, subresource: &str) {
    let [group, version, kind] = kind_of(resource, subresource);
    let separator = if group.is_empty() { "" } else { "/" };
    for (field, text) in
        [("apiVersion", format!("{group}{separator}{version}")), ("kind", kind.to_string())]
    {
        if body[field].as_str().unwrap_or("").is_empty() {
            body[field] = text.into();
        }
    }
}

/// What keeps an answer from being a review at all, whoever asked.
pub(super) fn mistake(webhook: &Webhook, review: &Value) -> Option<String> {
    ADMISSION_REVIEW.mistake(webhook.review_version?, review)
}

/// Reads an answer that is a review; what is wrong with it counts as a failure to ask.
pub(super) fn answer(
    webhook: &Webhook,
    uid: &str,
    role: Role,
    review: &Value,
) -> Result<Response, String> {
    let invalid = |why: String| format!("received invalid webhook response: {why}");
    let response = review.get("response").filter(|response| response.is_object());
    let response = response.ok_or_else(|| invalid("webhook response was absent".to_owned()))?;
    let is_v1 = webhook.review_version == Some("v1");
    if is_v1 {
        check(uid, role, review, response).map_err(invalid)?;
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let annotations = response["auditAnnotations"].as_object().into_iter().flatten();
    let annotations = annotations
        .filter_map(|(key, value)| Some((format!("{}/{key}", webhook.name), value.as_str()?)))
        // What is no name with a prefix is not told.
        .filter(|(key, _)| names::qualified_name(key).is_empty());
    let patch_type = response["patchType"].as_str().filter(|_| is_v1);
    Ok(Response {
        allowed: response["allowed"] == true,
        patch: if role == Role::Mutating { bytes(&response["patch"]) } else { Vec::new() },
        patch_type: patch_type.unwrap_or(JSON_PATCH).to_owned(),
        warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
        annotations: annotations.map(|(key, value)| (key, value.to_owned())).collect(),
        result: response["status"].clone(),
    })
}

/// What a review of version v1 must be.
fn check(uid: &str, role: Role, review: &Value, response: &Value) -> Result<(), String> {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let given = text(&response["uid"]);
    if given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    let version = text(&review["apiVersion"]);
    let kind = text(&review["kind"]);
    if (version.as_str(), kind.as_str()) != ("admission.k8s.io/v1", "AdmissionReview") {
        let (group, version) = version.split_once('/').unwrap_or(("", &version));
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got \
             {group}/{version}, Kind={kind}"
        ));
    }
    let has_patch = !bytes(&response["patch"]).is_empty();
    let patch_type = response["patchType"].as_str();
    let why = match (role, has_patch, patch_type) {
        (Role::Mutating, true, None) => {
            "webhook returned response.patch but not response.patchType"
        }
        (Role::Mutating, false, Some(_)) => {
            "webhook returned response.patchType but not response.patch"
        }
        (Role::Mutating, _, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (Role::Validating, true, _) => "validating webhook may not return response.patch",
        (Role::Validating, _, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

impl Response {
    /// The refusal, as the client sees it.
    pub(super) fn refusal(&self, webhook: &str) -> Status {
        let denied = format!("admission webhook {webhook:?} denied the request");
        let text = |field: &str| self.result[field].as_str().unwrap_or("");
        let message = match (text("message"), text("reason")) {
            ("", "") => format!("{denied} without explanation"),
            ("", reason) => format!("{denied}: {reason}"),
            (message, _) => format!("{denied}: {message}"),
        };
        let code = self.result["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let details = self.result.get("details").filter(|details| details.is_object());
        let details = details.and_then(|d| serde_json::from_value::<Details>(d.clone()).ok());
        let mut status = Status::bad_request(message);
        // A refusal never looks like a success.
        status.code = code.filter(|code| (400..=599).contains(code)).unwrap_or(400);
        status.reason = text("reason").to_owned().into();
        status.details = details.map(Box::new);
        status
    }
}

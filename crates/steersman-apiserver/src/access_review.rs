//! Questions that are answered and never stored: who am I, may I, whose token is this. Plug-ins and
//! webhooks are asked about them as about what is stored; policies are not.

mod selectors;

use http::StatusCode;
use serde_json::{Value, json};
use steersman_rules::field::{FieldError, FieldErrorKind};
use steersman_rules::metadata;
use steersman_rules::resource::Named;
use steersman_rules::rules::internal;

use crate::admission::Request;
use crate::authz::rule::Rule;
use crate::authz::{Attributes, Decision, Target, selector};
use crate::call::Call;
use crate::mutate;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::token_review;
use crate::user::User;
use crate::write::OTHER_NAMESPACE;

const SYSTEM_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Answers a review; `None` if the resource is not one.
pub(crate) async fn answer(call: &Call) -> Result<Option<Reply>> {
    if !matches!(call.resource.group.as_ref(), "authentication.k8s.io" | "authorization.k8s.io") {
        return Ok(None);
    }
    // On the heap, so that requests stay small that are something else.
    Box::pin(review(call)).await.map(Some)
}

async fn review(call: &Call) -> Result<Reply> {
    let mut review = mutate::body(call)?;
    let namespace = metadata::text(&review, "namespace");
    if call.resource.namespaced && !namespace.is_empty() && namespace != call.namespace() {
        return Err(Status::bad_request(OTHER_NAMESPACE));
    }
    let namespace = call.resource.namespaced.then(|| call.namespace().into());
    metadata::set(&mut review, "namespace", namespace);
    // What only the server may say is passed over, as in every new object.
    for field in SYSTEM_FIELDS {
        metadata::set(&mut review, field, None);
    }
    call.writer()?.track(None, &mut review);
    let asked = Request::of_body(call, call.info.dry_run()?);
    if let Some(asked) = &asked {
        asked.change_body(&mut review).await?;
    }
    check(call, &review)?;
    if let Some(asked) = &asked {
        asked.validate(Some(&review), None).await?;
    }
    let kind = call.resource.kind.as_ref();
    let status = match kind {
        "SelfSubjectReview" => json!({"userInfo": call.user.to_info()}),
        "TokenReview" => token_review::status(call, &review).await?,
        "SelfSubjectRulesReview" => rules_status(call, &review["spec"]),
        _ => access_status(call, &review["spec"]).await?,
    };
    // What is about oneself is answered by a document that has nothing of the question.
    match kind {
        "SelfSubjectReview" => {
            review["metadata"] = json!({"creationTimestamp": call.server.now()});
        }
        "SelfSubjectRulesReview" => {
            review["metadata"] = json!({});
            review["spec"] = json!({});
        }
        _ => {}
    }
    review["status"] = status;
    Ok(Reply::Document { code: StatusCode::CREATED, value: review })
}

/// What the user of a call may do in a namespace.
fn rules_status(call: &Call, spec: &Value) -> Value {
    let namespace = spec["namespace"].as_str().unwrap_or_default();
    let authorizer = &call.server.authorizer;
    if authorizer.allows_everything() {
        return json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        });
    }
    let (rules, unresolved) = authorizer.rbac.rules_of(&call.user, namespace);
    let resources: Vec<Value> = rules.iter().filter_map(Rule::resource_rule).collect();
    let paths: Vec<Value> = rules.iter().filter_map(Rule::path_rule).collect();
    let untold = authorizer.untold(&call.user).map(str::to_owned);
    // A role that is not there permits nothing, so that nothing is left out.
    let is_incomplete = untold.is_some();
    let wrong: Vec<String> = untold.into_iter().chain(unresolved).collect();
    let mut status = json!({
        "resourceRules": resources, "nonResourceRules": paths, "incomplete": is_incomplete,
    });
    match wrong.as_slice() {
        [] => {}
        [one] => status["evaluationError"] = one.as_str().into(),
        more => status["evaluationError"] = format!("[{}]", more.join(", ")).into(),
    }
    status
}

/// Whether somebody may do something: the user of the call, or the one of the question.
async fn access_status(call: &Call, spec: &Value) -> Result<Value> {
    let is_own = call.resource.kind == "SelfSubjectAccessReview";
    let other = (!is_own).then(|| user_of(spec));
    let user = other.as_ref().unwrap_or(&call.user);
    let text = |value: &'_ Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let asked = &spec["resourceAttributes"];
    let resource = ["group", "resource", "subresource", "namespace", "name"];
    let [group, resource, subresource, namespace, name] = resource.map(|field| text(asked, field));
    let path = text(&spec["nonResourceAttributes"], "path");
    let attributes = match asked.is_object() {
        true => Target::Resource {
            group: &group,
            resource: &resource,
            subresource: &subresource,
            namespace: &namespace,
            name: &name,
        },
        false => Target::Path(&path),
    };
    let about = if asked.is_object() { asked } else { &spec["nonResourceAttributes"] };
    let verb = text(about, "verb");
    let (fields, ignored) = selector::of_review(&asked["fieldSelector"]);
    let ignored: Vec<&str> =
        ignored.into_iter().chain(selector::labels_of_review(&asked["labelSelector"])).collect();
    let asked = Attributes { fields: &fields, ..Attributes::new(user, &verb, attributes) };
    let authorizer = &call.server.authorizer;
    authorizer.look(&*call.server.store, &asked).await?;
    let Decision { allowed, reason } = authorizer.decide(&asked);
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    if !ignored.is_empty() {
        status["evaluationError"] = ignored.join("; ").into();
    }
    Ok(status)
}

/// The user of a question about another one.
fn user_of(spec: &Value) -> User {
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> {
        let items = value.as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text("user"),
        groups: texts(&spec["groups"]),
        uid: text("uid"),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    }
}

/// Refuses a review that asks nothing, or too much.
fn check(call: &Call, review: &Value) -> Result<()> {
    let kind = call.resource.kind.as_ref();
    let spec = &review["spec"];
    if kind == "SelfSubjectRulesReview" && spec["namespace"].as_str().unwrap_or("").is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    if kind == "TokenReview" && spec["token"].as_str().unwrap_or("").is_empty() {
        let why = "token is required for TokenReview in authentication";
        return Err(Status::bad_request(why));
    }
    if !kind.ends_with("SubjectAccessReview") {
        return Ok(());
    }
    let resource = &spec["resourceAttributes"];
    let other = &spec["nonResourceAttributes"];
    let mut errors = Vec::new();
    if resource.is_object() && other.is_object() {
        let why = "cannot be specified in combination with resourceAttributes";
        errors.push(FieldError::invalid_shown("spec.nonResourceAttributes", &shown(other), why));
    }
    if !resource.is_object() && !other.is_object() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.push(FieldError::invalid("spec.resourceAttributes", &Value::Null, why));
    }
    let is_empty = |value: &Value| value.as_str().is_none_or(str::is_empty);
    let no_groups = spec["groups"].as_array().is_none_or(Vec::is_empty);
    if kind != "SelfSubjectAccessReview" && is_empty(&spec["user"]) && no_groups {
        let why = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &"".into(), why));
    }
    errors.extend(selectors::mistakes(resource));
    let local = kind == "LocalSubjectAccessReview";
    errors.extend(metadata_mistake(&review["metadata"], local));
    if local {
        let wanted = resource["namespace"].as_str().unwrap_or("");
        if resource.is_object() && wanted != call.namespace() {
            let why = "must match metadata.namespace";
            let field = "spec.resourceAttributes.namespace";
            errors.push(FieldError::invalid(field, &wanted.into(), why));
        }
        if other.is_object() {
            let why = "disallowed on this kind of request";
            let field = "spec.nonResourceAttributes";
            errors.push(FieldError::invalid_shown(field, &shown(other), why));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let what = Named { group: &call.resource.group, resource: "", name: "" };
    Err(Status::invalid(what, &errors))
}

/// The path that is asked for, as errors show it.
fn shown(attributes: &Value) -> String {
    internal::shown("NonResourceAttributes", attributes)
}

/// A review is never stored, so there is nothing to say of it as an object.
fn metadata_mistake(metadata: &Value, in_namespace: bool) -> Option<FieldError> {
    let given = metadata.as_object()?;
    let says_nothing = |(field, value): (&String, &Value)| {
        field == "managedFields" || (in_namespace && field == "namespace") || value.is_null()
    };
    if given.iter().all(says_nothing) {
        return None;
    }
    let why = if in_namespace { "must be empty except for namespace" } else { "must be empty" };
    let text = format!("Invalid value: {}: {why}", in_struct_order(metadata));
    Some(FieldError { kind: FieldErrorKind::Invalid, field: "metadata".to_owned(), text })
}

/// Metadata as Go writes it: its fields, and those of managers, in the order of their structs.
fn in_struct_order(value: &Value) -> String {
    const ORDER: [&str; 20] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
        "manager",
        "operation",
        "apiVersion",
        "time",
        "fieldsType",
    ];
    let Some(fields) = value.as_object() else { return value.to_string() };
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    let place = |field: &str| ORDER.iter().position(|known| *known == field);
    fields.sort_by_key(|(field, _)| place(field).unwrap_or(ORDER.len()));
    let written = fields.into_iter().map(|(field, value)| match value {
        Value::Array(items) if field == "managedFields" => {
            let items: Vec<String> = items.iter().map(in_struct_order).collect();
            format!("{field:?}:[{}]", items.join(","))
        }
        _ => format!("{field:?}:{value}"),
    });
    format!("{{{}}}", written.collect::<Vec<_>>().join(","))
}

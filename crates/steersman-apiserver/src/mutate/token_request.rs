//! `serviceaccounts/token`: a token for a service account, perhaps bound to an object.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::metadata;
use steersman_rules::resource::Named;
use steersman_rules::resource::Place;

use super::decode;
use crate::admission::Request;
use crate::call::Call;
use crate::document::Stored;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::token::ISSUER;
use crate::token::claims::{Claims, Private, Reference, user_name};
use crate::user::token_id;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

/// Where those who audit read which token was given out.
const ISSUED: &str = "authentication.kubernetes.io/issued-credential-id";

/// How long a token lives, unless the client says otherwise.
const DEFAULT_SECONDS: i64 = 3600;
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;

/// The lifetime that kubelets ask for, and what they get: programs that read their token but
/// once go on working for a year.
const KUBELET_SECONDS: i64 = 3607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;

/// Answers with a token for the account of the path.
pub(crate) async fn create(call: &Call) -> Result<Reply> {
    let mut request = decode::other(call, "authentication.k8s.io/v1", KIND)?;
    let account = call.stored().await?.decode(&call.api_version)?;
    let asked = Request::of_body(call, call.info.dry_run()?);
    if let Some(asked) = &asked {
        asked.change_body(&mut request).await?;
    }
    complete(call, &mut request, &account)?;
    check(&request)?;
    // Whoever judges sees what the client has left to the server, such as the audiences.
    if let Some(asked) = &asked {
        asked.validate(Some(&request), None).await?;
    }
    let bound = bound(call, &request).await?;
    let claims = claims(call, &request, &account, bound);
    // Nothing is written, so a dry run gets a token, too.
    let token = call.server.signer.sign(&*call.server.store, &claims).await?;
    if let Some(trail) = &call.trail {
        trail.annotate(ISSUED, token_id(&claims.jti));
    }
    request["status"]["token"] = token.into();
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
    let expires = after((call.server.clock)(), seconds);
    request["status"]["expirationTimestamp"] = metadata::time(expires).into();
    Ok(Reply::Document { code: StatusCode::CREATED, value: request })
}

/// Checks that the request is about the account, and fills in what it leaves out.
fn complete(call: &Call, request: &mut Value, account: &Value) -> Result<()> {
    let place = call.place();
    let named = Named { group: GROUP, resource: KIND, name: place.name };
    for (field, expected) in [("name", place.name), ("namespace", place.namespace)] {
        let given = metadata::text(request, field);
        if !given.is_empty() && given != expected {
            let why = format!("must match the service account {field} if specified");
            let error = FieldError::invalid(format!("metadata.{field}"), &given.into(), &why);
            return Err(Status::invalid(named, &[error]));
        }
    }
    let given = metadata::text(request, "uid");
    let uid = metadata::text(account, "uid");
    if !given.is_empty() && given != uid {
        let why = format!(
            "the UID in the token request ({given}) does not match the UID of the service \
             account ({uid})"
        );
        return Err(Status::conflict(named, &why));
    }
    request["apiVersion"] = format!("{GROUP}/v1").into();
    request["kind"] = KIND.into();
    for (field, value) in [("name", place.name), ("namespace", place.namespace), ("uid", uid)] {
        metadata::set(request, field, Some(value.into()));
    }
    metadata::set(request, "creationTimestamp", Some(call.server.now().into()));
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    if request["spec"]["expirationSeconds"].is_null() {
        request["spec"]["expirationSeconds"] = DEFAULT_SECONDS.into();
    }
    if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
        request["spec"]["audiences"] = json!([ISSUER]);
    }
    // What the token is bound to is told even if that is nothing.
    if let Some(spec) = request["spec"].as_object_mut() {
        spec.entry("boundObjectRef").or_insert(Value::Null);
    }
    request["status"] = json!({});
    Ok(())
}

fn check(request: &Value) -> Result<()> {
    let seconds = &request["spec"]["expirationSeconds"];
    let why = match seconds.as_i64().unwrap_or(0) {
        ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
        MIN_SECONDS..=MAX_SECONDS => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let error = FieldError::invalid("spec.expirationSeconds", seconds, why);
    Err(Status::invalid(Named { group: GROUP, resource: KIND, name: "" }, &[error]))
}

/// What the token is bound to.
async fn bound(call: &Call, request: &Value) -> Result<Private> {
    let mut private = Private::default();
    let wanted = &request["spec"]["boundObjectRef"];
    if !wanted.is_object() {
        return Ok(private);
    }
    let text = |field: &str| wanted[field].as_str().unwrap_or("");
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let plural = match (group, text("kind")) {
        ("", "Pod") => "pods",
        ("", "Node") => "nodes",
        ("", "Secret") => "secrets",
        (group, kind) => {
            let why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
            return Err(Status::bad_request(why));
        }
    };
    let object = find(call, plural, text("name")).await?;
    let object = object.ok_or_else(|| {
        Status::not_found(Named { group: "", resource: plural, name: text("name") })
    })?;
    let account = call.place().name;
    if plural == "pods" && object["spec"]["serviceAccountName"] != account {
        return Err(Status::bad_request(format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different \
             serviceaccount name."
        )));
    }
    let reference = reference(&object);
    if !text("uid").is_empty() && text("uid") != reference.uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The \
             object might have been deleted and then recreated",
            text("uid")
        );
        let named = Named { group: "", resource: text("kind"), name: text("name") };
        return Err(Status::conflict(named, &why));
    }
    match plural {
        "pods" => {
            private.node = node_of(call, &object).await?;
            private.pod = Some(reference);
        }
        "nodes" => private.node = Some(reference),
        _ => private.secret = Some(reference),
    }
    Ok(private)
}

/// The node of a pod; only its name where there is no such node.
async fn node_of(call: &Call, pod: &Value) -> Result<Option<Reference>> {
    let name = pod["spec"]["nodeName"].as_str().unwrap_or("");
    if name.is_empty() {
        return Ok(None);
    }
    let node = find(call, "nodes", name).await?;
    let nameless = Reference { name: name.to_owned(), uid: String::new() };
    Ok(Some(node.map_or(nameless, |node| reference(&node))))
}

async fn find(call: &Call, plural: &str, name: &str) -> Result<Option<Value>> {
    let table = call.server.registry.table();
    let resource = table.get("", "v1", plural).ok_or_else(Status::no_such_resource)?;
    let namespace = if resource.namespaced { call.namespace() } else { "" };
    let entry = call.server.get(&resource.key(Place { namespace, name })).await?;
    entry.map(|entry| Stored::from(&entry).decode("v1")).transpose()
}

fn reference(object: &Value) -> Reference {
    let text = |field: &str| metadata::text(object, field).to_owned();
    Reference { name: text("name"), uid: text("uid") }
}

fn claims(call: &Call, request: &Value, account: &Value, bound: Private) -> Claims {
    let place = call.place();
    let now = (call.server.clock)().as_second();
    let audiences = request["spec"]["audiences"].as_array().into_iter().flatten();
    let aud: Vec<String> = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
    let is_for_us = aud.iter().all(|audience| audience == ISSUER);
    let extended = bound.pod.is_some() && seconds == KUBELET_SECONDS && is_for_us;
    let lifetime = if extended { EXTENDED_SECONDS } else { seconds };
    Claims {
        aud,
        exp: now + lifetime,
        iat: now,
        iss: ISSUER.to_owned(),
        jti: call.server.random.uid(),
        kubernetes: Private {
            namespace: place.namespace.to_owned(),
            serviceaccount: reference(account),
            warnafter: extended.then_some(now + seconds),
            ..bound
        },
        nbf: now,
        sub: user_name(place.namespace, place.name),
    }
}

fn after(now: Timestamp, seconds: i64) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

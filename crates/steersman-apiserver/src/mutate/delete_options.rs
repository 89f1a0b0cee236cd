//! Reading `DeleteOptions`, from a body or from the query.

use serde_json::{Value, json};
use steersman_rules::schema::Schema;

use super::{decode, options};
use crate::call::Call;
use crate::negotiate;
use crate::status::{Result, Status};
use crate::write::DeleteOptions;
use crate::write::delete_options::IGNORE_READ_ERROR;

/// Reads the body, or the query where there is no body: as in Kubernetes, who sends options
/// is not heard in the query, not even about a dry run.
pub(super) fn of(call: &Call) -> Result<DeleteOptions> {
    options::check(call)?;
    if call.body.is_empty() {
        let dry_run = call.info.dry_run()?;
        return Ok(DeleteOptions { dry_run, ..DeleteOptions::of_document(&of_query(call)?)? });
    }
    let mut document = negotiate::decode(call.content_type(), &call.body)?;
    if let Some(kind) = document["kind"].as_str().filter(|k| !["", "DeleteOptions"].contains(k)) {
        let version = document["apiVersion"].as_str().unwrap_or("v1");
        return Err(Status::bad_request(decode::unregistered(kind, version)));
    }
    let schema = Schema::builtin_type("meta.v1.DeleteOptions");
    let schema = schema.ok_or_else(|| Status::internal("a kind without a schema"))?;
    schema.normalise(&mut document);
    if let Some(error) = schema.type_errors(&document).first() {
        return Err(Status::bad_request(error));
    }
    DeleteOptions::of_document(&document)
}

fn of_query(call: &Call) -> Result<Value> {
    let query = &call.info.query;
    let mut document = json!({});
    if let Some(grace) = query.number("gracePeriodSeconds")? {
        document["gracePeriodSeconds"] = grace.into();
    }
    if let Some(policy) = query.text("propagationPolicy") {
        document["propagationPolicy"] = policy.into();
    }
    for condition in ["uid", "resourceVersion"] {
        if let Some(wanted) = query.text(condition) {
            document["preconditions"][condition] = wanted.into();
        }
    }
    for flag in ["orphanDependents", IGNORE_READ_ERROR] {
        if let Some(value) = query.flag(flag) {
            document[flag] = value.into();
        }
    }
    Ok(document)
}

//! DELETE of one object.

use http::StatusCode;
use serde_json::{Value, json};
use steersman_rules::metadata;
use steersman_rules::resource::Resource;

use super::{delete_options, success};
use crate::call::Call;
use crate::conversion;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::write::delete::{Deleted, delete_object};
use crate::write::{DeleteOptions, Writer};

/// The priority classes that nobody deletes, as long as it is one by one.
const SYSTEM_CLASSES: [&str; 2] = ["system-node-critical", "system-cluster-critical"];

/// The kinds whose removal is answered with the object itself; all others with a Status.
const ANSWERED_WITH_OBJECT: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "namespaces",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ],
    ),
    (
        "resource.k8s.io",
        &[
            "deviceclasses",
            "devicetaintrules",
            "resourceclaims",
            "resourceclaimtemplates",
            "resourceslices",
        ],
    ),
    (
        "storage.k8s.io",
        &[
            "csidrivers",
            "csinodes",
            "storageclasses",
            "volumeattachments",
            "volumeattributesclasses",
        ],
    ),
];

/// The priorities of the system's own Pods stay.
fn spare_system_classes(call: &Call) -> Result<()> {
    let name = call.place().name;
    let is_class = call.resource.is("scheduling.k8s.io", "priorityclasses");
    match is_class && SYSTEM_CLASSES.contains(&name) {
        true => {
            let why = "this is a system priority class and cannot be deleted";
            Err(Status::forbidden(call.resource.named(name), why, Vec::new()))
        }
        false => Ok(()),
    }
}

/// Tells who deletes jobs that it may not be what they want.
pub(super) fn warn_of_orphans(call: &Call, options: &DeleteOptions) {
    if call.resource.is("batch", "jobs") && options.propagation.is_none() {
        let warning = "child pods are preserved by default when jobs are deleted; set \
                       propagationPolicy=Background to remove them or set \
                       propagationPolicy=Orphan to suppress this warning";
        call.warn(warning.to_owned());
    }
}

/// Deletes the object of the path.
pub(crate) async fn delete(call: &Call) -> Result<Reply> {
    let options = delete_options::of(call)?;
    spare_system_classes(call)?;
    warn_of_orphans(call, &options);
    let writer = Writer { dry_run: options.dry_run, ..call.writer()? };
    let deleted = delete_object(&writer, call.place(), &options).await?;
    Ok(match deleted {
        Deleted::Marked(object) => {
            let code = if options.spares_none { StatusCode::ACCEPTED } else { StatusCode::OK };
            let object = conversion::read(&call.server, &call.resource, object).await?;
            Reply::Object { code, object }
        }
        Deleted::Gone(object) if answers_with_object(&call.resource) => {
            Reply::Object { code: StatusCode::OK, object }
        }
        Deleted::Gone(object) => {
            let object = object.decode(&call.api_version)?;
            let value = success(200, Some(details(call, &object)));
            Reply::Document { code: StatusCode::OK, value }
        }
    })
}

/// Whether the removal of such an object is answered with the object.
pub(crate) fn answers_with_object(resource: &Resource) -> bool {
    let mut groups = ANSWERED_WITH_OBJECT.iter().filter(|(group, _)| resource.group == *group);
    groups.any(|(_, plurals)| plurals.contains(&resource.plural.as_ref()))
}

fn details(call: &Call, object: &Value) -> Value {
    let resource = &call.resource;
    let mut details = json!({
        "name": metadata::text(object, "name"), "kind": resource.plural,
        "uid": metadata::text(object, "uid"),
    });
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    details
}

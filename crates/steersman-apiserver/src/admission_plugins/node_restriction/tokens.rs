//! Tokens: a node asks only for those of Pods that run on it, and for the audiences that they name.

use serde_json::Value;
use steersman_rules::metadata;

use super::super::fields::{items, text};
use super::{Asked, audience, pods};
use crate::admission_registration::Operation;
use crate::authz::{Attributes, Target};
use crate::status::Result;

/// The verb by which a role allows audiences, which it names like resources.
const VERB: &str = "request-serviceaccounts-token-audience";

pub(super) async fn check(asked: &Asked<'_>) -> Result<()> {
    if asked.operation() != Operation::Create || asked.write.subresource != "token" {
        return Ok(());
    }
    let request = asked.new;
    let bound = &request["spec"]["boundObjectRef"];
    let [version, kind, name, uid] =
        ["apiVersion", "kind", "name", "uid"].map(|field| text(&bound[field]));
    if (version, kind) != ("v1", "Pod") || name.is_empty() {
        return Err(asked.refusal("node requested token not bound to a pod"));
    }
    if uid.is_empty() {
        return Err(asked.refusal("node requested token with a pod binding without a uid"));
    }
    let pod = pods::find(asked.write.server, asked.write.place.namespace, name).await?;
    if uid != metadata::text(&pod, "uid") {
        return Err(asked.refusal(&format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The \
             object might have been deleted and then recreated"
        )));
    }
    if pods::node_of(&pod) != asked.node {
        let why = "node requested token bound to a pod scheduled on a different node";
        return Err(asked.refusal(why));
    }
    let refused = check_audience(asked, &pod).await?;
    refused.map_or(Ok(()), |why| Err(asked.refusal(&why)))
}

/// Why a token is not for this audience.
async fn check_audience(asked: &Asked<'_>, pod: &Value) -> Result<Option<String>> {
    let wanted = match items(&asked.new["spec"]["audiences"]) {
        [] => "",
        [one] => text(one),
        _ => return Ok(Some("node may only request 0 or 1 audiences".to_owned())),
    };
    let server = asked.write.server;
    match audience::is_named(server, pod, wanted).await? {
        Ok(true) => return Ok(None),
        Ok(false) => {}
        Err(why) => return Ok(Some(format!("error validating audience {wanted:?}: {why}"))),
    }
    let target = Target::Resource {
        group: "",
        resource: wanted,
        subresource: "",
        namespace: asked.write.place.namespace,
        name: asked.write.place.name,
    };
    let user = asked.write.user;
    if server.authorizer.allows(&Attributes::new(user, VERB, target)) {
        return Ok(None);
    }
    Ok(Some(format!(
        "audience {wanted:?} not found in pod spec volume, {} is not authorized to request tokens \
         for this audience",
        user.name
    )))
}

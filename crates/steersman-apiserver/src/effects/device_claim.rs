//! Claims for devices: an administrator's access is for namespaces that are labelled so, and who
//! writes the status of a claim needs a right for each part of it that changes.
//!
//! These are rights to subresources that nobody serves: `resourceclaims/binding` to say which
//! devices a claim has and who uses them, and `resourceclaims/driver`, by the name of a driver, to
//! say how its devices are.

use std::collections::{BTreeSet, HashMap};

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::{metadata, names};

use crate::authz::{Attributes, Target};
use crate::document::items;
use crate::impersonation::{NODE_NAME, service_account};
use crate::state::Server;
use crate::state::effects::{Effects, Write};
use crate::status::Result;
use crate::user::User;

const GROUP: &str = "resource.k8s.io";
const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";

/// Keeps devices from those who may not have them.
pub(super) struct Claims;

impl Effects for Claims {
    fn validate<'a>(
        &'a self,
        write: Write<'a>,
        old: Option<&'a Value>,
        new: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<FieldError>>> {
        Box::pin(async move {
            let mut errors = Vec::new();
            let path = match old {
                None => asks_for_admin_access(new),
                Some(old) => gets_admin_access(old, new),
            };
            let namespace = metadata::text(new, "namespace");
            if let Some(path) = path
                && !is_for_admins(write.server, namespace).await?
            {
                let why = format!(
                    "admin access to devices requires the `{ADMIN_LABEL}: true` label on the \
                     containing namespace"
                );
                errors.push(FieldError::forbidden(path, &why));
            }
            if let (Some(old), Some(user)) = (old, write.user) {
                let [before, after] = [old, new].map(|claim| &claim["status"]);
                errors.extend(Saying { write, user, namespace }.mistakes(before, after));
            }
            Ok(errors)
        })
    }
}

/// Where a claim or a template asks for an administrator's access, as Kubernetes names the place.
fn asks_for_admin_access(object: &Value) -> Option<String> {
    let spec = &object["spec"];
    let spec = spec.get("spec").unwrap_or(spec);
    let mut requests = items(&spec["devices"]["requests"]).iter();
    let at = requests.position(|request| request["exactly"]["adminAccess"] == true)?;
    Some(format!("spec.devices.requests[{at}].adminAccess"))
}

/// Where a claim is given such access that had none.
fn gets_admin_access(old: &Value, new: &Value) -> Option<String> {
    let granted = |claim: &Value| {
        let results = &claim["status"]["allocation"]["devices"]["results"];
        items(results).iter().position(|result| result["adminAccess"] == true)
    };
    let at = granted(new).filter(|_| granted(old).is_none())?;
    Some(format!("status.allocation.devices.results[{at}].adminAccess"))
}

/// Whether a namespace is for administrators. Only a label that is there is taken from what this
/// server has heard, for who adds it goes on at once.
async fn is_for_admins(server: &Server, namespace: &str) -> Result<bool> {
    let key = format!("/registry/namespaces/{namespace}");
    let labelled = |bytes: &[u8]| {
        let namespace: Value = serde_json::from_slice(bytes).unwrap_or_default();
        namespace["metadata"]["labels"][ADMIN_LABEL] == "true"
    };
    if server.known(&key).await?.is_some_and(|entry| labelled(&entry.value)) {
        return Ok(true);
    }
    Ok(server.get(&key).await?.is_some_and(|entry| labelled(&entry.value)))
}

/// Somebody says something in the status of a claim.
struct Saying<'a> {
    write: Write<'a>,
    user: &'a User,
    namespace: &'a str,
}

impl Saying<'_> {
    fn mistakes(&self, before: &Value, after: &Value) -> Vec<FieldError> {
        let verb = self.write.verb;
        let mut errors = Vec::new();
        let same = |field: &str| said(&before[field]) == said(&after[field]);
        if !(same("allocation") && same("reservedFor"))
            && let Err(why) = self.may(verb, "binding", ["", ""])
        {
            let why = format!(
                "changing status.allocation or status.reservedFor requires \
                 resource=\"resourceclaims/binding\", verb=\"{verb}\" permission: {why}"
            );
            errors.push(FieldError::forbidden("status.allocation", &why));
        }
        // With the allocation goes what was said of the devices, whoever takes it away.
        if !after["allocation"].is_null() {
            errors.extend(self.about_devices(before, after));
        }
        errors
    }

    fn about_devices(&self, before: &Value, after: &Value) -> Vec<FieldError> {
        let verb = self.write.verb;
        let mut verbs = vec![format!("arbitrary-node:{verb}")];
        if runs_on(self.user, allocated_node(&after["allocation"])) {
            verbs.insert(0, format!("associated-node:{verb}"));
        }
        let refused = |driver: &str| {
            let asked = |verb: &String| self.may(verb, "driver", [self.namespace, driver]);
            let answers: Vec<_> = verbs.iter().map(asked).collect();
            let is_allowed = answers.iter().any(std::result::Result::is_ok);
            answers.into_iter().find_map(std::result::Result::err).filter(|_| !is_allowed)
        };
        let refusals = changed_drivers(&before["devices"], &after["devices"]).into_iter();
        let errors = refusals.filter_map(refused).map(|why| {
            let verbs = verbs.join(" ");
            let why = format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", \
                 verb=\"[{verbs}]\" permission: {why}"
            );
            FieldError::forbidden("status.devices", &why)
        });
        errors.collect()
    }

    /// Whether the user has a right; else why not.
    fn may(&self, verb: &str, subresource: &str, place: [&str; 2]) -> Result<(), String> {
        let [namespace, name] = place;
        let target = Target::Resource {
            group: GROUP,
            resource: "resourceclaims",
            subresource,
            namespace,
            name,
        };
        let asked = Attributes::new(self.user, verb, target);
        self.write.server.authorizer.authorize(&asked).map_err(|status| status.message)
    }
}

/// What a field says; what is empty says nothing.
fn said(value: &Value) -> Option<&Value> {
    (!value.is_null() && !value.as_array().is_some_and(Vec::is_empty)).then_some(value)
}

/// The drivers of devices of which something else is said than before.
fn changed_drivers<'a>(before: &'a Value, after: &'a Value) -> BTreeSet<&'a str> {
    let key = |device: &'a Value| {
        ["driver", "pool", "device", "shareID"].map(|key| device[key].as_str().unwrap_or(""))
    };
    let mut old: HashMap<[&str; 4], &Value> =
        items(before).iter().map(|device| (key(device), device)).collect();
    let mut drivers = BTreeSet::new();
    for device in items(after) {
        if old.remove(&key(device)) != Some(device) {
            drivers.insert(key(device)[0]);
        }
    }
    drivers.extend(old.into_keys().map(|[driver, ..]| driver));
    drivers
}

/// The only node that an allocation is for; empty where it may be another.
fn allocated_node(allocation: &Value) -> &str {
    let terms = items(&allocation["nodeSelector"]["nodeSelectorTerms"]);
    let [term] = terms else { return "" };
    let ([], [field]) = (items(&term["matchExpressions"]), items(&term["matchFields"])) else {
        return "";
    };
    match items(&field["values"]) {
        [node] if field["key"] == "metadata.name" && field["operator"] == "In" => {
            node.as_str().unwrap_or("")
        }
        _ => "",
    }
}

/// Whether a user is a service account whose token says that it is used on a node.
fn runs_on(user: &User, node: &str) -> bool {
    let of_token = user.extra.get(NODE_NAME).map_or(&[][..], Vec::as_slice);
    !node.is_empty()
        && service_account(&user.name).is_some()
        && of_token == [node]
        && names::dns1123_subdomain(node).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drivers_change_with_what_is_said_of_their_devices() {
        let entry = |driver: &str, data: i32| json!({"driver": driver, "pool": "p", "device": "d", "data": data});
        let before = json!([entry("a", 1), entry("b", 1), entry("c", 1)]);
        let after = json!([entry("d", 1), entry("b", 2), entry("c", 1)]);
        let changed: Vec<&str> = changed_drivers(&before, &after).into_iter().collect();
        assert_eq!(changed, ["a", "b", "d"]);
        assert!(changed_drivers(&Value::Null, &json!([])).is_empty());
    }

    #[test]
    fn only_an_account_on_the_node_of_the_devices_is_associated_with_it() {
        let allocation = |key: &str, values: &Value| {
            let field = json!({"key": key, "operator": "In", "values": values});
            json!({"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}})
        };
        let on = |name: &str, nodes: &[&str]| {
            let nodes = nodes.iter().map(|&node| node.to_owned()).collect();
            let extra = [(NODE_NAME.to_owned(), nodes)].into();
            User { name: name.to_owned(), extra, ..User::default() }
        };
        let account = "system:serviceaccount:ns:driver";
        let here = allocation("metadata.name", &json!(["n"]));
        for (user, allocation, expected) in [
            (on(account, &["n"]), &here, true),
            (on(account, &["other"]), &here, false),
            (on(account, &["n", "n"]), &here, false),
            (on("jane", &["n"]), &here, false),
            (on(account, &["n"]), &allocation("metadata.name", &json!(["n", "m"])), false),
            (on(account, &["n"]), &allocation("other", &json!(["n"])), false),
            (on(account, &[""]), &Value::Null, false),
        ] {
            assert_eq!(runs_on(&user, allocated_node(allocation)), expected, "{user:?}");
        }
    }
}

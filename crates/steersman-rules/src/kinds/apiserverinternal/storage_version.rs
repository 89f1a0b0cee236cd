//! `StorageVersion`: in which version each API server stores the objects of a resource, and whether all
//! agree.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, text};
use crate::table::cells::at_most_or_unset;
use crate::table::{Column, age};

/// So many servers are shown.
const SHOWN: usize = 3;

/// What is said of `StorageVersion`.
pub(super) const KIND: Kind = Kind {
    plural: "storageversions",
    name: "StorageVersion",
    traits: &[Trait::OnRequest, Trait::VersionedUpdate, Trait::StatusAlone, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1alpha1")
};

const RULES: Rules = Rules { status: Some(|| json!({})), check_status, ..Rules::NONE };

fn check_status(version: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let status = version.at("status");
    let mut seen = HashSet::new();
    for server in status.each("storageVersions") {
        let id = server.at("apiServerID");
        if !seen.insert(id.text()) {
            errors.push(id.duplicate());
        }
        check_server(&server, errors);
    }
    check_common(&status, errors);
    check_conditions(&status, errors);
}

fn check_server(server: &At<'_, '_>, errors: &mut Errors) {
    server.at("apiServerID").follows(names::dns1123_subdomain, errors);
    let encodes = server.at("encodingVersion");
    encodes.follows_at_once(api_version, errors);
    for decodes in server.each("decodableVersions") {
        decodes.follows_at_once(api_version, errors);
    }
    let all = server.at("decodableVersions");
    let versions: Vec<&str> = all.list().iter().map(text).collect();
    let listed = versions.join(" ");
    let decodable: HashSet<&str> = versions.into_iter().collect();
    if !decodable.contains(encodes.text()) {
        let detail = format!("decodableVersions must include encodingVersion {}", encodes.text());
        errors.push(all.invalid(&detail));
    }
    for serves in server.each("servedVersions") {
        serves.follows_at_once(api_version, errors);
        if errors.is_full() {
            return;
        }
        if !decodable.contains(serves.text()) {
            let served = serves.text();
            let detail = format!(
                "individual served version : {served} must be included in decodableVersions : \
                 [{listed}]"
            );
            errors.push(serves.invalid(&detail));
        }
    }
}

/// What `apps/v1` or `v1` requires.
fn api_version(value: &str) -> Vec<String> {
    let parts: Vec<&str> = value.split('/').collect();
    let (group, version) = match parts[..] {
        [version] => (None, version),
        [group, version] => (Some(group), version),
        _ => {
            let rule = names::dns1035_rule(
                "a DNS-1035 label, which must consist of lower case alphanumeric characters or \
                 '-', start with an alphabetic character, and end with an alphanumeric character",
            );
            return vec![format!(
                "an apiVersion is {rule} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyVersion')"
            )];
        }
    };
    let of_group = group.map(|group| part("group", group, names::dns1123_subdomain));
    let of_version = part("version", version, names::dns1035_label);
    of_group.into_iter().flatten().chain(of_version).collect()
}

fn part(which: &str, value: &str, rule: fn(&str) -> Vec<String>) -> Vec<String> {
    let complaints = match value {
        "" => vec!["must be non-empty".to_owned()],
        value => rule(value),
    };
    complaints.into_iter().map(|complaint| format!("{which} part: {complaint}")).collect()
}

/// The version in which all servers encode, if they agree.
fn common(servers: &[Value]) -> Option<&str> {
    let mut versions = servers.iter().map(|server| text(&server["encodingVersion"]));
    let first = versions.next()?;
    versions.all(|other| other == first).then_some(first)
}

fn check_common(status: &At<'_, '_>, errors: &mut Errors) {
    let said = status.at("commonEncodingVersion");
    let detail = match (common(status.at("storageVersions").list()), said.value.as_str()) {
        (None, Some(_)) => {
            "should be nil if servers do not agree on the same encoding version, or if there is \
             no server reporting the supported versions yet"
                .to_owned()
        }
        (Some(common), None) => format!("the common encoding version is {common}"),
        (Some(common), Some(said)) if common != said => {
            format!("the actual common encoding version is {common}")
        }
        _ => return,
    };
    errors.push(said.invalid(&detail));
}

fn check_conditions(status: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = HashMap::new();
    for (index, condition) in items(&status.value["conditions"]).iter().enumerate() {
        // Kubernetes leaves `conditions` out of the way.
        let path = format!("status[{index}]");
        let at = At::new(condition, &path);
        let kind = at.at("type");
        if let Some(first) = seen.insert(kind.text(), index) {
            let detail = format!(
                "the type of the condition is not unique, it also appears in conditions[{first}]"
            );
            errors.push(kind.invalid(&detail));
        }
        kind.follows(names::qualified_name, errors);
        at.at("status").follows(names::qualified_name, errors);
        at.require_all(&["reason", "message"], errors);
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::field("CommonEncodingVersion", "status.commonEncodingVersion", "<unset>"),
        Column::text("StorageVersions", storage_versions),
        age(),
    ]
}

fn storage_versions(version: &Value, _: Timestamp) -> Value {
    let of_server = |server: &Value| {
        let [id, encodes] = ["apiServerID", "encodingVersion"].map(|key| text(&server[key]));
        format!("{id}={encodes}")
    };
    let servers = items(&version["status"]["storageVersions"]).iter();
    at_most_or_unset(&servers.map(of_server).collect::<Vec<_>>(), SHOWN).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldError;

    fn server(id: &str, encodes: &str, decodes: &[&str]) -> Value {
        json!({"apiServerID": id, "encodingVersion": encodes, "decodableVersions": decodes})
    }

    fn status(servers: &[Value], common: Option<&str>) -> Value {
        json!({"status": {"storageVersions": servers, "commonEncodingVersion": common}})
    }

    fn told(new: &Value) -> Vec<String> {
        let errors = RULES.validate_status_update(&Value::Null, new);
        errors.iter().map(FieldError::message).collect()
    }

    #[test]
    fn a_server_decodes_what_it_encodes() {
        let sound = server("apiserver-1", "apps/v1", &["apps/v1", "apps/v1beta1"]);
        assert_eq!(told(&status(std::slice::from_ref(&sound), Some("apps/v1"))), [""; 0]);
        let other = server("apiserver-1", "v1", &["v2"]);
        assert_eq!(
            told(&status(&[other], Some("v1"))),
            ["status.storageVersions[0].decodableVersions: Invalid value: [\"v2\"]: \
              decodableVersions must include encodingVersion v1"]
        );
        let wrong = server("No_id", "/", &["/", "a/b/c"]);
        let complaints = told(&status(&[wrong], Some("/")));
        let places = complaints.iter().map(|it| it.split(": ").next().unwrap());
        let list = "status.storageVersions[0]";
        assert_eq!(
            places.collect::<Vec<_>>(),
            [
                format!("{list}.apiServerID"),
                format!("{list}.encodingVersion"),
                format!("{list}.decodableVersions[0]"),
                format!("{list}.decodableVersions[1]"),
            ]
        );
        assert!(
            complaints[1]
                .ends_with("group part: must be non-empty,version part: must be non-empty"),
            "{complaints:?}"
        );
    }

    #[test]
    fn a_server_is_told_of_once_and_serves_what_it_decodes() {
        let mut first = server("a", "v1", &["v1", "v2"]);
        first["servedVersions"] = json!(["v2", "v3", "V"]);
        let told = told(&status(&[first, server("a", "v1", &["v1"])], Some("v1")));
        let list = "status.storageVersions";
        let unknown = "must be included in decodableVersions : [v1 v2]";
        assert_eq!(
            [&told[0], &told[2], &told[3]],
            [
                &format!(
                    "{list}[0].servedVersions[1]: Invalid value: \"v3\": individual served version \
                     : v3 {unknown}"
                ),
                &format!(
                    "{list}[0].servedVersions[2]: Invalid value: \"V\": individual served version : \
                     V {unknown}"
                ),
                &format!("{list}[1].apiServerID: Duplicate value: \"a\""),
            ]
        );
        assert!(
            told[1].contains("servedVersions[2]: Invalid value: \"V\": version part: a DNS-1035")
        );
        assert_eq!(told.len(), 4);
    }

    #[test]
    fn what_is_common_is_what_all_say() {
        let [one, two] = ["v1", "v2"].map(|it| server(it, it, &["v1", "v2"]));
        for (servers, common, expected) in [
            (&[][..], None, None),
            (
                &[],
                Some("v1"),
                Some(
                    "should be nil if servers do not agree on the same encoding \
                version, or if there is no server reporting the supported versions yet",
                ),
            ),
            (std::slice::from_ref(&one), None, Some("the common encoding version is v1")),
            (
                std::slice::from_ref(&one),
                Some("v2"),
                Some("the actual common encoding version is v1"),
            ),
            (&[one.clone(), two.clone()], None, None),
            (&[one.clone(), server("other", "v1", &["v1"])], Some("v1"), None),
        ] {
            let told = told(&status(servers, common));
            let found: Vec<&str> = told.iter().map(|it| it.rsplit(": ").next().unwrap()).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{servers:?} {common:?}");
        }
    }

    #[test]
    fn conditions_are_complete_and_differ() {
        let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "m"});
        let conditions = [condition("A", "R"), condition("A", "")];
        let object = json!({"status": {"conditions": conditions}});
        assert_eq!(
            told(&object),
            [
                "status[1].type: Invalid value: \"A\": the type of the condition is not unique, it \
                 also appears in conditions[0]",
                "status[1].reason: Required value",
            ]
        );
    }

    #[test]
    fn three_servers_are_shown() {
        let shown = |count: usize| {
            let servers: Vec<Value> =
                (0..count).map(|number| server(&format!("s{number}"), "v1", &["v1"])).collect();
            storage_versions(&status(&servers, Some("v1")), Timestamp::UNIX_EPOCH)
        };
        assert_eq!(shown(0), "<unset>");
        assert_eq!(shown(2), "s0=v1,s1=v1");
        assert_eq!(shown(5), "s0=v1,s1=v1,s2=v1 + 2 more...");
    }
}

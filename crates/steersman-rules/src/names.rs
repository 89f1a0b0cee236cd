//! What names, labels and metadata may look like, worded as Kubernetes words it.
//!
//! The rules for plain names are those of [`steersman_values::names`]. [`validate_metadata`] applies the
//! rules that hold for every object; a kind with a stricter rule for its name adds it itself.

mod domain;
mod manager;

use std::net::IpAddr;

use serde_json::{Map, Value};

pub use self::domain::{
    domain_prefixed_path, fully_qualified_domain, fully_qualified_name, host_or_wildcard,
};
pub use self::manager::validate_manager;
use self::manager::validate_managers;
use crate::field::{Errors, FieldError, shown_as_json};

pub use steersman_values::names::{
    config_key, dns1035_label, dns1035_rule, dns1123_label, dns1123_subdomain, label_value,
    path_segment, port_name, qualified_name,
};

const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
const UNKNOWN_FINALIZER: &str =
    "name is neither a standard finalizer name nor is it fully qualified";

/// The mistakes in a map of labels.
pub fn validate_labels(labels: &Value, field: &str) -> Vec<FieldError> {
    let mistakes = label_mistakes(labels);
    mistakes.map(|(text, why)| FieldError::invalid(field, &text.into(), &why)).collect()
}

/// The keys and values of labels that break a rule, and which.
pub fn label_mistakes(labels: &Value) -> impl Iterator<Item = (&str, String)> {
    let of = |text, rule: fn(&str) -> Vec<String>| {
        rule(text).into_iter().map(move |complaint| (text, complaint))
    };
    labels.as_object().into_iter().flatten().flat_map(move |(key, value)| {
        let value = value.as_str().unwrap_or_default();
        of(key.as_str(), qualified_name).chain(of(value, label_value))
    })
}

/// The mistakes in an object's metadata: names, labels, annotations, finalizers, owners, managers.
/// `object` is the whole object; its name is held to `name_rule`.
pub fn validate_metadata_with(
    object: &Value,
    namespaced: bool,
    name_rule: fn(&str) -> Vec<String>,
) -> Vec<FieldError> {
    let metadata = &object["metadata"];
    let mut errors = validate_name(metadata, name_rule);
    errors.extend(validate_namespace(metadata, namespaced));
    if metadata["generation"].as_i64().is_some_and(|generation| generation < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", &metadata["generation"], why));
    }
    errors.extend(validate_labels(&metadata["labels"], "metadata.labels"));
    errors.extend(validate_annotations(&metadata["annotations"], "metadata.annotations"));
    errors.extend(validate_owners(&metadata["ownerReferences"]));
    errors.extend(validate_finalizers(&metadata["finalizers"]));
    errors.extend(validate_managers(&metadata["managedFields"]));
    errors
}

/// [`validate_metadata_with`] the rule that the kind has for its names.
pub fn validate_metadata(object: &Value, namespaced: bool) -> Vec<FieldError> {
    let [version, kind] = ["apiVersion", "kind"].map(|key| object[key].as_str().unwrap_or(""));
    let rule = match (version.rsplit_once('/').map_or("", |(group, _)| group), kind) {
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => dns1123_label,
        ("networking.k8s.io", "IPAddress") => ip_address,
        ("internal.apiserver.k8s.io", "StorageVersion") => group_and_resource,
        ("", "Event")
        | ("policy", "PodDisruptionBudget")
        | ("rbac.authorization.k8s.io" | "certificates.k8s.io" | "apiregistration.k8s.io", _) => {
            path_segment
        }
        _ => dns1123_subdomain,
    };
    validate_metadata_with(object, namespaced, rule)
}

/// What the name of an `IPAddress` requires: the address, as it should be written.
fn ip_address(value: &str) -> Vec<String> {
    match value.parse::<IpAddr>() {
        Ok(ip) if ip != ip.to_canonical() => {
            vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
        }
        Ok(ip) if ip.to_string() != value => {
            vec![format!("must be in canonical form ({:?})", ip.to_string())]
        }
        Ok(_) => Vec::new(),
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
    }
}

/// What the name of a `StorageVersion` requires: the group and the resource that it is of.
fn group_and_resource(value: &str) -> Vec<String> {
    let Some((group, resource)) = value.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let group = dns1123_subdomain(group).into_iter().map(|it| format!("the group segment {it}"));
    let resource = dns1035_label(resource).into_iter();
    group.chain(resource.map(|it| format!("the resource segment {it}"))).collect()
}

/// The complaints of a rule about a value, as errors of a field.
pub fn invalid(field: &str, value: &str, rule: fn(&str) -> Vec<String>) -> Vec<FieldError> {
    rule(value).iter().map(|m| FieldError::invalid(field, &Value::from(value), m)).collect()
}

/// What a rule says of the beginning of a name: something is appended, so it may end where a name
/// may not.
pub(crate) fn prefix(base: &str, rule: fn(&str) -> Vec<String>) -> Vec<String> {
    let masked = base.strip_suffix('-').filter(|b| !b.is_empty()).map(|b| {
        let kept = b.char_indices().next_back().map_or(0, |(last, _)| last);
        format!("{}a", &b[..kept])
    });
    rule(masked.as_deref().unwrap_or(base))
}

fn validate_name(metadata: &Value, rule: fn(&str) -> Vec<String>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(base) = metadata["generateName"].as_str().filter(|base| !base.is_empty()) {
        let complaints = prefix(base, rule);
        let value = Value::from(base);
        let field = "metadata.generateName";
        errors.extend(complaints.iter().map(|m| FieldError::invalid(field, &value, m)));
    }
    match metadata["name"].as_str().unwrap_or_default() {
        "" => {
            errors.push(FieldError::required("metadata.name", "name or generateName is required"));
        }
        name => errors.extend(invalid("metadata.name", name, rule)),
    }
    errors
}

fn validate_namespace(metadata: &Value, namespaced: bool) -> Vec<FieldError> {
    const FIELD: &str = "metadata.namespace";
    match (metadata["namespace"].as_str().unwrap_or_default(), namespaced) {
        ("", true) => vec![FieldError::required(FIELD, "")],
        ("", false) => Vec::new(),
        (namespace, true) => invalid(FIELD, namespace, dns1123_label),
        (_, false) => vec![FieldError::forbidden(FIELD, "not allowed on this type")],
    }
}

/// The mistakes in annotations.
pub fn validate_annotations(annotations: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in annotations.as_object().into_iter().flat_map(Map::keys) {
        let complaints = qualified_name(&key.to_lowercase());
        let value_of = Value::from(key.as_str());
        errors.extend(complaints.iter().map(|m| FieldError::invalid(field, &value_of, m)));
    }
    if are_too_large(annotations) {
        errors.push(FieldError::too_long(field, ANNOTATIONS_MAX_BYTES));
    }
    errors
}

/// Whether annotations take more room than an object has for them.
pub(crate) fn are_too_large(annotations: &Value) -> bool {
    let annotations = annotations.as_object().into_iter().flatten();
    let sizes = annotations.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len));
    sizes.sum::<usize>() > ANNOTATIONS_MAX_BYTES
}

fn validate_owners(owners: &Value) -> Vec<FieldError> {
    const FIELD: &str = "metadata.ownerReferences";
    let owners = owners.as_array().map_or(&[][..], Vec::as_slice);
    let mut errors = Errors::default();
    let mut controller: Option<String> = None;
    // All of them, for every controller after the first: written once, however many these are.
    let mut all: Option<String> = None;
    for owner in owners {
        if errors.is_full() {
            break;
        }
        errors.extend(validate_owner(owner, FIELD));
        if owner["controller"] != true {
            continue;
        }
        let named = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        match &controller {
            None => controller = Some(named),
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in \
                     references for {first} and {named}"
                );
                let shown = all.get_or_insert_with(|| {
                    let shown: Vec<String> = owners.iter().map(shown_owner).collect();
                    format!("[{}]", shown.join(","))
                });
                errors.push(FieldError::invalid_shown(FIELD, shown, &detail));
            }
        }
    }
    errors.into()
}

/// A reference to an owner with its fields in the order of Kubernetes.
fn shown_owner(owner: &Value) -> String {
    let texts = ["apiVersion", "kind", "name", "uid"].map(|key| Some((key, &owner[key])));
    let flags = ["controller", "blockOwnerDeletion"].map(|key| (key, &owner[key]));
    let flags = flags.into_iter().map(|flag| Some(flag).filter(|(_, value)| !value.is_null()));
    let fields = texts.into_iter().chain(flags).flatten().map(|(key, value)| match value {
        Value::Null => format!("{key:?}:\"\""),
        value => format!("{key:?}:{}", shown_as_json(value)),
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

fn validate_owner(owner: &Value, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let version = match text(owner, "apiVersion").split('/').collect::<Vec<_>>()[..] {
        [version] | [_, version] => version,
        _ => "",
    };
    for (key, value, detail) in [
        ("apiVersion", version, "version must not be empty"),
        ("kind", text(owner, "kind"), "must not be empty"),
        ("name", text(owner, "name"), "must not be empty"),
        ("uid", text(owner, "uid"), "must not be empty"),
    ] {
        if value.is_empty() {
            let value = Value::from(text(owner, key));
            errors.push(FieldError::invalid(format!("{field}.{key}"), &value, detail));
        }
    }
    if owner["apiVersion"] == "v1" && owner["kind"] == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        errors.push(FieldError::invalid_shown(field, &shown_owner(owner), detail));
    }
    errors
}

fn validate_finalizers(finalizers: &Value) -> Vec<FieldError> {
    const FIELD: &str = "metadata.finalizers";
    let names: Vec<_> =
        finalizers.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut errors: Vec<_> =
        names.iter().flat_map(|name| invalid(FIELD, name, qualified_name)).collect();
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(FIELD, finalizers, detail));
    }
    errors
}

/// The mistakes in the name of a finalizer of a built-in kind.
pub fn finalizer(field: &str, name: &str) -> Vec<FieldError> {
    let mut errors = invalid(field, name, qualified_name);
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        errors.push(FieldError::invalid(field, &Value::from(name), UNKNOWN_FINALIZER));
    }
    errors
}

/// The finalizers of a built-in kind that are neither Kubernetes' own nor have a prefix.
pub fn validate_finalizer_prefixes(object: &Value) -> Vec<FieldError> {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    let named = finalizers.enumerate().filter_map(|(i, value)| Some((i, value, value.as_str()?)));
    let bare =
        named.filter(|(_, _, name)| !name.contains('/') && !STANDARD_FINALIZERS.contains(name));
    bare.map(|(i, value, _)| {
        FieldError::invalid(format!("metadata.finalizers[{i}]"), value, UNKNOWN_FINALIZER)
    })
    .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::metadata::drop_repeated_owners;

    #[test]
    fn tens_of_thousands_of_owners_are_looked_at_once_each() {
        let owner = |n: usize| json!({"uid": n.to_string(), "controller": true});
        let owners: Vec<Value> = (0..40_000).map(owner).chain([owner(7)]).collect();
        let mut object = json!({"metadata": {"name": "web", "ownerReferences": owners}});
        assert_eq!(drop_repeated_owners(&mut object), ["7"]);
        let errors = validate_metadata(&object, false);
        let told: usize = errors.iter().map(|error| error.message().len()).sum();
        assert!(told < 2 << 20, "{told} bytes in {} mistakes", errors.len());
    }

    #[test]
    fn complaints_are_worded_as_kubernetes_words_them() {
        let object = json!({"metadata": {"name": "Web"}});
        let errors = validate_metadata(&object, false);
        assert_eq!(
            errors[0].message(),
            "metadata.name: Invalid value: \"Web\": a lowercase RFC 1123 subdomain must consist \
             of lower case alphanumeric characters, '-' or '.', and must start and end with an \
             alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        );
    }

    #[test]
    fn metadata_mistakes_name_their_field() {
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"});
        let cases = [
            (json!({}), vec!["metadata.name"]),
            (json!({"name": "a", "labels": {"-": "x"}}), vec!["metadata.labels"]),
            (json!({"name": "a", "labels": {"a": "-"}}), vec!["metadata.labels"]),
            (json!({"name": "a", "annotations": {"a b": ""}}), vec!["metadata.annotations"]),
            (
                json!({"name": "a", "annotations": {"a": "x".repeat(ANNOTATIONS_MAX_BYTES)}}),
                vec!["metadata.annotations"],
            ),
            (json!({"name": "a", "finalizers": ["a b"]}), vec!["metadata.finalizers"]),
            (
                json!({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}),
                vec!["metadata.finalizers"],
            ),
            (json!({"name": "a", "ownerReferences": [owner]}), vec![]),
            (
                json!({"name": "a", "ownerReferences": [{"kind": "Pod", "name": "a"}]}),
                vec!["metadata.ownerReferences.apiVersion", "metadata.ownerReferences.uid"],
            ),
            (json!({"name": "a-b", "generateName": "a-"}), vec![]),
            (json!({"name": "a", "generateName": "Ab-"}), vec!["metadata.generateName"]),
            (json!({"name": "a", "generateName": "-"}), vec!["metadata.generateName"]),
            (
                json!({"name": "a", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"},
                ]}),
                vec!["metadata.ownerReferences"],
            ),
            (
                json!({"name": "a", "ownerReferences": [
                    {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": true},
                    {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "v", "controller": true},
                ]}),
                vec!["metadata.ownerReferences"],
            ),
        ];
        for (metadata, fields) in cases {
            let errors = validate_metadata(&json!({"metadata": metadata}), false);
            let found: Vec<_> = errors.iter().map(|e| e.field.as_str()).collect();
            assert_eq!(found, fields, "{metadata}");
        }
    }

    #[test]
    fn owners_are_shown_in_the_order_of_their_fields() {
        let owner = |kind: &str| {
            json!({
                "apiVersion": "v1", "kind": kind, "name": "a", "uid": "u", "controller": true,
            })
        };
        let object =
            json!({"metadata": {"name": "a", "ownerReferences": [owner("A"), owner("B")]}});
        let shown = |kind: &str| {
            format!(
                r#"{{"apiVersion":"v1","kind":"{kind}","name":"a","uid":"u","controller":true}}"#
            )
        };
        assert_eq!(
            validate_metadata(&object, false)[0].message(),
            format!(
                "metadata.ownerReferences: Invalid value: [{},{}]: Only one reference can have \
                 Controller set to true. Found \"true\" in references for A/a and B/a",
                shown("A"),
                shown("B"),
            )
        );
    }

    #[test]
    fn a_namespace_is_required_or_forbidden_by_scope() {
        let with = json!({"metadata": {"name": "a", "namespace": "default"}});
        let without = json!({"metadata": {"name": "a"}});
        assert!(validate_metadata(&with, true).is_empty());
        assert!(validate_metadata(&without, false).is_empty());
        assert_eq!(
            validate_metadata(&without, true)[0].message(),
            "metadata.namespace: Required value"
        );
        assert_eq!(
            validate_metadata(&with, false)[0].message(),
            "metadata.namespace: Forbidden: not allowed on this type"
        );
    }

    #[test]
    fn the_kind_decides_the_rule_for_its_name() {
        for (version, kind, name, fine) in [
            ("v1", "Namespace", "a.b", false),
            ("v1", "Service", "1a", true),
            ("v1", "Service", "a.b", false),
            ("serving.example.com/v1", "Service", "a.b", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "system:node", true),
            ("example.com/v1", "ClusterRole", "system:node", false),
            ("certificates.k8s.io/v1", "CertificateSigningRequest", "a:b", true),
            ("v1", "Event", "A_b", true),
            ("events.k8s.io/v1", "Event", "A_b", false),
            ("networking.k8s.io/v1", "IPAddress", "10.0.0.1", true),
            ("networking.k8s.io/v1", "IPAddress", "fd00::1", true),
            ("networking.k8s.io/v1", "IPAddress", "FD00::1", false),
            ("networking.k8s.io/v1", "IPAddress", "a", false),
            ("v1", "Pod", "1a.b", true),
        ] {
            let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
            assert_eq!(validate_metadata(&object, false).is_empty(), fine, "{kind} {name}");
        }
    }
}

//! Which tokens nobody uses, and what becomes of them.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use serde_json::Value;
use steersman::ObjectKey;

const TYPE: &str = "kubernetes.io/service-account-token";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
pub(super) const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// How long a token is kept that nobody uses, and how long it is kept as invalid.
const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// When to look again at a token that stays for reasons which its Secret does not show.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_hours(24);

/// What becomes of a token that nobody has used for a year.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is invalid from this day on.
    Mark(String),
    /// It is invalid, and is kept until then.
    Wait(Timestamp),
    Delete,
}

pub(super) fn is_token(secret: &Secret) -> bool {
    secret.type_.as_deref() == Some(TYPE) && secret.metadata.deletion_timestamp.is_none()
}

/// When nobody has used a token for a year, unless somebody does; `None` if nobody can tell.
pub(super) fn unused_since_a_year(secret: &Secret) -> Option<Timestamp> {
    let created = secret.metadata.creation_timestamp.as_ref()?.0.checked_add(YEAR).ok()?;
    match label(secret, LAST_USED) {
        None => Some(created),
        Some(day) => Some(created.max(a_year_after(day)?)),
    }
}

/// When the API server has noted for a year which tokens are used.
pub(super) fn tracked_for_a_year(map: &ConfigMap) -> Option<Timestamp> {
    a_year_after(map.data.as_ref()?.get("since")?)
}

/// What becomes of a token, now that nobody has used it for a year.
pub(super) fn judge(secret: &Secret, now: Timestamp) -> Verdict {
    match label(secret, INVALID_SINCE).and_then(a_year_after) {
        None => Verdict::Mark(now.to_zoned(TimeZone::UTC).date().to_string()),
        Some(end) if now < end => Verdict::Wait(end),
        Some(_) => Verdict::Delete,
    }
}

/// The account of a token.
pub(super) fn account_of(secret: &Secret) -> Option<ObjectKey> {
    let name = annotation(secret, ACCOUNT_NAME)?;
    Some(ObjectKey::namespaced(secret.metadata.namespace.as_deref()?, name))
}

/// Whether an account, which must be the token's own, lists its Secret.
pub(super) fn lists(account: &ServiceAccount, secret: &Secret) -> bool {
    let uid = annotation(secret, ACCOUNT_UID);
    let is_own = uid.is_none_or(|uid| account.metadata.uid.as_deref() == Some(uid));
    is_own && account.secrets.iter().flatten().any(|listed| listed.name == secret.metadata.name)
}

/// Whether a Pod needs a Secret, wherever in its spec.
pub(super) fn mounts(pod: &Pod, secret: &Secret) -> bool {
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    serde_json::to_value(&pod.spec).is_ok_and(|spec| names(&spec, name))
}

fn names(value: &Value, name: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| names(item, name)),
        Value::Object(fields) => fields.iter().any(|(field, value)| {
            let is_secret = match field.as_str() {
                "secret" | "azureFile" => value["secretName"] == name || value["name"] == name,
                "secretRef" | "secretKeyRef" | "nodePublishSecretRef" => value["name"] == name,
                "imagePullSecrets" => {
                    value.as_array().is_some_and(|all| all.iter().any(|it| it["name"] == name))
                }
                _ => false,
            };
            is_secret || names(value, name)
        }),
        _ => false,
    }
}

fn label<'a>(secret: &'a Secret, name: &str) -> Option<&'a str> {
    secret.metadata.labels.as_ref()?.get(name).map(String::as_str)
}

fn annotation<'a>(secret: &'a Secret, name: &str) -> Option<&'a str> {
    let value = secret.metadata.annotations.as_ref()?.get(name)?;
    (!value.is_empty()).then_some(value.as_str())
}

/// When a whole year has passed since the end of a day.
fn a_year_after(day: &str) -> Option<Timestamp> {
    let day: Date = day.parse().ok()?;
    let begin = day.to_zoned(TimeZone::UTC).ok()?.timestamp();
    begin.checked_add(DAY + YEAR).ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn token(labels: &Value) -> Secret {
        let mut secret: Secret = serde_json::from_value(json!({
            "metadata": {"name": "robot-token", "namespace": "default", "labels": labels,
                "annotations": {ACCOUNT_NAME: "robot", ACCOUNT_UID: "1"}},
            "type": TYPE,
        }))
        .unwrap();
        secret.metadata.creation_timestamp = Some(Time(at("2030-01-01T12:00:00Z")));
        secret
    }

    #[test]
    fn a_token_is_unused_a_year_after_it_was_made_or_the_day_when_it_was_used_last() {
        for (labels, expected) in [
            (json!({}), Some("2031-01-01T12:00:00Z")),
            (json!({LAST_USED: "2030-03-01"}), Some("2031-03-02T00:00:00Z")),
            (json!({LAST_USED: "2029-03-01"}), Some("2031-01-01T12:00:00Z")),
            (json!({LAST_USED: "yesterday"}), None),
        ] {
            assert_eq!(unused_since_a_year(&token(&labels)), expected.map(at), "{labels}");
        }
    }

    #[test]
    fn an_unused_token_is_marked_and_deleted_a_year_later() {
        let now = at("2031-06-01T08:00:00Z");
        for (labels, expected) in [
            (json!({}), Verdict::Mark("2031-06-01".into())),
            (json!({INVALID_SINCE: "soon"}), Verdict::Mark("2031-06-01".into())),
            (json!({INVALID_SINCE: "2031-01-01"}), Verdict::Wait(at("2032-01-02T00:00:00Z"))),
            (json!({INVALID_SINCE: "2030-05-30"}), Verdict::Delete),
        ] {
            assert_eq!(judge(&token(&labels), now), expected, "{labels}");
        }
    }

    #[test]
    fn a_token_is_mounted_wherever_a_pod_names_it() {
        let is_mounted = |spec: Value| {
            let pod: Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
            mounts(&pod, &token(&json!({})))
        };
        let name = "robot-token";
        let volume = |volume: Value| {
            let mut volume = volume;
            volume["name"] = "v".into();
            json!({"containers": [], "volumes": [volume]})
        };
        assert!(is_mounted(volume(json!({"secret": {"secretName": name}}))));
        assert!(is_mounted(volume(
            json!({"projected": {"sources": [{"secret": {"name": name}}]}})
        )));
        assert!(is_mounted(json!({"containers": [], "imagePullSecrets": [{"name": name}]})));
        let env = json!([{"name": "T", "valueFrom": {"secretKeyRef": {"name": name, "key": "t"}}}]);
        assert!(is_mounted(json!({"containers": [{"name": "c", "env": env}]})));
        assert!(!is_mounted(volume(json!({"secret": {"secretName": "other"}}))));
        assert!(!is_mounted(volume(json!({"configMap": {"name": name}}))));
    }

    #[test]
    fn only_its_own_account_makes_a_token_a_generated_one() {
        let account = |uid: &str, listed: &str| -> ServiceAccount {
            let meta = json!({"name": "robot", "namespace": "default", "uid": uid});
            serde_json::from_value(json!({"metadata": meta, "secrets": [{"name": listed}]}))
                .unwrap()
        };
        let secret = token(&json!({}));
        assert!(lists(&account("1", "robot-token"), &secret));
        assert!(!lists(&account("2", "robot-token"), &secret));
        assert!(!lists(&account("1", "other"), &secret));
    }
}

//! What is left when servers are gone.

use k8s_openapi::api::apiserverinternal::v1alpha1::StorageVersion;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Value, json};

use super::plan::{Step, is_identity, servers, step};

const BEFORE: &str = "2030-01-01T00:00:00Z";
const NOW: &str = "2030-01-01T00:00:30Z";

/// What these servers said: in which version they encode.
fn version(said: &[(&str, &str)], common: Option<&str>) -> StorageVersion {
    let entry = |(server, encodes): &(&str, &str)| json!({"apiServerID": server, "encodingVersion": encodes, "decodableVersions": ["v1", "v2"]});
    let said: Vec<Value> = said.iter().map(entry).collect();
    let (status, reason, message) = match common {
        Some(_) => ("True", "CommonEncodingVersionSet", "Common encoding version set"),
        None => ("False", "CommonEncodingVersionUnset", "Common encoding version unset"),
    };
    let condition = json!({"type": "AllEncodingVersionsEqual", "status": status, "reason": reason,
                           "message": message, "lastTransitionTime": BEFORE,
                           "observedGeneration": 1});
    let mut object = json!({
        "metadata": {"name": "apps.deployments", "generation": 1},
        "status": {"storageVersions": said, "conditions": [condition]},
    });
    if let Some(common) = common {
        object["status"]["commonEncodingVersion"] = common.into();
    }
    serde_json::from_value(object).unwrap()
}

/// What is left of it if these servers are there.
fn left(version: &StorageVersion, there: &[&str]) -> Step {
    step(version, |server| there.contains(&server), &Time(NOW.parse().unwrap()))
}

/// The servers, the common version, whether all are equal and since when.
fn told(step: &Step) -> (Vec<String>, Option<String>, String, String) {
    let Step::Update(version) = step else { panic!("{step:?} is no update") };
    let status = version.status.clone().unwrap();
    let [condition] = &status.conditions.unwrap()[..] else { panic!("one condition") };
    (
        servers(version).map(str::to_owned).collect(),
        status.common_encoding_version,
        format!("{}: {}: {}", condition.status, condition.reason, condition.message),
        condition.last_transition_time.as_ref().unwrap().0.to_string(),
    )
}

const SET: &str = "True: CommonEncodingVersionSet: Common encoding version set";
const UNSET: &str = "False: CommonEncodingVersionUnset: Common encoding version unset";

#[test]
fn what_a_server_said_goes_with_it() {
    let both = version(&[("a", "v1"), ("b", "v1")], Some("v1"));
    assert_eq!(left(&both, &["a", "b"]), Step::Keep);
    assert_eq!(left(&both, &["c"]), Step::Delete);
    let only_a = (vec!["a".to_owned()], Some("v1".to_owned()), SET.to_owned(), BEFORE.to_owned());
    assert_eq!(told(&left(&both, &["a"])), only_a, "they agree as before");
    assert_eq!(left(&version(&[], None), &[]), Step::Keep, "nobody has said anything");
    assert_eq!(left(&StorageVersion::default(), &[]), Step::Keep);
}

#[test]
fn those_that_are_left_may_agree_at_last() {
    let said = [("a", "v1"), ("b", "v2"), ("c", "v2")];
    let differ = version(&said, None);
    let agreed = (vec!["b".to_owned(), "c".to_owned()], Some("v2".to_owned()));
    let (servers, common, condition, since) = told(&left(&differ, &["b", "c"]));
    assert_eq!(((servers, common), &*condition, &*since), (agreed, SET, NOW));
    let (_, common, condition, since) = told(&left(&differ, &["a", "c"]));
    assert_eq!((common, &*condition, &*since), (None, UNSET, BEFORE), "as before");
    // What was said to be common was not.
    let (_, common, condition, since) = told(&left(&version(&said, Some("v1")), &["b"]));
    assert_eq!((common.as_deref(), &*condition, &*since), (Some("v2"), SET, NOW));
}

#[test]
fn a_condition_that_nobody_set_is_set() {
    let mut version = version(&[("a", "v1"), ("b", "v1")], Some("v1"));
    version.status.as_mut().unwrap().conditions = None;
    let (_, _, condition, since) = told(&left(&version, &["b"]));
    assert_eq!((&*condition, &*since), (SET, NOW));
}

#[test]
fn only_leases_of_api_servers_tell_of_them() {
    let labelled = |value: &str| ObjectMeta {
        labels: Some([("apiserver.kubernetes.io/identity".to_owned(), value.to_owned())].into()),
        ..ObjectMeta::default()
    };
    assert!(is_identity(&labelled("kube-apiserver")));
    assert!(!is_identity(&labelled("another")));
    assert!(!is_identity(&ObjectMeta::default()), "such as those of elections");
}

//! What workloads are warned of, and when.

use serde_json::{Value, json};

use super::workloads::object;
use crate::kinds::for_kind;

/// A workload with something to warn of in its template, changed in another part, and in no part.
fn with_warning(kind: (&str, &str)) -> [Value; 3] {
    let mut old = object(kind);
    old["metadata"]["generation"] = json!(1);
    let pod = match kind.1 {
        "CronJob" => &mut old["spec"]["jobTemplate"]["spec"]["template"]["spec"],
        _ => &mut old["spec"]["template"]["spec"],
    };
    pod["terminationGracePeriodSeconds"] = json!(-1);
    let mut changed = old.clone();
    changed["spec"]["minReadySeconds"] = json!(1);
    changed["metadata"]["generation"] = json!(2);
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    [old, changed, labelled]
}

const NEGATIVE: &str = "terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated \
     as 1";

#[test]
fn a_template_is_warned_about_whenever_the_object_asks_for_something_else() {
    for (kind, place) in [
        (("apps", "Deployment"), "spec.template.spec"),
        (("apps", "ReplicaSet"), "spec.template.spec"),
        (("apps", "StatefulSet"), "spec.template.spec"),
        (("batch", "Job"), "spec.template.spec"),
        (("batch", "CronJob"), "spec.jobTemplate.spec.template.spec"),
    ] {
        let rules = for_kind(kind.0, kind.1);
        let [old, changed, labelled] = with_warning(kind);
        let warning = format!("{place}.{NEGATIVE}");
        assert_eq!(rules.warnings(&old, None), [warning.as_str()], "{kind:?}");
        assert_eq!(rules.warnings(&changed, Some(&old)), [warning.as_str()], "{kind:?}");
        assert_eq!(rules.warnings(&labelled, Some(&old)), [""; 0], "{kind:?}");
    }
}

#[test]
fn a_daemon_set_is_warned_about_when_its_template_changes() {
    let rules = for_kind("apps", "DaemonSet");
    let [old, changed, _] = with_warning(("apps", "DaemonSet"));
    assert_eq!(rules.warnings(&changed, Some(&old)), [""; 0]);
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    rules.prepare_update(&old, &mut new);
    assert_eq!(rules.warnings(&new, Some(&old)), [format!("spec.template.spec.{NEGATIVE}")]);
}

#[test]
fn a_replication_controller_is_warned_about_the_template_that_goes() {
    let rules = for_kind("", "ReplicationController");
    let [old, _, _] = with_warning(("", "ReplicationController"));
    let mut new = old.clone();
    new["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
    new["metadata"]["generation"] = json!(2);
    let warning = format!("spec.template.spec.{NEGATIVE}");
    assert_eq!(rules.warnings(&new, Some(&old)), [warning.as_str()]);
    assert_eq!(rules.warnings(&old, Some(&new)), [""; 0]);
}

#[test]
fn parts_of_bytes_in_the_claims_of_a_set_are_warned_of_whenever_it_is_written() {
    let rules = for_kind("apps", "StatefulSet");
    let mut set = object(("apps", "StatefulSet"));
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "d"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}},
    }}]);
    let why = "fractional byte value \"1500m\" is invalid, must be an integer";
    let place = "spec.volumeClaimTemplates[0]";
    assert_eq!(rules.warnings(&set, None), [format!("{place}.resources.requests[storage]: {why}")]);
    assert_eq!(
        rules.warnings(&set, Some(&set)),
        [format!("{place}.Spec.resources.requests[storage]: {why}")]
    );
}

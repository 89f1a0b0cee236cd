//! What an existing role or binding lacks, and is given. What others gave it, it keeps: rules,
//! subjects, selectors, and labels and annotations of another value.

use serde_json::{Map, Value, json};
use steersman_rules::metadata;

use super::covered::missing;
use super::rules::{Rule, Subject};
use super::wanted::Wanted;
use crate::document::items;

/// The annotation by which an object is kept up to date, or not.
pub(super) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";

/// Whether a binding refers to another role than it should: that cannot be changed.
pub(super) fn has_another_role(wanted: &Wanted, object: &Value) -> bool {
    let Wanted::Binding(binding) = wanted else { return false };
    let kind = if binding.namespace.is_empty() { "ClusterRole" } else { "Role" };
    let role = &object["roleRef"];
    role["kind"] != kind || role["name"] != binding.role
}

/// Adds what an object lacks, and says whether that was anything.
pub(super) fn complete(wanted: &Wanted, object: &mut Value) -> bool {
    let mut changed = fill(object, "annotations", AUTO_UPDATE, "true");
    changed |= fill(object, "labels", BOOTSTRAPPING, "rbac-defaults");
    if let Some(label) = wanted.label() {
        changed |= fill(object, "labels", &label, "true");
    }
    match wanted {
        Wanted::Role(role) => {
            changed |= permit(object, role.rules.unwrap_or_default());
            changed |= permit(object, role.more);
            changed | gather(object, wanted.gathers().as_deref())
        }
        Wanted::Binding(binding) => changed | bind(object, &binding.subjects),
    }
}

/// Sets a label or an annotation that is not there.
fn fill(object: &mut Value, field: &str, key: &str, value: &str) -> bool {
    if !object["metadata"][field][key].is_null() {
        return false;
    }
    let all = metadata::of(object).entry(field).or_insert_with(|| Map::new().into());
    all[key] = value.into();
    true
}

/// Adds rules that are not permitted yet.
fn permit(object: &mut Value, rules: &[Rule]) -> bool {
    let missing = missing(rules, items(&object["rules"]));
    append(object, "rules", missing)
}

/// Lets a role gather those with a label, or none.
fn gather(object: &mut Value, label: Option<&str>) -> bool {
    let Some(label) = label else {
        let gathered = object.as_object_mut().and_then(|fields| fields.remove("aggregationRule"));
        return gathered.is_some_and(|rule| !rule.is_null());
    };
    let selector = json!({"matchLabels": {label: "true"}});
    if items(&object["aggregationRule"]["clusterRoleSelectors"]).contains(&selector) {
        return false;
    }
    if !object["aggregationRule"].is_object() {
        object["aggregationRule"] = json!({});
    }
    append(&mut object["aggregationRule"], "clusterRoleSelectors", vec![selector])
}

/// Adds subjects that are not bound yet.
fn bind(object: &mut Value, subjects: &[Subject]) -> bool {
    let existing = items(&object["subjects"]);
    let missing = subjects.iter().map(|subject| subject.document());
    let missing = missing.filter(|subject| !existing.contains(subject)).collect();
    append(object, "subjects", missing)
}

/// Adds items to a list, which is made if there is none and something to add.
fn append(object: &mut Value, field: &str, items: Vec<Value>) -> bool {
    if items.is_empty() {
        return false;
    }
    match object[field].as_array_mut() {
        Some(list) => list.extend(items),
        None => object[field] = items.into(),
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::fresh::{self, Stamp};
    use super::super::wanted::policy;
    use super::{Wanted, complete, has_another_role};

    fn wanted(kind: &str, name: &str) -> Wanted {
        policy(&|_, _| false).find(|wanted| wanted.kind() == kind && wanted.name() == name).unwrap()
    }

    fn new(wanted: &Wanted) -> Value {
        let stamp = Stamp { uid: "1", now: "2025-01-01T00:00:00Z" };
        serde_json::from_slice(&fresh::document(wanted, stamp)).unwrap()
    }

    #[test]
    fn a_new_object_lacks_nothing() {
        for wanted in policy(&|_, _| false) {
            let mut object = new(&wanted);
            let before = object.clone();
            assert!(!has_another_role(&wanted, &object), "{before}");
            assert!(!complete(&wanted, &mut object), "{before}");
            assert_eq!(object, before);
        }
    }

    #[test]
    fn what_was_taken_away_comes_back_and_what_was_added_stays() {
        let wanted = wanted("ClusterRole", "system:kube-dns");
        let extra = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]});
        let mut object = new(&wanted);
        object["rules"] = json!([extra]);
        object["metadata"]["labels"] = json!({"kubernetes.io/bootstrapping": "mine", "a": "b"});
        object["metadata"].as_object_mut().unwrap().remove("annotations");
        object["aggregationRule"] = json!({"clusterRoleSelectors": [{}]});
        assert!(complete(&wanted, &mut object));
        assert_eq!(object["rules"].as_array().unwrap().len(), 5);
        assert_eq!(object["rules"][0], extra);
        assert_eq!(
            object["rules"][1],
            json!({"apiGroups": [""], "resources": ["endpoints"], "verbs": ["list"]})
        );
        let meta = &object["metadata"];
        assert_eq!(meta["labels"], json!({"kubernetes.io/bootstrapping": "mine", "a": "b"}));
        assert_eq!(meta["annotations"][super::AUTO_UPDATE], "true");
        assert!(object.get("aggregationRule").is_none());
    }

    #[test]
    fn a_role_that_gathers_gets_its_selector_and_keeps_others() {
        let wanted = wanted("ClusterRole", "edit");
        let own = json!({"matchLabels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}});
        let other = json!({"matchLabels": {"a": "b"}});
        for (selectors, after) in [
            (json!(null), json!({"clusterRoleSelectors": [own]})),
            (json!({}), json!({"clusterRoleSelectors": [own]})),
            (
                json!({"clusterRoleSelectors": [other]}),
                json!({"clusterRoleSelectors": [other, own]}),
            ),
        ] {
            let mut object = new(&wanted);
            object["aggregationRule"] = selectors;
            object["rules"] = json!([]);
            assert!(complete(&wanted, &mut object));
            assert_eq!(object["aggregationRule"], after);
            // Its rules are not the server's business.
            assert_eq!(object["rules"], json!([]));
        }
    }

    #[test]
    fn a_binding_gets_its_subjects_and_has_its_role_or_is_another() {
        let wanted = wanted("ClusterRoleBinding", "system:public-info-viewer");
        let mut object = new(&wanted);
        let group = |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": name});
        object["subjects"] = json!([group("mine"), group("system:unauthenticated")]);
        assert!(complete(&wanted, &mut object));
        let all = ["mine", "system:unauthenticated", "system:authenticated"].map(group);
        assert_eq!(object["subjects"], json!(all));
        object["roleRef"]["name"] = "view".into();
        assert!(has_another_role(&wanted, &object));
    }
}

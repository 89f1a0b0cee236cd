//! Whether a revision means the same as a set that says it in other words.
//!
//! A later version of the server may have defaults that a revision was written without. Its Pods
//! must not be replaced for that.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::Value;
use steersman_rules::kinds::rules_of;

use super::identity::spec;
use crate::history;

/// Whether the set would be as it is if it were brought back to this revision, with the defaults
/// of today.
pub(super) fn means_the_same(set: &StatefulSet, revision: &ControllerRevision) -> bool {
    let restored = history::template_of(revision).and_then(|template| defaulted(set, template));
    restored.is_some() && restored.as_ref() == spec(set).map(|spec| &spec.template)
}

/// A template of the set with the defaults of today.
fn defaulted(set: &StatefulSet, template: PodTemplateSpec) -> Option<PodTemplateSpec> {
    let mut set = set.clone();
    set.spec.as_mut()?.template = template;
    let mut document = serde_json::to_value(&set).ok()?;
    rules_of("apps", "StatefulSet")?.fill_in(&mut document);
    let template = document.pointer_mut("/spec/template").map(Value::take)?;
    serde_json::from_value(template).ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
    use serde_json::json;

    use super::*;

    fn template(container: &Value, more: &Value) -> Value {
        let mut spec = json!({"containers": [container]});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({"metadata": {"labels": {"app": "web"}}, "spec": spec})
    }

    fn revision(template: Value) -> ControllerRevision {
        let template: PodTemplateSpec = serde_json::from_value(template).unwrap();
        let data = Some(RawExtension(history::data_of(&template)));
        ControllerRevision { data, ..ControllerRevision::default() }
    }

    #[test]
    fn defaults_that_a_revision_lacks_make_no_difference_and_everything_else_does() {
        let short = json!({"name": "main", "image": "nginx:1"});
        let set = json!({
            "metadata": {"name": "web"},
            "spec": {"serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
                     "template": template(&short, &json!({}))},
        });
        let mut set: StatefulSet = serde_json::from_value(set).unwrap();
        let full = defaulted(&set, set.spec.as_ref().unwrap().template.clone()).unwrap();
        assert_ne!(full, set.spec.as_ref().unwrap().template);
        set.spec.as_mut().unwrap().template = full;
        let same = |container: &Value, more: &Value| {
            means_the_same(&set, &revision(template(container, more)))
        };
        assert!(same(&short, &json!({})));
        assert!(same(&short, &json!({"dnsPolicy": "ClusterFirst", "restartPolicy": "Always"})));
        assert!(!same(&short, &json!({"dnsPolicy": "Default"})));
        assert!(!same(&json!({"name": "main", "image": "nginx:2"}), &json!({})));
        assert!(!means_the_same(&set, &ControllerRevision::default()));
    }
}

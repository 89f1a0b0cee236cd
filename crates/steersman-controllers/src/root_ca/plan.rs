//! What the ConfigMap says, and whether somebody has changed it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The name of the ConfigMap.
pub(super) const NAME: &str = "kube-root-ca.crt";
/// Its only key.
const KEY: &str = "ca.crt";
/// The annotation that tells people what it is for, and what it says.
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
     endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
     guaranteed across distributions of Kubernetes clusters.",
);

/// The ConfigMap of a namespace.
pub(super) fn published(namespace: &str, certificates: &str) -> ConfigMap {
    let (annotation, description) = DESCRIPTION;
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(NAME.into()),
            namespace: Some(namespace.into()),
            annotations: Some([(annotation.into(), description.into())].into()),
            ..ObjectMeta::default()
        },
        data: Some(data(certificates)),
        ..ConfigMap::default()
    }
}

/// The ConfigMap as it should be, if it is not. What else others gave it stays.
pub(super) fn corrected(map: &ConfigMap, certificates: &str) -> Option<ConfigMap> {
    let (annotation, description) = DESCRIPTION;
    let said = map.metadata.annotations.as_ref().and_then(|all| all.get(annotation));
    let data = data(certificates);
    if map.data.as_ref() == Some(&data) && said.is_some_and(|text| !text.is_empty()) {
        return None;
    }
    let mut map = map.clone();
    map.data = Some(data);
    let annotations = map.metadata.annotations.get_or_insert_default();
    annotations.insert(annotation.into(), description.into());
    Some(map)
}

fn data(certificates: &str) -> BTreeMap<String, String> {
    [(KEY.into(), certificates.into())].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut ConfigMap);

    #[test]
    fn what_was_changed_is_put_right_and_the_rest_stays() {
        let changes: [(&str, Change, bool); 7] = [
            ("nothing", |_| {}, false),
            ("another certificate", |map| set(map, "ca.crt", "other"), true),
            ("another key", |map| set(map, "more", "text"), true),
            ("no data", |map| map.data = None, true),
            ("no annotations", |map| map.metadata.annotations = None, true),
            ("an empty description", |map| annotate(map, DESCRIPTION.0, ""), true),
            ("other words, other annotations", |map| annotate(map, DESCRIPTION.0, "mine"), false),
        ];
        for (what, change, wrong) in changes {
            let mut map = published("team", "pem");
            annotate(&mut map, "team", "a");
            change(&mut map);
            let corrected = corrected(&map, "pem");
            assert_eq!(corrected.is_some(), wrong, "{what}");
            let Some(corrected) = corrected else { continue };
            assert_eq!(corrected.data, published("team", "pem").data, "{what}");
            let annotations = corrected.metadata.annotations.unwrap();
            assert_eq!(annotations[DESCRIPTION.0], DESCRIPTION.1, "{what}");
            let kept = map.metadata.annotations.is_some();
            assert_eq!(annotations.contains_key("team"), kept, "{what}");
        }
    }

    fn set(map: &mut ConfigMap, key: &str, value: &str) {
        map.data.get_or_insert_default().insert(key.into(), value.into());
    }

    fn annotate(map: &mut ConfigMap, key: &str, value: &str) {
        map.metadata.annotations.get_or_insert_default().insert(key.into(), value.into());
    }
}

//! Names that the API cannot have managed.

use serde_json::Value;

use crate::rules::document::text;

const SUFFIX: &str = ".static.k8s.io";

/// Says that a name is of those that servers give to what they read from files.
pub(super) fn warnings(object: &Value, _old: Option<&Value>) -> Vec<String> {
    if !text(&object["metadata"]["name"]).ends_with(SUFFIX) {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: names ending with {SUFFIX:?} are reserved for static manifest-based \
         configurations and cannot be managed via the API"
    )]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::KINDS;

    #[test]
    fn every_kind_of_the_group_warns_of_reserved_names() {
        let named = |name: &str| json!({"metadata": {"name": name}});
        let expected = "metadata.name: names ending with \".static.k8s.io\" are reserved for static \
                        manifest-based configurations and cannot be managed via the API";
        for kind in KINDS {
            let warn = kind.rules.warn;
            assert_eq!(warn(&named("a.static.k8s.io"), None), [expected], "{}", kind.name);
            assert!(warn(&named("static.k8s.io.a"), None).is_empty(), "{}", kind.name);
        }
    }
}

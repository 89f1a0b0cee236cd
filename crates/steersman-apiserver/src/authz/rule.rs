//! One rule of a role: what it allows.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::attributes::{Attributes, Target, combined};

/// A rule, as roles have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    /// Only objects of these names; empty for all.
    pub(crate) names: Vec<String>,
    pub(crate) urls: Vec<String>,
}

const ALL: &str = "*";

/// What a request asks of rules; the parts that each rule would have to put together again.
#[derive(Clone, Debug)]
pub(crate) struct Wanted<'a> {
    pub(super) asked: &'a Attributes<'a>,
    /// The resource with its subresource.
    pub(super) whole: Cow<'a, str>,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(asked: &'a Attributes<'a>) -> Self {
        let whole = match asked.target {
            Target::Resource { resource, subresource, .. } => combined(resource, subresource),
            Target::Path(_) => Cow::Borrowed(""),
        };
        Self { asked, whole }
    }
}

impl Rule {
    /// Reads a rule; what is no text is passed over.
    pub(crate) fn of(rule: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            let items = rule[field].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    /// The rules of a role, or of a document that has such.
    pub(crate) fn all_of(role: &Value) -> Vec<Self> {
        role["rules"].as_array().into_iter().flatten().map(Self::of).collect()
    }

    /// Whether this allows a request.
    pub(crate) fn allows(&self, wanted: &Wanted<'_>) -> bool {
        let Attributes { verb, target, .. } = *wanted.asked;
        if !has_or_all(&self.verbs, verb) {
            return false;
        }
        match target {
            Target::Path(path) => self.urls.iter().any(|url| url_covers(url, path)),
            Target::Resource { group, subresource, name, .. } => {
                has_or_all(&self.groups, group)
                    && self.has_resource(&wanted.whole, subresource)
                    && (self.names.is_empty() || has(&self.names, name))
            }
        }
    }

    fn has_resource(&self, whole: &str, subresource: &str) -> bool {
        self.resources.iter().any(|resource| {
            resource == ALL
                || resource == whole
                || (!subresource.is_empty() && resource.strip_prefix("*/") == Some(subresource))
        })
    }

    /// As a rule of a `SelfSubjectRulesReview` about resources, if this is about any.
    pub(crate) fn resource_rule(&self) -> Option<Value> {
        let parts = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
        ];
        (!self.resources.is_empty()).then(|| self.with(&parts))
    }

    /// As one about other paths, if this is about any.
    pub(crate) fn path_rule(&self) -> Option<Value> {
        (!self.urls.is_empty()).then(|| self.with(&[("nonResourceURLs", &self.urls)]))
    }

    fn with(&self, parts: &[(&str, &Vec<String>)]) -> Value {
        let mut rule = json!({"verbs": self.verbs});
        for (field, texts) in parts {
            if !texts.is_empty() {
                rule[field] = json!(texts);
            }
        }
        rule
    }
}

pub(super) fn has(texts: &[String], text: &str) -> bool {
    texts.iter().any(|known| known == text)
}

pub(super) fn has_or_all(texts: &[String], text: &str) -> bool {
    texts.iter().any(|known| known == ALL || known == text)
}

/// Whether a path of a rule, which may end in a star, covers another path.
pub(super) fn url_covers(url: &str, path: &str) -> bool {
    url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Rule, Wanted};
    use crate::authz::{Attributes, Target};
    use crate::user::User;

    fn allows(rule: &Rule, verb: &str, target: Target<'_>) -> bool {
        let user = User::known("jane", &[]);
        rule.allows(&Wanted::of(&Attributes::new(&user, verb, target)))
    }

    fn pods<'a>(subresource: &'a str, name: &'a str) -> Target<'a> {
        Target::Resource { group: "", resource: "pods", subresource, namespace: "a", name }
    }

    #[test]
    fn a_rule_allows_verbs_on_resources_subresources_and_names() {
        let rule = |resources: &[&str], names: &[&str]| {
            Rule::of(&json!({
                "verbs": ["get"], "apiGroups": [""], "resources": resources, "resourceNames": names,
            }))
        };
        for (rule, target, expected) in [
            (rule(&["pods"], &[]), pods("", "x"), true),
            (rule(&["pods"], &[]), pods("log", "x"), false),
            (rule(&["pods/log"], &[]), pods("log", "x"), true),
            (rule(&["pods/log"], &[]), pods("", "x"), false),
            (rule(&["pods/*"], &[]), pods("log", "x"), false),
            (rule(&["*/log"], &[]), pods("log", "x"), true),
            (rule(&["*/log"], &[]), pods("", "x"), false),
            (rule(&["*"], &[]), pods("log", "x"), true),
            (rule(&["pods"], &["x"]), pods("", "x"), true),
            (rule(&["pods"], &["x"]), pods("", "y"), false),
            (rule(&["pods"], &["x"]), pods("", ""), false),
            (rule(&["pods"], &[]), Target::Path("/pods"), false),
        ] {
            assert_eq!(allows(&rule, "get", target), expected, "{rule:?} {target:?}");
            assert!(!allows(&rule, "list", target), "{rule:?}");
        }
    }

    #[test]
    fn a_star_at_the_end_of_a_path_covers_what_begins_like_it() {
        let rule = Rule::of(&json!({"verbs": ["*"], "nonResourceURLs": ["/logs/*", "/version"]}));
        for (path, expected) in [
            ("/version", true),
            ("/version/", false),
            ("/logs", false),
            ("/logs/", true),
            ("/logs/a/b", true),
        ] {
            assert_eq!(allows(&rule, "get", Target::Path(path)), expected, "{path}");
        }
    }
}

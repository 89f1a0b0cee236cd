//! Which objects of a kind a cache holds, if not all of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{Selector, SelectorExt};
use serde_json::Value;

use super::Cache;
use crate::reflector::Selection;
use crate::selector;

/// Which objects of a kind to hold; all of them unless something is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Restriction {
    /// Only these namespaces, each with a watch of its own; all if empty.
    pub namespaces: BTreeSet<Arc<str>>,
    /// Only objects whose labels match, as in `kubectl -l`.
    pub labels: Option<String>,
    /// Only objects whose fields match, as in `kubectl --field-selector`.
    pub fields: Option<String>,
}

impl Restriction {
    /// The same, where the empty name among the namespaces stands for all of them, as everywhere in
    /// Kubernetes: programs are often told by an empty variable that they are to watch all.
    pub(crate) fn resolved(mut self) -> Self {
        if self.namespaces.contains("") {
            self.namespaces.clear();
        }
        self
    }

    /// What has to be watched: one selection for each namespace.
    pub(crate) fn selections(&self) -> Vec<Selection> {
        let selection = |namespace: Option<&Arc<str>>| Selection {
            namespace: namespace.map(|namespace| namespace.as_ref().to_owned()),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
        };
        if self.namespaces.is_empty() {
            return vec![selection(None)];
        }
        self.namespaces.iter().map(|namespace| selection(Some(namespace))).collect()
    }

    /// Whether objects of this namespace can be here; `None` is no namespace, or all of them.
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.namespaces.is_empty()
            || namespace.is_some_and(|namespace| self.namespaces.contains(namespace))
    }

    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A restriction, ready to be asked.
pub(super) struct Coverage {
    pub(super) restriction: Restriction,
    /// `None` if there is no selector, or if it makes no sense, which the server will say.
    labels: Option<Selector>,
}

impl Coverage {
    pub(super) fn new(restriction: Restriction) -> Self {
        let labels = restriction.labels.as_deref().and_then(|text| selector::parse(text).ok());
        Self { restriction, labels }
    }

    /// Whether an object with this metadata and content may come to be here. If it cannot be told,
    /// it may.
    pub(super) fn may_hold(&self, meta: &ObjectMeta, content: impl Fn() -> Option<Value>) -> bool {
        let labels = meta.labels.clone().unwrap_or_default();
        self.restriction.covers(meta.namespace.as_deref())
            && self.labels.as_ref().is_none_or(|selector| selector.matches(&labels))
            && self.restriction.fields.as_deref().is_none_or(|selector| {
                content().is_none_or(|content| fields_may_match(selector, &content))
            })
    }
}

/// Whether the fields of an object may match a selector. The name of a field is nearly always its
/// path in the object; one that is not there may be so because it is empty, false or nothing.
fn fields_may_match(selector: &str, content: &Value) -> bool {
    selector.split(',').filter(|part| !part.trim().is_empty()).all(|part| {
        let (equal, path, wanted) = match (part.split_once("!="), part.split_once('=')) {
            (Some((path, wanted)), _) => (false, path, wanted),
            (None, Some((path, wanted))) => (true, path, wanted.trim_start_matches('=')),
            (None, None) => return true, // which the server will refuse
        };
        let wanted = wanted.trim();
        let found = path.trim().split('.').try_fold(content, |value, name| value.get(name));
        match found {
            Some(Value::String(found)) => (found == wanted) == equal,
            Some(Value::Bool(found)) => (wanted.parse() == Ok(*found)) == equal,
            Some(Value::Number(found)) => {
                let found = found.to_string();
                (found == wanted) == equal
            }
            Some(_) => true,
            None => !equal || matches!(wanted, "" | "false" | "0"),
        }
    })
}

impl<K> Cache<K> {
    /// Fails if no object of this namespace can be here, because the cache is restricted to
    /// others. `None` stands for all namespaces.
    pub fn covers(&self, namespace: Option<&str>) -> Result<(), NotCovered> {
        match &self.shared.coverage {
            Some(Coverage { restriction, .. }) if !restriction.covers(namespace) => {
                let held = restriction.namespaces.iter().map(ToString::to_string).collect();
                Err(NotCovered { namespace: namespace.map(str::to_owned), held })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn report(&self, error: &NotCovered) {
        if !self.shared.reported.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "read of a namespace that the cache does not hold");
        }
    }
}

/// A cache does not hold the objects of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this cache holds the namespaces {} only, not {}: widen it with `Manager::cache` or \
     `Manager::namespaces`, or read from the server with `ctx.live()`",
    held.join(", "), namespace.as_deref().unwrap_or("all of them")
)]
pub struct NotCovered {
    namespace: Option<String>,
    held: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_is_watched_by_itself_and_all_of_them_together() {
        let all = Restriction { labels: Some("app=web".into()), ..Restriction::default() };
        assert_eq!(all.selections().len(), 1);
        assert!(all.covers(Some("a")) && all.covers(None));
        let two = Restriction { namespaces: ["a".into(), "b".into()].into(), ..all };
        let watched: Vec<_> = two.selections().into_iter().map(|one| one.namespace).collect();
        assert_eq!(watched, [Some("a".to_owned()), Some("b".to_owned())]);
        assert!(two.covers(Some("a")) && !two.covers(Some("c")) && !two.covers(None));
    }

    #[test]
    fn the_empty_name_stands_for_all_namespaces() {
        let of = |namespaces: &[&str]| {
            let namespaces = namespaces.iter().map(|&name| name.into()).collect();
            Restriction { namespaces, ..Restriction::default() }.resolved()
        };
        assert!(of(&[""]).is_none() && of(&["", "a"]).is_none() && !of(&["a"]).is_none());
    }

    #[test]
    fn what_cannot_come_to_be_in_the_cache_is_known() {
        let labels = Some("app=web".to_owned());
        let namespaces = ["a".into()].into();
        let coverage = Coverage::new(Restriction { namespaces, labels, fields: None });
        let meta = |namespace: &str, app: &str| ObjectMeta {
            namespace: Some(namespace.into()),
            labels: Some([("app".to_owned(), app.to_owned())].into()),
            ..ObjectMeta::default()
        };
        let may_hold = |meta| coverage.may_hold(&meta, || None);
        assert!(may_hold(meta("a", "web")));
        assert!(!may_hold(meta("b", "web")) && !may_hold(meta("a", "api")));
    }

    #[test]
    fn fields_are_compared_where_the_object_tells_them() {
        let pod = serde_json::json!({"metadata": {"name": "a"},
            "spec": {"nodeName": "n1", "hostNetwork": true}});
        for (selector, may_match) in [
            ("spec.nodeName=n1", true),
            ("spec.nodeName==n1,metadata.name=a", true),
            ("spec.nodeName=n2", false),
            ("spec.nodeName!=n1", false),
            ("metadata.name!=b", true),
            ("metadata.name=a,spec.nodeName=n2", false),
            ("spec.hostNetwork=true", true),
            ("spec.hostNetwork=false", false),
            ("status.phase=Running", false),
            ("status.phase!=Running", true),
            ("spec.unschedulable=false", true),
            ("spec.nodeSelector=", true),
            ("nonsense", true),
        ] {
            assert_eq!(fields_may_match(selector, &pod), may_match, "{selector}");
        }
    }
}

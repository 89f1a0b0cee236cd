//! How the policy is written down: roles, rules and bindings as constants.
//!
//! Lists are texts of words with a space between them, in alphabetical order, as Kubernetes has
//! them in the end. The group of the core is the empty text, which is one empty word.

use std::borrow::Cow;

use serde_json::{Map, Value};

pub(super) const READ: &str = "get list watch";
pub(super) const WRITE: &str = "create delete deletecollection patch update";
pub(super) const READ_WRITE: &str = "create delete deletecollection get list patch update watch";
pub(super) const READ_UPDATE: &str = "get list patch update watch";

pub(super) const ADMISSION: &str = "admissionregistration.k8s.io";
pub(super) const AUTHENTICATION: &str = "authentication.k8s.io";
pub(super) const AUTHORIZATION: &str = "authorization.k8s.io";
pub(super) const CERTIFICATES: &str = "certificates.k8s.io";
pub(super) const COORDINATION: &str = "coordination.k8s.io";
/// The core and the group that events have of their own.
pub(super) const CORE_AND_EVENTS: &str = " events.k8s.io";
pub(super) const DISCOVERY: &str = "discovery.k8s.io";
pub(super) const NETWORKING: &str = "networking.k8s.io";
pub(super) const RBAC: &str = "rbac.authorization.k8s.io";
pub(super) const RESOURCE: &str = "resource.k8s.io";
pub(super) const STORAGE: &str = "storage.k8s.io";

/// What whoever tells of events may do.
pub(super) const EVENTS: Rule = rule("create patch update", CORE_AND_EVENTS, "events");

/// One rule of a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) verbs: &'static str,
    pub(super) scope: Scope,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Objects of some resources; all of them where there are no names.
    Resources { groups: &'static str, resources: &'static str, names: Option<&'static str> },
    /// Paths that are no resources.
    Urls(&'static str),
}

/// These verbs on all objects of these resources.
pub(super) const fn rule(
    verbs: &'static str,
    groups: &'static str,
    resources: &'static str,
) -> Rule {
    Rule { verbs, scope: Scope::Resources { groups, resources, names: None } }
}

/// These verbs on paths that are no resources.
pub(super) const fn urls(verbs: &'static str, urls: &'static str) -> Rule {
    Rule { verbs, scope: Scope::Urls(urls) }
}

impl Rule {
    /// The same for objects of these names alone.
    pub(super) const fn named(self, names: &'static str) -> Self {
        match self.scope {
            Scope::Resources { groups, resources, .. } => {
                Self { scope: Scope::Resources { groups, resources, names: Some(names) }, ..self }
            }
            Scope::Urls(_) => self,
        }
    }

    /// The lists that the rule has, in the order in which documents have their fields.
    pub(super) fn lists(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (groups, resources, names, urls) = match self.scope {
            Scope::Resources { groups, resources, names } => {
                (Some(groups), Some(resources), names, None)
            }
            Scope::Urls(urls) => (None, None, None, Some(urls)),
        };
        let lists = [
            ("apiGroups", groups),
            ("nonResourceURLs", urls),
            ("resourceNames", names),
            ("resources", resources),
            ("verbs", Some(self.verbs)),
        ];
        lists.into_iter().filter_map(|(field, words)| Some((field, words?)))
    }

    /// The rule as roles have it.
    pub(super) fn document(&self) -> Value {
        let fields =
            self.lists().map(|(field, words)| (field.to_owned(), words.split(' ').collect()));
        Value::Object(fields.collect::<Map<_, _>>())
    }
}

/// A role: one of the cluster, if it has no namespace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Role {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    /// The role that gathers this one; empty if none does.
    pub(super) part_of: &'static str,
    /// Its own; none, if it gathers those of others.
    pub(super) rules: Option<&'static [Rule]>,
    /// What it has besides, because something is served that is served on request only.
    pub(super) more: &'static [Rule],
}

/// A role of the cluster.
pub(super) const fn role(name: &'static str, rules: &'static [Rule]) -> Role {
    Role { namespace: "", name, part_of: "", rules: Some(rules), more: &[] }
}

/// A role of the cluster that has the rules of all that are part of it.
pub(super) const fn gathering(name: &'static str) -> Role {
    Role { namespace: "", name, part_of: "", rules: None, more: &[] }
}

impl Role {
    /// The same, gathered by another.
    pub(super) const fn part_of(self, role: &'static str) -> Self {
        Self { part_of: role, ..self }
    }

    /// The same in a namespace.
    pub(super) const fn within(self, namespace: &'static str) -> Self {
        Self { namespace, ..self }
    }
}

/// Who has a role: everywhere, or in the namespace of the binding, where it has one.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
    pub(super) role: &'static str,
    pub(super) subjects: Cow<'static, [Subject]>,
}

/// Somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    User(&'static str),
    Group(&'static str),
    /// One of the namespace `kube-system`.
    ServiceAccount(&'static str),
}

/// Who has a role of the cluster; the binding has its name.
pub(super) const fn binding(role: &'static str, subjects: &'static [Subject]) -> Binding {
    Binding { namespace: "", name: role, role, subjects: Cow::Borrowed(subjects) }
}

impl Binding {
    /// The same of a role of a namespace.
    pub(super) const fn within(mut self, namespace: &'static str) -> Self {
        self.namespace = namespace;
        self
    }

    /// The same under another name than that of its role.
    pub(super) const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }
}

impl Subject {
    /// The fields that a subject of a binding has, in the order of its document.
    pub(super) fn fields(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (group, kind, name, namespace) = match self {
            Self::User(name) => (Some(RBAC), "User", name, None),
            Self::Group(name) => (Some(RBAC), "Group", name, None),
            Self::ServiceAccount(name) => (None, "ServiceAccount", name, Some("kube-system")),
        };
        let fields = [
            ("apiGroup", group),
            ("kind", Some(kind)),
            ("name", Some(name)),
            ("namespace", namespace),
        ];
        fields.into_iter().filter_map(|(field, text)| Some((field, text?)))
    }

    /// The subject as bindings have it.
    pub(super) fn document(self) -> Value {
        self.fields()
            .map(|(field, text)| (field.to_owned(), text.into()))
            .collect::<Map<_, _>>()
            .into()
    }
}

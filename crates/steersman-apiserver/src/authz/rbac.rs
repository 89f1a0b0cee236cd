//! Roles and bindings, by whom they concern.
//!
//! [`Rbac`] takes in every version of the four kinds and answers from what it has: a decision looks
//! up the user and each of its groups, then the namespace, then the role of each binding found
//! there, and in the role only the rules that name the resource.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;
use steersman_rules::metadata;
use steersman_store::Revision;

use super::Decision;
use super::attributes::{Attributes, Target};
use super::rule::{Rule, Wanted};
use crate::user::User;

/// The group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// The kinds that say who may do what, by their plural names.
pub(crate) const KINDS: [&str; 4] =
    ["clusterroles", "roles", "clusterrolebindings", "rolebindings"];

/// Roles and bindings. The lock is held for moments, never over a wait.
#[derive(Debug, Default)]
pub(crate) struct Rbac(RwLock<Index>);

/// A reference to a role, as bindings have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleReference {
    pub(crate) kind: String,
    pub(crate) name: String,
}

#[derive(Debug, Default)]
struct Index {
    cluster_roles: HashMap<String, Arc<Role>>,
    /// By namespace and name.
    roles: HashMap<String, HashMap<String, Arc<Role>>>,
    bindings: HashMap<String, Arc<Binding>>,
    users: HashMap<String, Granted>,
    groups: HashMap<String, Granted>,
    /// The revision of each object.
    seen: HashMap<String, Revision>,
    /// When objects went, until nobody can come with an older version any more.
    gone: HashMap<String, Revision>,
}

/// The bindings of one subject, in the order of their names.
#[derive(Debug, Default)]
struct Granted {
    cluster: Vec<Grant>,
    namespaces: HashMap<String, Vec<Grant>>,
}

/// A binding as one of its subjects has it.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    binding: Arc<Binding>,
    /// Which of the subjects.
    subject: usize,
}

#[derive(Debug)]
struct Binding {
    name: String,
    /// Empty if it counts everywhere.
    namespace: String,
    role: RoleReference,
    subjects: Vec<Subject>,
}

#[derive(Debug)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

/// A role, with its rules by what they are about.
#[derive(Debug, Default)]
struct Role {
    rules: Vec<Rule>,
    by_resource: HashMap<String, Vec<usize>>,
    with_urls: Vec<usize>,
}

impl Rbac {
    /// Takes in a version of an object of one of the [`KINDS`], or that it is gone, from the server
    /// that wrote it. What is older than what was taken in before changes nothing.
    pub(crate) fn take_in(&self, key: &str, object: Option<&Value>, at: Revision) {
        let mut index = self.0.write().unwrap_or_else(PoisonError::into_inner);
        index.take_in(key, object, at);
    }

    /// The same, from a watch of the key's folder: everything before it has been heard of, too.
    pub(crate) fn hear(&self, key: &str, object: Option<&Value>, at: Revision) {
        let mut index = self.0.write().unwrap_or_else(PoisonError::into_inner);
        index.take_in(key, object, at);
        index.gone.retain(|gone, when| *when > at || plural(gone) != plural(key));
    }

    /// Takes in all objects that there were at a revision.
    pub(crate) fn replace(&self, objects: &[(String, Value)], at: Revision) {
        let mut index = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let found: HashSet<&String> = objects.iter().map(|(key, _)| key).collect();
        let lost = index.seen.keys().filter(|key| !found.contains(key));
        let lost: Vec<String> = lost.cloned().collect();
        lost.iter().for_each(|key| index.take_in(key, None, at));
        objects.iter().for_each(|(key, object)| index.take_in(key, Some(object), at));
        index.gone.retain(|_, when| *when > at);
    }

    /// Lets whatever is read next count, for there is another history since.
    pub(crate) fn forget(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Index::default();
    }

    /// Whether a request is allowed.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        let index = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let wanted = Wanted::of(asked);
        let by = |grant: &Grant| index.grants(grant, &wanted);
        // Most users have their permissions where they work.
        index.granted_in(asked.user, namespace(asked)).any(by)
            || index.granted_everywhere(asked.user).any(by)
    }

    /// Decides about a request, and says why.
    pub(crate) fn decide(&self, asked: &Attributes<'_>) -> Decision {
        let index = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let wanted = Wanted::of(asked);
        let mut missing: Vec<String> = Vec::new();
        for grant in index.granted(asked.user, namespace(asked)) {
            match index.role(&grant.binding.role, &grant.binding.namespace) {
                Ok(role) if role.allows(&wanted) => {
                    return Decision { allowed: true, reason: format!("RBAC: allowed by {grant}") };
                }
                Ok(_) => {}
                Err(why) if missing.contains(&why) => {}
                Err(why) => missing.push(why),
            }
        }
        let reason = aggregate(&missing).map_or(String::new(), |why| format!("RBAC: {why}"));
        Decision { allowed: false, reason }
    }

    /// The rules that a user has in a namespace, and what is wrong with bindings to roles that are
    /// not there.
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> (Vec<Rule>, Option<String>) {
        let index = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut rules = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        for grant in index.granted(user, namespace) {
            match index.role(&grant.binding.role, &grant.binding.namespace) {
                Ok(role) => rules.extend(role.rules.iter().cloned()),
                Err(why) if missing.contains(&why) => {}
                Err(why) => missing.push(why),
            }
        }
        (rules, aggregate(&missing))
    }

    /// The rules of the role that a binding in a namespace, or in none, refers to.
    pub(crate) fn rules_of_role(
        &self,
        role: &RoleReference,
        namespace: &str,
    ) -> Result<Vec<Rule>, String> {
        let index = self.0.read().unwrap_or_else(PoisonError::into_inner);
        index.role(role, namespace).map(|role| role.rules.clone())
    }
}

fn namespace<'a>(asked: &Attributes<'a>) -> &'a str {
    match asked.target {
        Target::Resource { namespace, .. } => namespace,
        Target::Path(_) => "",
    }
}

/// Several mistakes as one, as Go tells them.
fn aggregate(errors: &[String]) -> Option<String> {
    match errors {
        [] => None,
        [only] => Some(only.clone()),
        errors => Some(format!("[{}]", errors.join(", "))),
    }
}

/// The plural name in a key of the store.
fn plural(key: &str) -> &str {
    key.split('/').nth(2).unwrap_or_default()
}

impl Index {
    fn take_in(&mut self, key: &str, object: Option<&Value>, at: Revision) {
        let known = self.seen.get(key).or_else(|| self.gone.get(key));
        if known.is_some_and(|known| *known > at) {
            return;
        }
        let (into, out_of) = match object {
            Some(_) => (&mut self.seen, &mut self.gone),
            None => (&mut self.gone, &mut self.seen),
        };
        into.insert(key.to_owned(), at);
        out_of.remove(key);
        match plural(key) {
            "clusterroles" => self.put_role(key, false, object),
            "roles" => self.put_role(key, true, object),
            _ => self.put_binding(key, object),
        }
    }

    fn put_role(&mut self, key: &str, is_local: bool, object: Option<&Value>) {
        let mut parts = key.rsplit('/');
        let name = parts.next().unwrap_or_default();
        let roles = match is_local {
            true => self.roles.entry(parts.next().unwrap_or_default().to_owned()).or_default(),
            false => &mut self.cluster_roles,
        };
        match object {
            Some(object) => drop(roles.insert(name.to_owned(), Arc::new(Role::of(object)))),
            None => drop(roles.remove(name)),
        }
    }

    fn put_binding(&mut self, key: &str, object: Option<&Value>) {
        if let Some(old) = self.bindings.remove(key) {
            for (is_user, name) in old.concerned() {
                let subjects = if is_user { &mut self.users } else { &mut self.groups };
                let Some(granted) = subjects.get_mut(&name) else { continue };
                if granted.remove(&old) {
                    subjects.remove(&name);
                }
            }
        }
        let Some(object) = object else { return };
        let binding = Arc::new(Binding::of(object));
        for (subject, (is_user, name)) in binding.concerned().into_iter().enumerate() {
            let subjects = if is_user { &mut self.users } else { &mut self.groups };
            let grant = Grant { binding: Arc::clone(&binding), subject };
            subjects.entry(name).or_default().insert(grant);
        }
        self.bindings.insert(key.to_owned(), binding);
    }

    /// The bindings that concern a user in a namespace: those of the cluster first.
    fn granted<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Grant> + 'a {
        self.granted_everywhere(user).chain(self.granted_in(user, namespace))
    }

    fn granted_everywhere<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Grant> + 'a {
        self.subjects(user).flat_map(|granted| &granted.cluster)
    }

    fn granted_in<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Grant> + 'a {
        let is_any = !namespace.is_empty();
        let subjects = is_any.then(|| self.subjects(user)).into_iter().flatten();
        subjects.filter_map(move |granted| granted.namespaces.get(namespace)).flatten()
    }

    /// What the user and its groups have been granted.
    fn subjects<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Granted> + 'a {
        let groups = user.groups.iter().filter_map(|group| self.groups.get(group));
        self.users.get(&user.name).into_iter().chain(groups)
    }

    fn grants(&self, grant: &Grant, wanted: &Wanted<'_>) -> bool {
        let role = self.role(&grant.binding.role, &grant.binding.namespace);
        role.is_ok_and(|role| role.allows(wanted))
    }

    /// The role that a binding refers to, or why there is none.
    fn role(&self, role: &RoleReference, namespace: &str) -> Result<&Role, String> {
        let RoleReference { kind, name } = role;
        let found = match kind.as_str() {
            "ClusterRole" => self.cluster_roles.get(name),
            "Role" => self.roles.get(namespace).and_then(|roles| roles.get(name)),
            _ => return Err(format!("unsupported role reference kind: {kind:?}")),
        };
        let missing = || format!("{}.{GROUP} {name:?} not found", kind.to_lowercase());
        found.map(|role| &**role).ok_or_else(missing)
    }
}

impl Granted {
    fn insert(&mut self, grant: Grant) {
        let grants = match grant.binding.namespace.as_str() {
            "" => &mut self.cluster,
            namespace => self.namespaces.entry(namespace.to_owned()).or_default(),
        };
        let at = grants.partition_point(|other| other.binding.name <= grant.binding.name);
        grants.insert(at, grant);
    }

    /// Takes a binding out; says whether none is left.
    fn remove(&mut self, binding: &Arc<Binding>) -> bool {
        let is_other = |grant: &Grant| !Arc::ptr_eq(&grant.binding, binding);
        match binding.namespace.as_str() {
            "" => self.cluster.retain(is_other),
            namespace => {
                if let Some(grants) = self.namespaces.get_mut(namespace) {
                    grants.retain(is_other);
                    if grants.is_empty() {
                        self.namespaces.remove(namespace);
                    }
                }
            }
        }
        self.cluster.is_empty() && self.namespaces.is_empty()
    }
}

impl Binding {
    fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let subject = |subject: &Value| Subject {
            kind: text(&subject["kind"]),
            name: text(&subject["name"]),
            namespace: text(&subject["namespace"]),
        };
        Self {
            name: metadata::text(object, "name").to_owned(),
            namespace: metadata::text(object, "namespace").to_owned(),
            role: RoleReference::of(object),
            subjects: object["subjects"].as_array().into_iter().flatten().map(subject).collect(),
        }
    }

    /// Whom each subject stands for: whether it is a user, and the name. A service account is a
    /// user; one that is named without a namespace is one of the binding's, and stands for nobody
    /// where that has none.
    fn concerned(&self) -> Vec<(bool, String)> {
        let user = |subject: &Subject| match subject.kind.as_str() {
            "Group" => (false, subject.name.clone()),
            "ServiceAccount" => match self.namespace_of(subject) {
                "" => (true, String::new()),
                namespace => (true, format!("system:serviceaccount:{namespace}:{}", subject.name)),
            },
            "User" => (true, subject.name.clone()),
            _ => (true, String::new()),
        };
        self.subjects.iter().map(user).collect()
    }

    fn namespace_of<'a>(&'a self, subject: &'a Subject) -> &'a str {
        if subject.namespace.is_empty() { &self.namespace } else { &subject.namespace }
    }
}

impl RoleReference {
    /// The role that a binding names.
    pub(crate) fn of(binding: &Value) -> Self {
        let text = |field: &str| binding["roleRef"][field].as_str().unwrap_or_default().to_owned();
        Self { kind: text("kind"), name: text("name") }
    }
}

/// A binding as reasons name it.
impl std::fmt::Display for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Binding { name, namespace, role, subjects } = &*self.binding;
        match namespace.as_str() {
            "" => write!(f, "ClusterRoleBinding {name:?}")?,
            namespace => write!(f, "RoleBinding {:?}", format!("{name}/{namespace}"))?,
        }
        let subject = &subjects[self.subject];
        let subject_name = match subject.kind.as_str() {
            "ServiceAccount" => {
                format!("{}/{}", subject.name, self.binding.namespace_of(subject))
            }
            _ => subject.name.clone(),
        };
        write!(f, " of {} {:?} to {} {subject_name:?}", role.kind, role.name, subject.kind)
    }
}

impl Role {
    fn of(object: &Value) -> Self {
        let rules = Rule::all_of(object);
        let mut by_resource: HashMap<String, Vec<usize>> = HashMap::new();
        let mut with_urls = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            for resource in &rule.resources {
                by_resource.entry(resource.clone()).or_default().push(index);
            }
            if !rule.urls.is_empty() {
                with_urls.push(index);
            }
        }
        Self { rules, by_resource, with_urls }
    }

    fn allows(&self, wanted: &Wanted<'_>) -> bool {
        let allowed = |found: &[usize]| found.iter().any(|rule| self.rules[*rule].allows(wanted));
        let about = |name: &str| self.by_resource.get(name).is_some_and(|found| allowed(found));
        match wanted.asked.target {
            Target::Path(_) => allowed(&self.with_urls),
            Target::Resource { subresource, .. } => {
                about(&wanted.whole)
                    || about("*")
                    || (!subresource.is_empty() && about(&format!("*/{subresource}")))
            }
        }
    }
}

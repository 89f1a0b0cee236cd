//! What a cluster needs before a program of controllers can run in it, as YAML:
//! custom resource definitions, permissions, and webhook configurations.
//!
//! Permissions are inferred from what the controllers declared: a kind that is reconciled is
//! read and its status written, one that is owned is written, one that is watched or read is
//! read. What a reconciler does beyond that, past its declarations, no one can infer: say it
//! with [`Manifests::allow`] and a [`rule`]. A test finds out what is missing: the test kit's
//! `cluster.deploy(&manifests)` runs controllers under these permissions and no others. The
//! namespace, the Deployment of the program and the Service in front of its webhooks are not among
//! the manifests: they must be there, or come with them.
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use steersman::manifests::Manifests;
//! use steersman::prelude::*;
//!
//! # async fn reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Next> { Ok(Next::Settled) }
//! let controller = Controller::of::<ConfigMap>().owns::<Deployment>().reconcile(reconcile);
//! let manifests = Manifests::new("shop", "operators").controller(&controller).leader_election();
//! assert!(manifests.to_string().contains("kind: ClusterRole"));
//! ```

mod apply;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role as NamespaceRole, RoleBinding, RoleRef,
    Subject,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;
use serde_json::{Value, json};

use crate::controller::{Controller, DeclaredKind, Role};
use crate::events::EventForm;
use crate::object::ObjectKey;
use crate::webhook::{ClientConfig, WebhookServer};
pub use rules::rule;
use rules::{READ, Rules, WRITE};

/// Where the Events about what is in no namespace are.
const EVENTS_OF_CLUSTER: &str = "default";

/// What one must be allowed to do with Events, to record them.
const RECORD: &[&str] = &["create", "patch", "update"];

/// The objects that a program of controllers needs in its cluster. Printed, they are YAML.
#[derive(Clone)]
#[must_use = "manifests do nothing until they are printed or applied"]
pub struct Manifests {
    /// Of the program: its service account and roles have it.
    name: String,
    /// In which the program runs.
    namespace: String,
    definitions: Vec<CustomResourceDefinition>,
    /// Needed on every namespace, or on what is in none.
    cluster: Rules,
    /// Needed on namespaced kinds.
    namespaced: Rules,
    /// Needed to record Events.
    events: Rules,
    /// Needed in the program's own namespace alone.
    own: Rules,
    /// Needed where authorities are shared.
    authorities: Vec<Authority>,
    /// Said by hand, for wherever the program works.
    extra: Vec<PolicyRule>,
    /// Said by hand, for all namespaces and what is in none.
    everywhere: Vec<PolicyRule>,
    /// Whether it reconciles what is in no namespace.
    is_about_the_cluster: bool,
    /// Said by hand, for one namespace.
    local: BTreeMap<String, Vec<PolicyRule>>,
    /// The only namespaces in which the program works; all if there are none.
    namespaces: Vec<String>,
    webhooks: Vec<Value>,
}

/// An authority that replicas share, and what that takes.
#[derive(Clone)]
struct Authority {
    /// Of the Secret; the program's own if it was not said.
    namespace: Option<String>,
    /// Its Secret, by whose name the role is called as well.
    secret: String,
    rules: Rules,
}

impl Manifests {
    /// For a program of this name that runs in this namespace, as a service account that has
    /// the program's name.
    pub fn new(name: impl Into<String>, namespace: impl Into<String>) -> Self {
        let mut manifests = Self {
            name: name.into(),
            namespace: namespace.into(),
            definitions: Vec::new(),
            cluster: Rules::default(),
            namespaced: Rules::default(),
            events: Rules::default(),
            own: Rules::default(),
            authorities: Vec::new(),
            extra: Vec::new(),
            everywhere: Vec::new(),
            is_about_the_cluster: false,
            local: BTreeMap::new(),
            namespaces: Vec::new(),
            webhooks: Vec::new(),
        };
        manifests.events.allow("events.k8s.io", "events", RECORD);
        manifests
    }

    /// Adds a custom resource definition: `.definition(AppService::crd())`.
    pub fn definition(mut self, definition: CustomResourceDefinition) -> Self {
        self.definitions.push(definition);
        self
    }

    /// Adds the permissions that follow from what a controller declared.
    pub fn controller(mut self, controller: &Controller) -> Self {
        if controller.writes_events_as() == EventForm::Counted {
            self.events.allow("", "events", RECORD);
        }
        for declared in controller.graph() {
            self.permit(declared, controller);
        }
        self
    }

    /// Adds the configurations of a webhook server, under its own name, what converts between the
    /// versions of the definitions added before, and the permissions that a shared authority needs.
    pub fn webhooks(mut self, server: &WebhookServer, client: &ClientConfig) -> Self {
        self.permit_authority(server);
        let configurations = server.configurations(client);
        self.webhooks.extend(configurations.mutating.as_ref().map(document));
        self.webhooks.extend(configurations.validating.as_ref().map(document));
        for (name, conversion) in server.conversions(client) {
            let mut definitions = self.definitions.iter_mut();
            if let Some(definition) =
                definitions.find(|definition| definition.metadata.name.as_ref() == Some(&name))
            {
                definition.spec.conversion = Some(conversion);
            }
        }
        self
    }

    /// Allows the program to elect a leader among its replicas, and to record who that is, or to
    /// share its keys.
    pub fn leader_election(mut self) -> Self {
        self.own.allow("coordination.k8s.io", "leases", WRITE);
        self.own.allow("events.k8s.io", "events", RECORD);
        self
    }

    /// Allows the program to ask who wants to see its metrics, and whether they may.
    pub fn authenticated_metrics(mut self) -> Self {
        self.cluster.allow("authentication.k8s.io", "tokenreviews", &["create"]);
        self.cluster.allow("authorization.k8s.io", "subjectaccessreviews", &["create"]);
        self
    }

    /// Allows what cannot be inferred, wherever the program works:
    /// `.allow(rule(["get"], "secrets"))`.
    pub fn allow(mut self, rule: PolicyRule) -> Self {
        self.extra.push(rule);
        self
    }

    /// The same in one namespace, be it among those that the program works
    /// [in](Self::in_namespaces) or not.
    pub fn allow_in(mut self, namespace: impl Into<String>, rule: PolicyRule) -> Self {
        self.local.entry(namespace.into()).or_default().push(rule);
        self
    }

    /// The same in all namespaces, and on what is in none, although the program works only
    /// [in some](Self::in_namespaces).
    pub fn allow_everywhere(mut self, rule: PolicyRule) -> Self {
        self.everywhere.push(rule);
        self
    }

    /// The program works in these namespaces only: permissions on namespaced kinds are given
    /// there and nowhere else.
    pub fn in_namespaces(
        mut self,
        namespaces: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.namespaces.extend(namespaces.into_iter().map(Into::into));
        self
    }

    /// The service account that the program runs as.
    pub fn account(&self) -> ObjectKey {
        ObjectKey::namespaced(&*self.namespace, &*self.name)
    }

    /// The only namespaces in which the program works; all if there are none.
    pub fn namespaces(&self) -> &[String] {
        &self.namespaces
    }

    /// The objects, in the order in which they can be applied.
    pub fn objects(&self) -> Vec<Value> {
        let mut objects: Vec<Value> = self.definitions.iter().map(document).collect();
        let metadata = self.metadata(Some(&self.namespace));
        objects.push(document(&ServiceAccount { metadata, ..ServiceAccount::default() }));
        objects.extend(self.access());
        objects.extend(self.webhooks.iter().cloned());
        objects
    }

    fn permit(&mut self, declared: &DeclaredKind, controller: &Controller) {
        let DeclaredKind { group, plural, namespaced, role, .. } = declared;
        let rules = if *namespaced { &mut self.namespaced } else { &mut self.cluster };
        match role {
            Role::Reconciled => {
                rules.allow(group, plural, READ);
                rules.allow(group, &format!("{plural}/status"), &["get", "patch", "update"]);
                // To be named as an owner that waits for its children.
                rules.allow(group, &format!("{plural}/finalizers"), &["update"]);
                if controller.has_cleanup() {
                    rules.allow(group, plural, &["patch", "update"]);
                }
                self.is_about_the_cluster |= !namespaced;
            }
            Role::Owned => rules.allow(group, plural, WRITE),
            Role::Watched | Role::Read => rules.allow(group, plural, READ),
        }
    }

    /// What keeping a shared authority takes: a Secret, and the objects that name whom to trust.
    fn permit_authority(&mut self, server: &WebhookServer) {
        let Some(authority) = server.shared_ca() else { return };
        let (namespace, secret) = authority.place(server.name());
        let mut rules = Rules::default();
        rules.allow("", "secrets", &["create"]); // what has no name yet cannot be allowed by name
        rules.allow_named("", "secrets", std::slice::from_ref(&secret), &["get", "update"]);
        let namespace = namespace.map(str::to_owned);
        self.authorities.push(Authority { namespace, secret, rules });
        for target in authority.targets() {
            let verbs = &["get", "patch"];
            if target.by_label {
                self.cluster.allow(&target.group, &target.plural, &["list", "patch"]);
            }
            if !target.names.is_empty() {
                self.cluster.allow_named(&target.group, &target.plural, target.names, verbs);
            }
        }
    }

    /// Roles and their bindings.
    fn access(&self) -> Vec<Value> {
        let mut everywhere = self.cluster.policy_rules();
        let mut local = self.local.clone();
        let mut namespaced = self.namespaced.clone();
        namespaced.merge(&self.events);
        let mut where_it_works = namespaced.policy_rules();
        where_it_works.extend(self.extra.iter().cloned());
        if self.namespaces.is_empty() {
            everywhere.extend(where_it_works);
        } else {
            if self.is_about_the_cluster {
                let rules = local.entry(EVENTS_OF_CLUSTER.to_owned()).or_default();
                rules.extend(self.events.policy_rules());
            }
            for namespace in &self.namespaces {
                local.entry(namespace.clone()).or_default().extend(where_it_works.iter().cloned());
            }
        }
        everywhere.extend(self.everywhere.iter().cloned());
        let mut objects = Vec::new();
        if !everywhere.is_empty() {
            objects.extend(self.cluster_role(everywhere));
        }
        for (namespace, rules) in local {
            objects.extend(self.role(&self.name, &namespace, rules));
        }
        if !self.own.is_empty() {
            let name = format!("{}-leases", self.name);
            objects.extend(self.role(&name, &self.namespace, self.own.policy_rules()));
        }
        for Authority { namespace, secret, rules } in &self.authorities {
            let namespace = namespace.as_ref().unwrap_or(&self.namespace);
            objects.extend(self.role(secret, namespace, rules.policy_rules()));
        }
        objects
    }

    fn cluster_role(&self, rules: Vec<PolicyRule>) -> [Value; 2] {
        let role = ClusterRole {
            metadata: self.metadata(None),
            rules: Some(rules),
            ..ClusterRole::default()
        };
        let binding = ClusterRoleBinding {
            metadata: self.metadata(None),
            role_ref: role_ref("ClusterRole", &self.name),
            subjects: Some(vec![self.subject()]),
        };
        [document(&role), document(&binding)]
    }

    fn role(&self, name: &str, namespace: &str, rules: Vec<PolicyRule>) -> [Value; 2] {
        let mut metadata = self.metadata(Some(namespace));
        metadata.name = Some(name.to_owned());
        let role = NamespaceRole { metadata: metadata.clone(), rules: Some(rules) };
        let binding = RoleBinding {
            metadata,
            role_ref: role_ref("Role", name),
            subjects: Some(vec![self.subject()]),
        };
        [document(&role), document(&binding)]
    }

    fn metadata(&self, namespace: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.clone()),
            namespace: namespace.map(str::to_owned),
            ..ObjectMeta::default()
        }
    }

    fn subject(&self) -> Subject {
        Subject {
            kind: "ServiceAccount".to_owned(),
            name: self.name.clone(),
            namespace: Some(self.namespace.clone()),
            ..Subject::default()
        }
    }
}

impl fmt::Display for Manifests {
    /// As YAML, a document for each object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for object in self.objects() {
            let yaml = serde_saphyr::to_string(&object).map_err(|_| fmt::Error)?;
            write!(f, "---\n{yaml}")?;
            if !yaml.ends_with('\n') {
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

/// An object with its kind, which the types leave out when it is empty.
fn document<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    let mut document = serde_json::to_value(object).unwrap_or_default();
    document["apiVersion"] = json!(K::api_version(&()));
    document["kind"] = json!(K::kind(&()));
    document
}

//! New objects of the policy, as the store takes them.
//!
//! A hundred and thirty of them are written before the first request of every cluster, so their
//! bytes are put together as text: no document is built, and nobody works out who owns which
//! fields. What comes out is what [`create_object`](crate::write::create::create_object) would
//! store, to the byte.

use bytes::Bytes;

use super::rules::{Binding, RBAC, Role, Rule};
use super::wanted::{Wanted, label_of};

/// What is new about every object.
#[derive(Clone, Copy)]
pub(super) struct Stamp<'a> {
    pub(super) uid: &'a str,
    pub(super) now: &'a str,
}

/// The bytes of an object. `rules` are those of a role, its own or gathered.
pub(super) fn document(wanted: &Wanted, rules: &[Rule], stamp: Stamp<'_>) -> Bytes {
    let mut text = Text(String::with_capacity(2048));
    text.add(r#"{"apiVersion":""#).add(RBAC).add(r#"/v1","kind":""#).add(wanted.kind());
    text.add(
        r#"","metadata":{"annotations":{"rbac.authorization.kubernetes.io/autoupdate":"true"}"#,
    );
    text.add(r#","creationTimestamp":""#).add(stamp.now);
    text.add(r#"","labels":{"kubernetes.io/bootstrapping":"rbac-defaults""#);
    if let Some(label) = wanted.label() {
        text.add(r#",""#).add(&label).add(r#"":"true""#);
    }
    text.add(r#"},"managedFields":["#);
    text.managed(wanted, stamp.now);
    text.add(r#"],"name":""#).add(wanted.name());
    if !wanted.namespace().is_empty() {
        text.add(r#"","namespace":""#).add(wanted.namespace());
    }
    text.add(r#"","uid":""#).add(stamp.uid).add(r#""}"#);
    match wanted {
        Wanted::Role(role) => text.role(role, rules),
        Wanted::Binding(binding) => text.binding(binding),
    };
    text.add("}");
    // The store keeps this for long: no byte more than needed.
    text.0.into_boxed_str().into_boxed_bytes().into()
}

struct Text(String);

impl Text {
    fn add(&mut self, text: &str) -> &mut Self {
        self.0.push_str(text);
        self
    }

    /// Adds items with commas between them.
    fn join<T>(&mut self, items: impl IntoIterator<Item = T>, mut add: impl FnMut(&mut Self, T)) {
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.add(",");
            }
            add(self, item);
        }
    }

    /// Who owns which fields: the server all of them but gathered rules, which are the
    /// controller's that gathers them anew when it has to.
    fn managed(&mut self, wanted: &Wanted, now: &str) {
        let mut fields = String::new();
        if wanted.gathers().is_some() {
            self.manager("Apply", r#"{"f:rules":{}}"#, "clusterrole-aggregation-controller", now);
            self.add(",");
            fields += r#""f:aggregationRule":{".":{},"f:clusterRoleSelectors":{}},"#;
        }
        fields += r#""f:metadata":{"f:annotations":{".":{},"#;
        fields += r#""f:rbac.authorization.kubernetes.io/autoupdate":{}},"#;
        fields += r#""f:labels":{".":{},"f:kubernetes.io/bootstrapping":{}"#;
        if let Some(label) = wanted.label() {
            fields += &format!(r#","f:{label}":{{}}"#);
        }
        fields += match wanted {
            Wanted::Role(Role { rules: None, .. }) => "}}",
            Wanted::Role(_) => r#"}},"f:rules":{}"#,
            Wanted::Binding(binding) if binding.subjects.is_empty() => r#"}},"f:roleRef":{}"#,
            Wanted::Binding(_) => r#"}},"f:roleRef":{},"f:subjects":{}"#,
        };
        self.manager("Update", &format!("{{{fields}}}"), "kube-apiserver", now);
    }

    fn manager(&mut self, operation: &str, fields: &str, manager: &str, now: &str) {
        self.add(r#"{"apiVersion":""#).add(RBAC).add(r#"/v1","fieldsType":"FieldsV1","fieldsV1":"#);
        self.add(fields).add(r#","manager":""#).add(manager).add(r#"","operation":""#);
        self.add(operation).add(r#"","time":""#).add(now).add(r#""}"#);
    }

    fn role(&mut self, role: &Role, rules: &[Rule]) {
        if role.rules.is_none() {
            self.add(r#","aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{""#);
            self.add(&label_of(role.name)).add(r#"":"true"}}]}"#);
        }
        self.add(r#","rules":["#);
        self.join(rules, |text, rule| {
            text.add("{");
            text.join(rule.lists(), |text, (field, words)| {
                text.add("\"").add(field).add(r#"":["#);
                text.join(words.split(' '), |text, word| _ = text.add("\"").add(word).add("\""));
                text.add("]");
            });
            text.add("}");
        });
        self.add("]");
    }

    fn binding(&mut self, binding: &Binding) {
        let kind = if binding.namespace.is_empty() { "ClusterRole" } else { "Role" };
        self.add(r#","roleRef":{"apiGroup":""#).add(RBAC).add(r#"","kind":""#).add(kind);
        self.add(r#"","name":""#).add(binding.role).add(r#""}"#);
        if binding.subjects.is_empty() {
            return;
        }
        self.add(r#","subjects":["#);
        self.join(&*binding.subjects, |text, subject| {
            text.add("{");
            text.join(subject.fields(), |text, (field, value)| {
                text.add("\"").add(field).add(r#"":""#).add(value).add("\"");
            });
            text.add("}");
        });
        self.add("]");
    }
}

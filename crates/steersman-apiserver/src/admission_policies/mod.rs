//! Which admission policies there are, as they and their bindings said when they last changed.
//!
//! [`Policies`] holds them compiled, each once, and [indexed](index) by the resources that they
//! name, so that policies cost nothing to writes that they are not about. A server without any pays
//! one atomic read a write. Only policies that a binding names are among them.
//! [`crate::admission`] evaluates them.

mod hook;
mod index;
mod read;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use steersman_rules::admission_policy::Policy;
use steersman_rules::resource::Resource;
use steersman_store::{Revision, Store};

pub(crate) use hook::{Binding, Constraints, Hook, NamedRule, ParamRef};
use read::Side;

use crate::admission_registration::Asked;
use crate::registry::Table;
use crate::status::Result;

const GROUP: &str = "admissionregistration.k8s.io";

/// The kinds of one sort of policies.
#[derive(Clone, Copy, Debug)]
struct Kinds {
    policies: &'static str,
    bindings: &'static str,
    compile: fn(&serde_json::Value) -> Policy,
}

const MUTATING: Kinds = Kinds {
    policies: "mutatingadmissionpolicies",
    bindings: "mutatingadmissionpolicybindings",
    compile: Policy::mutating,
};

const VALIDATING: Kinds = Kinds {
    policies: "validatingadmissionpolicies",
    bindings: "validatingadmissionpolicybindings",
    compile: Policy::validating,
};

const SORTS: [Kinds; 2] = [MUTATING, VALIDATING];

/// The groups of what is asked and never stored: a policy must not stand between a client and the
/// question who it is.
const REVIEWS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// All policies of one moment.
#[derive(Debug, Default)]
struct Set {
    revision: Revision,
    mutating: Side,
    validating: Side,
}

/// The policies that are in force now.
#[derive(Debug)]
pub(crate) struct Policies {
    /// Which are evaluated at all.
    asked: Asked,
    /// Whether there is any.
    any: AtomicBool,
    /// The lock is held for moments, never over a wait.
    set: RwLock<Arc<Set>>,
}

/// The policies that may be about one write.
#[derive(Debug)]
pub(crate) struct Candidates {
    set: Arc<Set>,
    /// By their places, in order.
    mutating: Vec<usize>,
    validating: Vec<usize>,
}

impl Candidates {
    /// Those that change objects, by name.
    pub(crate) fn mutating(&self) -> impl Iterator<Item = &Hook> {
        self.mutating.iter().map(|at| &self.set.mutating.hooks[*at])
    }

    /// Those that judge, by name.
    pub(crate) fn validating(&self) -> impl Iterator<Item = &Hook> {
        self.validating.iter().map(|at| &self.set.validating.hooks[*at])
    }

    /// Whether any changes objects.
    pub(crate) fn mutate(&self) -> bool {
        !self.mutating.is_empty()
    }

    /// Whether any judges.
    pub(crate) fn validate(&self) -> bool {
        !self.validating.is_empty()
    }
}

impl Policies {
    /// Without any, until they are [loaded](Self::load).
    pub(crate) fn new(asked: Asked) -> Self {
        Self { asked, any: AtomicBool::default(), set: RwLock::default() }
    }

    /// The policies that may be about writes of a resource, which may be found under other groups
    /// as well; `None` if there are none.
    pub(crate) fn of(
        &self,
        resource: &Resource,
        equivalents: impl Fn() -> Vec<Arc<Resource>>,
    ) -> Option<Candidates> {
        if !self.any.load(Ordering::Acquire) || is_exempt(resource) {
            return None;
        }
        let set = self.current();
        let mutating = set.mutating.index.candidates(resource, &equivalents);
        let validating = set.validating.index.candidates(resource, &equivalents);
        let none = mutating.is_empty() && validating.is_empty();
        (!none).then_some(Candidates { set, mutating, validating })
    }

    /// The revision of what is in force, if any of it may be about writes of a resource. Under which
    /// other groups it is found is not asked.
    pub(crate) fn concern(&self, resource: &Resource) -> Option<Revision> {
        self.of(resource, Vec::new).map(|found| found.set.revision)
    }

    fn current(&self) -> Arc<Set> {
        Arc::clone(&self.set.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The revision of what is in force.
    pub(crate) fn revision(&self) -> Revision {
        self.set.read().unwrap_or_else(PoisonError::into_inner).revision
    }

    /// Lets whatever is read next count, for there is another history since.
    pub(crate) fn forget(&self) {
        let mut current = self.set.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::default();
        self.any.store(false, Ordering::Release);
    }

    /// Reads the policies and bindings that the store holds: when the server starts, after each
    /// write of one, before the client hears of it, and when another server has written one. What
    /// has not changed is not compiled again.
    pub(crate) async fn load(&self, store: &dyn Store, table: &Table) -> Result<Revision> {
        let known = self.current();
        let (mut mutating, at) = known.mutating.refreshed(store, table, MUTATING, None).await?;
        let (mut validating, revision) =
            known.validating.refreshed(store, table, VALIDATING, Some(at)).await?;
        if !self.asked.mutating {
            mutating = Side::default();
        }
        if !self.asked.validating {
            validating = Side::default();
        }
        self.install(Set { revision, mutating, validating });
        Ok(revision)
    }

    /// Takes what was read at a revision, unless something newer was.
    fn install(&self, set: Set) {
        let mut current = self.set.write().unwrap_or_else(PoisonError::into_inner);
        if current.revision <= set.revision {
            let any = !(set.mutating.hooks.is_empty() && set.validating.hooks.is_empty());
            *current = Arc::new(set);
            self.any.store(any, Ordering::Release);
        }
    }
}

/// Whether no policy is about a resource: neither about policies and their bindings, which could
/// never be repaired otherwise, nor about reviews.
fn is_exempt(resource: &Resource) -> bool {
    let bindings = || SORTS.iter().any(|kinds| resource.is(GROUP, kinds.bindings));
    are_policies(resource) || bindings() || REVIEWS.contains(&resource.group.as_ref())
}

/// Whether a resource is that of policies, which are compiled when they are written.
pub(crate) fn are_policies(resource: &Resource) -> bool {
    SORTS.iter().any(|kinds| resource.is(GROUP, kinds.policies))
}

/// The folders of policies and bindings.
pub(crate) fn folders() -> [String; 4] {
    [MUTATING.policies, MUTATING.bindings, VALIDATING.policies, VALIDATING.bindings]
        .map(|plural| format!("/registry/{plural}/"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::{Policies, Side, VALIDATING};
    use crate::admission_registration::Asked;
    use crate::registry::Registry;

    /// A set of policies, each about what `resource` says, and each with a binding.
    fn set(count: usize, resource: impl Fn(usize) -> (Value, Value)) -> Policies {
        let policies = Policies::new(Asked { mutating: true, validating: true });
        let document = |n: usize| {
            let (groups, resources) = resource(n);
            json!({"metadata": {"name": format!("p{n}")}, "spec": {
                "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [{
                    "apiGroups": groups, "apiVersions": ["*"], "operations": ["*"],
                    "resources": resources,
                }]},
                "validations": [{"expression": "object.metadata.name != 'x'"}],
            }})
        };
        let binding = |n: usize| json!({"metadata": {"name": format!("b{n}")}, "spec": {"policyName": format!("p{n}")}});
        let documents: Vec<Value> = (0..count).map(document).collect();
        let bindings: Vec<Value> = (0..count).map(binding).collect();
        let validating = Side::of(&documents, &bindings, VALIDATING);
        policies.install(super::Set { validating, ..super::Set::default() });
        policies
    }

    #[test]
    fn policies_are_found_by_group_and_resource() {
        let table = Registry::new().table();
        let resources = [
            (json!([""]), json!(["pods"])),
            (json!(["*"]), json!(["pods/status"])),
            (json!([""]), json!(["*"])),
            (json!(["*"]), json!(["*/*"])),
            (json!(["apps"]), json!(["deployments", "deployments/scale"])),
            (json!(["events.k8s.io"]), json!(["events"])),
            (json!(["other.io"]), json!(["pods"])),
        ];
        let policies = set(resources.len(), |n| resources[n].clone());
        let found = |group: &str, plural: &str| {
            let resource = table.get(group, "v1", plural).unwrap();
            let equivalents = || {
                let same =
                    table.resources().filter(|r| r.storage_prefix == resource.storage_prefix);
                same.cloned().collect()
            };
            policies.of(resource, equivalents).map(|found| found.validating).unwrap_or_default()
        };
        assert_eq!(found("", "pods"), [0, 1, 2, 3]);
        assert_eq!(found("apps", "deployments"), [3, 4]);
        assert_eq!(found("", "events"), [2, 3, 5]);
        assert!(found("admissionregistration.k8s.io", "validatingadmissionpolicies").is_empty());
        assert!(found("authorization.k8s.io", "subjectaccessreviews").is_empty());
        assert_eq!(found("admissionregistration.k8s.io", "validatingwebhookconfigurations"), [3]);
    }

    /// The goal is 20 µs; without optimisation it may take ten times as long.
    #[test]
    fn a_thousand_policies_cost_nothing_to_what_they_are_not_about() {
        let table = Registry::new().table();
        let pods = table.get("", "v1", "pods").unwrap();
        for resource in [
            |n: usize| (json!([format!("g{n}.example.com")]), json!(["pods"])),
            |n: usize| (json!([""]), json!([format!("things{n}")])),
            |_| (json!(["apps"]), json!(["deployments"])),
        ] {
            let policies = set(1000, resource);
            let began = Instant::now();
            for _ in 0..100 {
                assert!(policies.of(pods, Vec::new).is_none());
            }
            let each = began.elapsed() / 100;
            println!("a write that none of 1,000 policies is about pays {each:?}");
            assert!(each.as_micros() < 200, "{each:?}");
        }
    }
}

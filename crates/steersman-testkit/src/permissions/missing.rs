//! What programs were refused in a test, and which rules they lack.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steersman::ObjectKey;
use steersman::controller::Reconciling;
use steersman::manifests::Manifests;
use steersman_cluster::User;

use super::refusal::{Refusal, Target};

/// How many requests are shown that a missing rule has hindered.
const SHOWN: usize = 3;

/// The programs of a test. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Refusals(Arc<Mutex<Vec<Arc<Program>>>>);

/// A deployed program, and what it was refused.
pub(crate) struct Program {
    account: ObjectKey,
    user: String,
    /// The namespaces in which alone it works, if not in all.
    namespaces: Vec<String>,
    noted: Mutex<BTreeMap<Refusal, BTreeSet<Why>>>,
}

/// Where a request came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Why {
    /// None for what a program does beside reconciles, such as to watch.
    pub(super) reconcile: Option<Reconciling>,
    /// Method and path.
    pub(super) request: String,
}

/// A rule that the manifests of a program lack. Printed, it says how to add it, and which requests
/// were refused without it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingRule {
    /// What it must allow.
    pub verbs: Vec<String>,
    /// On what, as kubectl names it: `secrets`, `deployments.apps/scale`; a path such as
    /// `/metrics` of what is no resource.
    pub resource: String,
    /// Where it was missing, as the API server says it.
    pub scope: String,
    advice: String,
    requests: Vec<String>,
}

impl Refusals {
    /// Notes what a program is refused from now on.
    pub(crate) fn of_program(&self, manifests: &Manifests) -> Arc<Program> {
        let account = manifests.account();
        let namespace = account.namespace.as_deref().unwrap_or_default();
        let user = User::service_account(namespace, &account.name).name;
        let program = Arc::new(Program {
            account,
            user,
            namespaces: manifests.namespaces().to_vec(),
            noted: Mutex::default(),
        });
        self.programs().push(Arc::clone(&program));
        program
    }

    /// What all programs were refused, for whoever wants to mend it; none if nothing was.
    pub(crate) fn complaint(&self) -> Option<String> {
        let programs = self.programs();
        let complaints: Vec<String> = programs.iter().filter_map(|it| it.complaint()).collect();
        (!complaints.is_empty()).then(|| complaints.join("\n"))
    }

    /// Fails the test that has ended, if programs were refused anything.
    pub(crate) fn fail_if_any(&self) {
        if let Some(complaint) = self.complaint() {
            panic!("{complaint}");
        }
    }

    fn programs(&self) -> MutexGuard<'_, Vec<Arc<Program>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Program {
    /// The name under which the API server knows it.
    pub(super) fn user(&self) -> &str {
        &self.user
    }

    /// Notes a refusal.
    pub(super) fn note(&self, refusal: Refusal, why: Why) {
        self.noted().entry(refusal).or_default().insert(why);
    }

    /// What was noted, which is forgotten.
    pub(crate) fn take(&self) -> Vec<MissingRule> {
        self.rules(&std::mem::take(&mut *self.noted()))
    }

    fn complaint(&self) -> Option<String> {
        let missing = self.rules(&self.noted());
        if missing.is_empty() {
            return None;
        }
        let rules: String = missing.iter().map(|rule| format!("\n  - {rule}")).collect();
        let account = &self.account;
        Some(format!("the manifests of {account} do not allow what it asked for:{rules}"))
    }

    fn noted(&self) -> MutexGuard<'_, BTreeMap<Refusal, BTreeSet<Why>>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One rule for all that can be allowed by one.
    fn rules(&self, noted: &BTreeMap<Refusal, BTreeSet<Why>>) -> Vec<MissingRule> {
        let mut places: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (refusal, why) in noted {
            let key = (self.place(&refusal.target), resource(&refusal.target));
            places.entry(key).or_default().push((refusal, why));
        }
        let rules = places.into_iter();
        rules.map(|((place, resource), refused)| self.rule(&place, resource, &refused)).collect()
    }

    fn rule(
        &self,
        place: &Place,
        resource: String,
        refused: &[(&Refusal, &BTreeSet<Why>)],
    ) -> MissingRule {
        let verbs: BTreeSet<&str> = refused.iter().map(|(refusal, _)| &*refusal.verb).collect();
        let verbs: Vec<String> = verbs.into_iter().map(str::to_owned).collect();
        let scopes: BTreeSet<String> =
            refused.iter().map(|(refusal, _)| scope(&refusal.target)).collect();
        let requests: BTreeSet<String> = refused
            .iter()
            .flat_map(|(refusal, why)| why.iter().map(|why| format!("{} ({why})", refusal.verb)))
            .collect();
        let home = self.account.namespace.as_deref();
        let at_home = refused.iter().all(|(refusal, _)| namespace(&refusal.target) == home);
        let granted: Vec<&str> =
            refused.iter().filter_map(|(refusal, _)| granted(&refusal.target)).collect();
        let by_hand = by_hand(place, &resource, &verbs);
        let advice = match &*resource {
            "leases.coordination.k8s.io" if at_home => format!(".leader_election(), or {by_hand}"),
            "tokenreviews.authentication.k8s.io" | "subjectaccessreviews.authorization.k8s.io" => {
                format!(".authenticated_metrics(), or {by_hand}")
            }
            _ if !granted.is_empty() => {
                format!(".allow(…) of what it grants: {}", granted.join(", "))
            }
            _ if verbs.iter().any(|verb| verb == "watch") => {
                format!("{by_hand}, or .controller(…) of one that declares the kind")
            }
            _ => by_hand,
        };
        MissingRule {
            advice,
            scope: scopes.into_iter().collect::<Vec<_>>().join(" and "),
            requests: requests.into_iter().collect(),
            verbs,
            resource,
        }
    }

    /// Where a rule has to be added.
    fn place(&self, target: &Target) -> Place {
        if let Target::Grant { .. } = target {
            return Place::Nowhere;
        }
        let works_in = |namespace: &str| self.namespaces.iter().any(|known| known == namespace);
        match namespace(target) {
            _ if self.namespaces.is_empty() => Place::WhereItWorks,
            None => Place::Everywhere,
            Some(namespace) if works_in(namespace) => Place::WhereItWorks,
            Some(namespace) => Place::In(namespace.to_owned()),
        }
    }
}

/// Where a rule has to be added.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    WhereItWorks,
    Everywhere,
    In(String),
    /// It is not one rule of its own.
    Nowhere,
}

/// The line that allows it by hand.
fn by_hand(place: &Place, resource: &str, verbs: &[String]) -> String {
    let quoted: Vec<String> = verbs.iter().map(|verb| format!("{verb:?}")).collect();
    let rule = if resource.starts_with('/') {
        let verbs: Vec<String> = quoted.iter().map(|verb| format!("{verb}.into()")).collect();
        format!(
            "PolicyRule {{ verbs: vec![{}], non_resource_urls: Some(vec![{resource:?}.into()]), \
             ..PolicyRule::default() }}",
            verbs.join(", "),
        )
    } else {
        format!("rule([{}], {resource:?})", quoted.join(", "))
    };
    match place {
        Place::WhereItWorks | Place::Nowhere => format!(".allow({rule})"),
        Place::Everywhere => format!(".allow_everywhere({rule})"),
        Place::In(namespace) => format!(".allow_in({namespace:?}, {rule})"),
    }
}

/// A resource as kubectl names it.
fn resource(target: &Target) -> String {
    match target {
        Target::Path(path) => path.clone(),
        Target::Grant { by, .. } => by.clone(),
        Target::Resource { group, resource, .. } if group.is_empty() => resource.clone(),
        Target::Resource { group, resource, .. } => match resource.split_once('/') {
            Some((resource, subresource)) => format!("{resource}.{group}/{subresource}"),
            None => format!("{resource}.{group}"),
        },
    }
}

fn namespace(target: &Target) -> Option<&str> {
    match target {
        Target::Resource { namespace, .. } => namespace.as_deref(),
        Target::Path(_) | Target::Grant { .. } => None,
    }
}

/// The rules that were to be granted, if it was about that.
fn granted(target: &Target) -> Option<&str> {
    match target {
        Target::Grant { rules, .. } => Some(rules),
        _ => None,
    }
}

/// Where it was refused, as the API server says it.
fn scope(target: &Target) -> String {
    match target {
        Target::Resource { namespace: Some(namespace), .. } => {
            format!("in the namespace {namespace}")
        }
        Target::Resource { namespace: None, .. } => "at the cluster scope".to_owned(),
        Target::Path(_) => "which is no resource".to_owned(),
        Target::Grant { .. } => "for what it may not do itself".to_owned(),
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reconcile {
            Some(reconcile) => write!(f, "{}, in the reconcile {reconcile}", self.request),
            None => write!(f, "{}, in no reconcile", self.request),
        }
    }
}

impl fmt::Display for MissingRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verbs, resource, scope, advice, requests } = self;
        write!(f, "{} {resource} {scope}", verbs.join(", "))?;
        write!(f, "\n    add to the manifests: {advice}")?;
        for request in requests.iter().take(SHOWN) {
            write!(f, "\n    refused: {request}")?;
        }
        match requests.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n    and {more} more"),
        }
    }
}

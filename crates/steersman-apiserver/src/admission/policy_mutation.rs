//! Policies that change objects: in order, and those that wish so again if any have changed it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use steersman_rules::admission_policy::{Body, Mutation, Policy};
use steersman_rules::metadata;
use tokio::time::Instant;

use super::dispatch::{self, Versioned};
use super::matching::Version;
use super::policy_evaluation::{self as evaluation, Inputs};
use super::request::Request;
use super::{policy_matching, policy_params, policy_patch};
use crate::admission_policies::{Binding, Candidates, Hook};
use crate::apart::breath;
use crate::metrics::PolicyCheck;
use crate::status::{Cause, Result, Status};

/// Policies on their way.
pub(super) struct Mutating<'a> {
    candidates: &'a Candidates,
    /// Those that wish to be evaluated again if something changes.
    seen: BTreeSet<Key>,
    /// Those that are to be evaluated again.
    again: BTreeSet<Key>,
    /// What the first round made of the object.
    output: Option<Value>,
}

/// One evaluation: policy, binding, and namespace and name of the parameters.
type Key = [String; 4];

/// One evaluation that a binding asks for.
struct Invocation<'a> {
    hook: &'a Hook,
    binding: &'a Arc<Binding>,
    version: Version,
    params: Value,
}

/// What is known of a request that all evaluations share.
struct Shared {
    namespace: Value,
    authorizers: [steersman_cel::Value<'static>; 2],
}

/// A policy that could not be evaluated.
struct Fault {
    policy: String,
    binding: Option<String>,
    message: String,
    /// Empty, if it is the usual one.
    reason: &'static str,
}

impl<'a> Mutating<'a> {
    pub(super) fn new(candidates: &'a Candidates) -> Self {
        Self { candidates, seen: BTreeSet::new(), again: BTreeSet::new(), output: None }
    }

    /// Evaluates those whose turn it is in the first or second round. Says whether anything changed.
    pub(super) async fn apply(
        &mut self,
        round: usize,
        request: &Request<'_>,
        object: &mut Option<Value>,
        old: Option<&Value>,
    ) -> Result<bool> {
        let mut faults = Vec::new();
        let invocations = self.invocations(request, object.as_ref(), old, &mut faults).await;
        if round == 1 && self.output != *object {
            self.again.append(&mut self.seen);
        }
        let mut changed = false;
        if !invocations.is_empty() {
            let shared = Shared {
                namespace: evaluation::namespace(request).await?,
                authorizers: evaluation::authorizers(request),
            };
            for invocation in &invocations {
                let Some(current) = object.as_ref() else { break };
                let key = invocation.key();
                let skip = round == 1 && !self.again.contains(&key);
                let outcome =
                    invocation.run(request, &shared, (current, old), skip, &mut faults).await?;
                breath().await;
                if let Outcome::Done(new) = outcome {
                    if let Some(new) = new {
                        *object = Some(new);
                        changed = true;
                        self.again.append(&mut self.seen);
                    }
                    if invocation.is_reinvoked() {
                        self.seen.insert(key);
                    }
                }
            }
        }
        if round == 0 {
            // Where anything changed, all look again who wish so, also whoever changed it last.
            if changed {
                self.again.append(&mut self.seen);
            }
            self.output.clone_from(object);
        }
        refused(request, object.as_ref(), &faults)?;
        Ok(changed)
    }

    /// The evaluations that bindings ask for, before anything is changed.
    async fn invocations(
        &self,
        request: &Request<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        faults: &mut Vec<Fault>,
    ) -> Vec<Invocation<'a>> {
        let mut invocations = Vec::new();
        for hook in self.candidates.mutating() {
            match bound(hook, request, object, old, faults).await {
                Ok(found) => invocations.extend(found),
                Err(why) => faults.extend(Fault::of_policy(hook, &why)),
            }
        }
        invocations
    }
}

/// The evaluations that the bindings of a policy ask for. Fails with why the policy cannot be
/// evaluated.
async fn bound<'a>(
    hook: &'a Hook,
    request: &Request<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
    faults: &mut Vec<Fault>,
) -> Result<Vec<Invocation<'a>>, String> {
    let constraints = &hook.policy.constraints;
    let Some(version) = policy_matching::version(request, constraints, object, old).await? else {
        return Ok(Vec::new());
    };
    let kind = hook.policy.policy.param_kind.as_ref();
    let resource =
        kind.map(|kind| policy_params::resource(&request.call.server, kind)).transpose()?;
    let mut invocations = Vec::new();
    for binding in &hook.bindings {
        let matches = match &binding.constraints {
            Some(constraints) => policy_matching::version(request, constraints, object, old).await,
            None => Ok(Some(Version::Same)),
        };
        let params = match matches {
            Ok(None) => continue,
            Ok(Some(_)) => {
                policy_params::collect(request, resource.as_deref(), binding.param_ref.as_ref())
                    .await
            }
            Err(why) => Err(why),
        };
        match params {
            Ok(params) => invocations.extend(params.into_iter().map(|params| Invocation {
                hook,
                binding,
                version: version.clone(),
                params,
            })),
            Err(why) => faults.extend(Fault::of_binding(hook, binding, &why)),
        }
    }
    Ok(invocations)
}

/// How an evaluation ended.
enum Outcome {
    /// It was not its turn, or its conditions do not hold.
    Skipped,
    /// It was evaluated; with the object, if that changed.
    Done(Option<Value>),
}

impl Invocation<'_> {
    fn key(&self) -> Key {
        let part = |field: &str| metadata::text(&self.params, field).to_owned();
        let policy = self.hook.policy.policy.name.clone();
        [policy, self.binding.name.clone(), part("namespace"), part("name")]
    }

    fn is_reinvoked(&self) -> bool {
        matches!(self.hook.policy.policy.body, Body::Mutating { is_reinvoked: true, .. })
    }

    /// Evaluates the mutations, one after the other.
    async fn run(
        &self,
        request: &Request<'_>,
        shared: &Shared,
        (object, old): (&Value, Option<&Value>),
        skip: bool,
        faults: &mut Vec<Fault>,
    ) -> Result<Outcome> {
        let policy = &self.hook.policy.policy;
        let seen = Versioned::of(request, &self.version, Some(object), old).await?;
        let mut current = Looked { request, invocation: self, shared, seen };
        match current.conditions_hold(policy) {
            Ok(true) => {}
            Ok(false) => return Ok(Outcome::Skipped),
            Err(why) => {
                faults.extend(self.fault(why));
                return Ok(Outcome::Skipped);
            }
        }
        if skip {
            return Ok(Outcome::Skipped);
        }
        let Body::Mutating { mutations, .. } = &policy.body else { return Ok(Outcome::Skipped) };
        let before = current.seen.new.clone();
        for mutation in mutations {
            let began = Instant::now();
            let mutated = current.mutated(policy, mutation);
            let why = match &mutated {
                Ok(Ok(_)) => None,
                Ok(Err(why)) => Some(why.as_str()),
                Err(status) => Some(status.message.as_str()),
            };
            let (policy, binding) = (policy.name.as_str(), self.binding.name.as_str());
            let check = PolicyCheck { policy, binding, why, took: began.elapsed() };
            request.call.server.metrics.admission.mutated(check);
            match mutated? {
                Ok(new) => current.seen.new = Some(new),
                Err(why) => faults.extend(self.fault(why)),
            }
        }
        match current.seen.new.take() {
            same if same == before => Ok(Outcome::Done(None)),
            None => Ok(Outcome::Done(None)),
            Some(after) => {
                let back = dispatch::in_version(request, &after, request.resource).await?;
                Ok(Outcome::Done(Some(back)))
            }
        }
    }

    /// It cannot be evaluated, if that matters.
    fn fault(&self, message: String) -> Option<Fault> {
        let fault = Fault::of_binding(self.hook, self.binding, "")?;
        Some(Fault { message, reason: "Invalid", ..fault })
    }
}

/// A request as an evaluation sees it.
struct Looked<'a> {
    request: &'a Request<'a>,
    invocation: &'a Invocation<'a>,
    shared: &'a Shared,
    seen: Versioned,
}

impl Looked<'_> {
    fn conditions_hold(&self, policy: &Policy) -> Result<bool, String> {
        let Self { request, invocation, .. } = self;
        let version = &invocation.version;
        let asked = evaluation::request(request, version, self.seen.objects());
        let asked = evaluation::request_of_conditions(request, version, &asked);
        evaluation::conditions_hold(policy, self.inputs(&asked))
    }

    fn inputs<'b>(&'b self, request: &'b Value) -> Inputs<'b> {
        Inputs {
            objects: self.seen.objects(),
            request,
            params: &self.invocation.params,
            namespace: &self.shared.namespace,
            authorizers: Some(&self.shared.authorizers),
        }
    }

    /// What a mutation makes of the object; fails at once where the server itself fails.
    fn mutated(&self, policy: &Policy, mutation: &Mutation) -> Result<Result<Value, String>> {
        let Self { request, invocation, seen, .. } = self;
        let version = &invocation.version;
        let Some(object) = &seen.new else { return Ok(Ok(Value::Null)) };
        let asked = evaluation::request(request, version, seen.objects());
        let schema = dispatch::schema(request, version);
        let patched = policy_patch::patched(policy, mutation, object, self.inputs(&asked), &schema);
        let mut patched = match patched {
            Ok(patched) => patched,
            Err(why) => return Ok(Err(why)),
        };
        if schema.is_typed()
            && let Some(field) = schema.unknown_fields(&patched).first()
        {
            let why = format!("strict decoding error: unknown field {field:?}");
            return Err(Status::internal(&why));
        }
        patched = dispatch::decoded(request, version, patched)?;
        dispatch::keep_managers(request, object, &mut patched);
        Ok(Ok(patched))
    }
}

impl Fault {
    /// The policy itself cannot be evaluated, if that matters.
    fn of_policy(hook: &Hook, why: &str) -> Option<Self> {
        let policy = &hook.policy.policy;
        policy.fails.then(|| Self {
            policy: policy.name.clone(),
            binding: None,
            message: format!("failed to configure policy: {why}"),
            reason: "",
        })
    }

    fn of_binding(hook: &Hook, binding: &Binding, why: &str) -> Option<Self> {
        let fault = Self::of_policy(hook, why)?;
        let message = format!("failed to configure binding: {why}");
        Some(Self { binding: Some(binding.name.clone()), message, ..fault })
    }

    fn text(&self) -> String {
        let Self { policy, binding, message, .. } = self;
        match binding {
            Some(binding) => {
                format!("policy '{policy}' with binding '{binding}' denied request: {message}")
            }
            None => format!("policy {policy:?} denied request: {message}"),
        }
    }
}

/// The end of a request that policies which must be evaluated could not be evaluated for.
fn refused(request: &Request<'_>, object: Option<&Value>, faults: &[Fault]) -> Result<()> {
    let Some(first) = faults.first() else { return Ok(()) };
    let causes = faults.iter().map(|fault| Cause { message: fault.text(), ..Cause::default() });
    let object = object.unwrap_or(&Value::Null);
    let mut status = request.attributes().forbidden_because(object, "", causes.collect());
    status.message = first.text();
    // Kubernetes leaves the code as it is.
    if !first.reason.is_empty() {
        status.reason = first.reason.into();
    }
    Err(status)
}

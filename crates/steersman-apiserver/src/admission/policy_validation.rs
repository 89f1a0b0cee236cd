//! Policies that judge: what they say of a request, and what their bindings make of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_cel::RUNTIME_BUDGET;
use steersman_rules::admission_policy::{AuditAnnotation, Body, Policy, Validation};
use steersman_values::html_escaped;

use super::conditions::OUT_OF_BUDGET;
use super::dispatch::Versioned;
use super::matching::Version;
use super::policy_evaluation::{self as evaluation, Composition, Inputs, OutOfBudget};
use super::request::Request;
use super::{policy_matching, policy_params};
use crate::admission_policies::{Binding, Candidates, Hook};
use crate::apart::breath;
use crate::metrics::PolicyCheck;
use crate::status::{Cause, Result, Status};

/// The longest message that an expression may compute, in bytes.
const MESSAGE_MAX: usize = 5 * 1024;
/// The longest value of an annotation, in bytes.
const ANNOTATION_MAX: usize = 10 * 1024;

const VALIDATION_FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// Lets policies judge a request; of several that refuse, the first is told.
pub(super) async fn validate(
    candidates: &Candidates,
    request: &Request<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<()> {
    let mut denials = Vec::new();
    for hook in candidates.validating() {
        let mut judge = Judge {
            request,
            hook,
            object,
            old,
            denials: &mut denials,
            annotations: BTreeMap::new(),
        };
        judge.consider().await?;
        breath().await;
    }
    match denials.into_iter().next() {
        None => Ok(()),
        Some(denial) => Err(denial.status(request, object.or(old))),
    }
}

/// Why a request is refused.
struct Denial {
    policy: String,
    binding: Option<String>,
    message: String,
    /// Empty, if it is the usual one.
    reason: String,
}

impl Denial {
    fn status(self, request: &Request<'_>, object: Option<&Value>) -> Status {
        let Self { policy, binding, message, reason } = self;
        let binding = binding.map(|name| format!(" with binding '{name}'")).unwrap_or_default();
        let message =
            format!("ValidatingAdmissionPolicy '{policy}'{binding} denied request: {message}");
        let cause = Cause { message: message.clone(), ..Cause::default() };
        let object = object.unwrap_or(&Value::Null);
        let mut status = request.attributes().forbidden_because(object, &message, vec![cause]);
        status.code = match reason.as_str() {
            "Forbidden" => 403,
            "Unauthorized" => 401,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        status.reason = if reason.is_empty() { "Invalid".into() } else { reason.into() };
        status
    }
}

/// One policy, and a request.
struct Judge<'a> {
    request: &'a Request<'a>,
    hook: &'a Hook,
    object: Option<&'a Value>,
    old: Option<&'a Value>,
    denials: &'a mut Vec<Denial>,
    /// What is audited, of all bindings together.
    annotations: BTreeMap<&'a str, Vec<String>>,
}

impl<'a> Judge<'a> {
    async fn consider(&mut self) -> Result<()> {
        let Self { request, hook, object, old, .. } = *self;
        let policy = &hook.policy.policy;
        let version =
            match policy_matching::version(request, &hook.policy.constraints, object, old).await {
                Ok(None) => return Ok(()),
                Ok(Some(version)) => version,
                Err(why) => return self.misconfigured(None, &why),
            };
        let kind = policy.param_kind.as_ref();
        let resource = match kind.map(|kind| policy_params::resource(&request.call.server, kind)) {
            Some(Err(why)) => return self.misconfigured(None, &why),
            Some(Ok(resource)) => Some(resource),
            None => None,
        };
        let mut converted = None;
        for binding in &hook.bindings {
            match self.params(binding, resource.as_deref()).await {
                Err(why) => self.misconfigured(Some(binding), &why)?,
                Ok(params) if params.is_empty() => {}
                Ok(params) => {
                    let seen = match converted.take() {
                        Some(seen) => seen,
                        None => match Seen::of(request, &version, object, old).await {
                            Ok(seen) => seen,
                            Err(Unseen::Failed(status)) => return Err(status),
                            Err(Unseen::Unconverted(why)) => {
                                self.misconfigured(Some(binding), &why)?;
                                continue;
                            }
                        },
                    };
                    for params in &params {
                        self.judged(binding, judge(policy, &seen, params));
                    }
                    converted = Some(seen);
                }
            }
        }
        self.publish();
        Ok(())
    }

    /// The parameters of each evaluation that a binding asks for; none if it is not about the
    /// request.
    async fn params(
        &self,
        binding: &Binding,
        resource: Option<&steersman_rules::resource::Resource>,
    ) -> Result<Vec<Value>, String> {
        if let Some(constraints) = &binding.constraints {
            let version =
                policy_matching::version(self.request, constraints, self.object, self.old);
            if version.await?.is_none() {
                return Ok(Vec::new());
            }
        }
        policy_params::collect(self.request, resource, binding.param_ref.as_ref()).await
    }

    /// The policy cannot be evaluated.
    fn misconfigured(&mut self, binding: Option<&Binding>, why: &str) -> Result<()> {
        if self.hook.policy.policy.fails {
            let what = if binding.is_some() { "binding" } else { "policy" };
            let message = format!("failed to configure {what}: {why}");
            self.deny(binding, message, String::new());
        }
        Ok(())
    }

    fn deny(&mut self, binding: Option<&Binding>, message: String, reason: String) {
        let policy = self.hook.policy.policy.name.clone();
        let binding = binding.map(|binding| binding.name.clone());
        self.denials.push(Denial { policy, binding, message, reason });
    }

    /// Does what a binding says to do about a judgement.
    fn judged(&mut self, binding: &Binding, judgement: Judgement<'a>) {
        let policy = &self.hook.policy.policy.name;
        for Decision { index, message, reason, is_ignored, took } in judgement.decisions {
            if is_ignored {
                self.count(binding, &message, "allow", took);
                continue;
            }
            for action in &binding.actions {
                self.count(binding, &message, &action.to_lowercase(), took);
                match action.as_str() {
                    "Deny" => self.deny(Some(binding), message.clone(), reason.clone()),
                    "Warn" => self.request.call.warn(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding \
                         '{}': {message}",
                        binding.name
                    )),
                    "Audit" => self.audit(binding, index, &message),
                    _ => {}
                }
            }
        }
        for Told { key, value, took } in judgement.annotations {
            match value {
                Ok(value) => {
                    let values = self.annotations.entry(key).or_default();
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Err(why) => {
                    self.count(binding, &why, "deny", took);
                    self.deny(Some(binding), why, String::new());
                }
            }
        }
    }

    fn count(&self, binding: &Binding, why: &str, action: &str, took: Duration) {
        let Binding { name: binding, policy, .. } = binding;
        let check = PolicyCheck { policy, binding, why: Some(why), took };
        self.request.call.server.metrics.admission.judged(check, action);
    }

    fn audit(&self, binding: &Binding, index: usize, message: &str) {
        let Some(trail) = &self.request.call.trail else { return };
        let Binding { name, policy, actions, .. } = binding;
        let [message, policy, name] = [message, policy, name].map(|text| json!(text).to_string());
        let value = format!(
            r#"[{{"message":{message},"policy":{policy},"binding":{name},"expressionIndex":{index},"validationActions":{}}}]"#,
            json!(actions)
        );
        trail.annotate(VALIDATION_FAILURE, html_escaped(&value));
    }

    /// Tells those who audit what all bindings have to say.
    fn publish(&mut self) {
        let policy = &self.hook.policy.policy.name;
        if let Some(trail) = &self.request.call.trail {
            for (key, values) in std::mem::take(&mut self.annotations) {
                trail.annotate(format!("{policy}/{key}"), values.join(", "));
            }
        }
    }
}

/// A request as a policy sees it.
struct Seen {
    objects: Versioned,
    asked: Value,
    /// The same, as match conditions see it.
    asked_by_conditions: Value,
    namespace: Value,
    authorizers: [steersman_cel::Value<'static>; 2],
}

/// Why a policy does not see a request.
enum Unseen {
    Unconverted(String),
    Failed(Status),
}

impl Seen {
    async fn of(
        request: &Request<'_>,
        version: &Version,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Self, Unseen> {
        let objects = Versioned::of(request, version, object, old).await.map_err(|status| {
            Unseen::Unconverted(format!("failed to convert object version: {}", status.message))
        })?;
        let asked = evaluation::request(request, version, objects.objects());
        let of_conditions = evaluation::request_of_conditions(request, version, &asked);
        Ok(Self {
            asked_by_conditions: of_conditions.into_owned(),
            objects,
            asked,
            namespace: evaluation::namespace(request).await.map_err(Unseen::Failed)?,
            authorizers: evaluation::authorizers(request),
        })
    }
}

/// What is audited.
struct Told<'a> {
    key: &'a str,
    /// Its value, or why it has none.
    value: Result<String, String>,
    took: Duration,
}

/// What a policy has to say about a request.
#[derive(Default)]
struct Judgement<'a> {
    /// What does not hold.
    decisions: Vec<Decision>,
    /// What is audited, or why that cannot be said.
    annotations: Vec<Told<'a>>,
}

/// Something does not hold.
struct Decision {
    /// Which of the validations it is.
    index: usize,
    message: String,
    /// Empty, if it is the usual one.
    reason: String,
    /// Whether it could not be evaluated, and need not be.
    is_ignored: bool,
    took: Duration,
}

impl Decision {
    /// A validation could not be evaluated.
    fn failed(policy: &Policy, index: usize, message: String, took: Duration) -> Self {
        Self { index, message, reason: String::new(), is_ignored: !policy.fails, took }
    }
}

impl Judgement<'_> {
    /// The policy could not be evaluated at all.
    fn failed(policy: &Policy, message: String) -> Self {
        let decisions = vec![Decision::failed(policy, 0, message, Duration::ZERO)];
        Self { decisions, ..Self::default() }
    }
}

/// Evaluates a policy with parameters.
fn judge<'a>(policy: &'a Policy, seen: &Seen, params: &Value) -> Judgement<'a> {
    let Body::Validating { validations, annotations } = &policy.body else {
        return Judgement::default();
    };
    let inputs = Inputs {
        objects: seen.objects.objects(),
        request: &seen.asked,
        params,
        namespace: &seen.namespace,
        authorizers: Some(&seen.authorizers),
    };
    let of_conditions = Inputs { request: &seen.asked_by_conditions, ..inputs };
    match evaluation::conditions_hold(policy, of_conditions) {
        Ok(true) => {}
        Ok(false) => return Judgement::default(),
        Err(why) => return Judgement::failed(policy, why),
    }
    // Neither messages nor annotations ask who may do what.
    let silent = Inputs { authorizers: None, ..inputs };
    let decided = decide(policy, validations, inputs, silent);
    let annotated = decided.and_then(|decisions| {
        Ok(Judgement { decisions, annotations: annotate(policy, annotations, silent)? })
    });
    annotated.unwrap_or_else(|OutOfBudget| Judgement::failed(policy, OUT_OF_BUDGET.to_owned()))
}

/// What does not hold of the validations of a policy.
fn decide(
    policy: &Policy,
    validations: &[Validation],
    inputs: Inputs<'_>,
    silent: Inputs<'_>,
) -> Result<Vec<Decision>, OutOfBudget> {
    let mut left = RUNTIME_BUDGET;
    let composition = Composition::new(policy, inputs);
    let mut answers = Vec::with_capacity(validations.len());
    for validation in validations {
        let answer = composition.evaluate(&validation.expression, &mut left)?;
        answers.push((answer.map(|answer| answer.as_bool() == Some(true)), composition.took()));
    }
    let messages = messages(policy, validations, silent, left);
    let mut decisions = Vec::new();
    for (index, (validation, (answer, took))) in validations.iter().zip(answers).enumerate() {
        match (answer, &messages) {
            (Err(why), _) => decisions.push(Decision::failed(policy, index, why, took)),
            (Ok(_), Err(OutOfBudget)) => {
                let why = format!("failed messageExpression: {OUT_OF_BUDGET}");
                decisions.push(Decision::failed(policy, index, why, took));
            }
            (Ok(true), _) => {}
            (Ok(false), Ok(messages)) => decisions.push(Decision {
                index,
                message: message(validation, messages[index].as_deref()),
                reason: match validation.reason.as_str() {
                    "" => "Invalid".to_owned(),
                    reason => reason.to_owned(),
                },
                is_ignored: false,
                took,
            }),
        }
    }
    Ok(decisions)
}

/// The messages that validations compute, where they do.
fn messages(
    policy: &Policy,
    validations: &[Validation],
    inputs: Inputs<'_>,
    mut left: u64,
) -> Result<Vec<Option<String>>, OutOfBudget> {
    let composition = Composition::new(policy, inputs);
    let mut messages = Vec::with_capacity(validations.len());
    for validation in validations {
        messages.push(match &validation.message_expression {
            None => None,
            Some(expression) => {
                let computed = composition.evaluate(expression, &mut left)?;
                computed.ok().and_then(|message| message.as_str().map(str::to_owned))
            }
        });
    }
    Ok(messages)
}

/// What is said of a validation that does not hold.
fn message(validation: &Validation, computed: Option<&str>) -> String {
    let usable = |text: &&str| text.len() <= MESSAGE_MAX && !text.contains('\n');
    let computed = computed.map(str::trim).filter(usable).unwrap_or_default();
    match (computed, validation.message.trim()) {
        ("", "") => format!("failed expression: {}", validation.expression.text.trim()),
        ("", message) => message.to_owned(),
        (message, _) => message.to_owned(),
    }
}

/// What those are told who audit.
fn annotate<'a>(
    policy: &'a Policy,
    annotations: &'a [AuditAnnotation],
    inputs: Inputs<'_>,
) -> Result<Vec<Told<'a>>, OutOfBudget> {
    let composition = Composition::new(policy, inputs);
    let mut left = RUNTIME_BUDGET;
    let mut told = Vec::new();
    for AuditAnnotation { key, value } in annotations {
        let outcome = match composition.evaluate(value, &mut left)? {
            Ok(steersman_cel::Value::Null) => continue,
            Ok(found) => match found.as_str().map(str::trim) {
                Some("") => continue,
                Some(text) => Ok(shortened(text)),
                None => Err(format!(
                    "valueExpression '{}' resulted in unsupported return type: {}. Return type \
                     must be either string or null.",
                    value.text,
                    found.type_of().name()
                )),
            },
            Err(_) if !policy.fails => continue,
            Err(why) => Err(why),
        };
        told.push(Told { key, value: outcome, took: composition.took() });
    }
    Ok(told)
}

fn shortened(text: &str) -> String {
    let mut end = text.len().min(ANNOTATION_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

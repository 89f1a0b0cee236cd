//! What the expressions of a policy are worth for a request.
//!
//! A [`Composition`] is one look at the variables of a policy: each is computed when it is first
//! asked for, and then known. What variables cost is charged to the expression that asked first.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value as Json, json};
use steersman_cel::{
    Activation, Budget, Error, Fields, MATCH_CONDITIONS_BUDGET, PER_CALL_LIMIT, Value,
};
use steersman_rules::abandoned::is_abandoned;
use steersman_rules::admission_policy::{
    AUTHORIZER, Expression, NAMESPACE, OBJECT, OLD_OBJECT, PARAMS, Policy, REQUEST,
    REQUEST_RESOURCE, VARIABLES, Variable,
};
use tokio::time::Instant;

use super::admission_review::{self, Objects};
use super::conditions::{self, OUT_OF_BUDGET};
use super::matching::{Version, stored_namespace};
use super::request::Request;
use crate::status::Result as StatusResult;

static NULL: Json = Json::Null;

/// What one expression may cost. It ends early if nobody waits for the request any more; whoever
/// evaluates lets the request be [given up](crate::apart::breath) before anything follows from that.
const BUDGET: Budget<'_> = Budget { cost: PER_CALL_LIMIT, cancelled: Some(&is_abandoned) };

/// What expressions about a request speak of.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub(super) objects: Objects<'a>,
    pub(super) request: &'a Json,
    pub(super) params: &'a Json,
    pub(super) namespace: &'a Json,
    /// `authorizer` and `authorizer.requestResource`, for those who may ask.
    pub(super) authorizers: Option<&'a [Value<'static>; 2]>,
}

/// The request, as expressions see it.
pub(super) fn request(request: &Request<'_>, version: &Version, objects: Objects<'_>) -> Json {
    admission_review::asked(request, version, objects)
}

/// The same, as match conditions see it: they are told the resource that was asked for, whichever
/// version the policy looks at.
pub(super) fn request_of_conditions<'a>(
    request: &Request<'_>,
    version: &Version,
    asked: &'a Json,
) -> Cow<'a, Json> {
    if matches!(version, Version::Same) {
        return Cow::Borrowed(asked);
    }
    let mut asked = asked.clone();
    asked["resource"] = admission_review::asked_resource(request);
    Cow::Owned(asked)
}

/// What is shown of the namespace of a request; null if it is about none.
pub(super) async fn namespace(request: &Request<'_>) -> StatusResult<Json> {
    const SHOWN: [&str; 12] = [
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "name",
        "namespace",
        "resourceVersion",
        "uid",
    ];
    let name = request.place.namespace;
    if name.is_empty() || request.resource.is("", "namespaces") {
        return Ok(Json::Null);
    }
    let mut namespace = stored_namespace(request, name).await?;
    let mut metadata = namespace["metadata"].take();
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|field, _| SHOWN.contains(&field.as_str()));
    }
    let [spec, status] = ["spec", "status"].map(|part| namespace[part].take());
    Ok(json!({"metadata": metadata, "spec": spec, "status": status}))
}

/// One look at the variables of a policy.
pub(super) struct Composition<'a> {
    inputs: Inputs<'a>,
    policy: &'a Policy,
    /// What variables are worth, by their places; `None` while that is being computed. It is never
    /// borrowed meanwhile.
    values: RefCell<BTreeMap<usize, Option<Result<Value<'a>, Error>>>>,
    /// How deep the stack was when this began.
    depth: usize,
    /// What variables have cost since that was last charged.
    cost: Cell<u64>,
    /// How long the last expression took.
    took: Cell<Duration>,
}

/// All expressions together have cost too much.
#[derive(Debug)]
pub(super) struct OutOfBudget;

impl<'a> Composition<'a> {
    pub(super) fn new(policy: &'a Policy, inputs: Inputs<'a>) -> Self {
        let values = RefCell::default();
        let (cost, took) = (Cell::new(0), Cell::new(Duration::ZERO));
        Self { inputs, policy, values, depth: stack_depth(), cost, took }
    }

    /// How long the last expression took, with the variables that it was the first to ask for.
    pub(super) fn took(&self) -> Duration {
        self.took.get()
    }

    /// What an expression is worth, or why nothing; its cost is taken from what is left.
    pub(super) fn evaluate(
        &'a self,
        expression: &'a Expression,
        left: &mut u64,
    ) -> Result<Result<Value<'a>, String>, OutOfBudget> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(why) => {
                self.took.set(Duration::ZERO);
                return Ok(Err(format!("compilation error: {why}")));
            }
        };
        let began = Instant::now();
        let outcome = program.evaluate(&self.activation(), BUDGET);
        self.took.set(began.elapsed());
        for cost in [self.cost.take(), outcome.cost] {
            *left = left.checked_sub(cost).ok_or(OutOfBudget)?;
        }
        let text = &expression.text;
        Ok(outcome.value.map_err(|why| format!("expression '{text}' resulted in error: {why}")))
    }

    fn activation(&'a self) -> Activation<'a> {
        let Inputs { objects, request, params, namespace, authorizers } = self.inputs;
        let activation = Activation::new()
            .json(OBJECT, objects.new.unwrap_or(&NULL))
            .json(OLD_OBJECT, objects.old.unwrap_or(&NULL))
            .json(REQUEST, request)
            .json(PARAMS, params)
            .json(NAMESPACE, namespace)
            .fields(VARIABLES, self);
        match authorizers {
            Some([authorizer, about]) => activation
                .value(AUTHORIZER, authorizer.clone())
                .value(REQUEST_RESOURCE, about.clone()),
            None => activation,
        }
    }

    fn compute(&'a self, at: usize) -> Result<Value<'a>, Error> {
        let Variable { name, expression } = &self.policy.variables[at];
        let failed = |does: &str, why: &dyn std::fmt::Display| {
            Error::new(format!("composited variable {name:?} fails to {does}: {why}"))
        };
        let program = expression.program.as_ref().map_err(|why| failed("compile", why))?;
        if stack_depth().abs_diff(self.depth) > STACK_MAX {
            return Err(failed("evaluate", &"too many variables need each other"));
        }
        let outcome = program.evaluate(&self.activation(), BUDGET);
        self.cost.set(self.cost.get().saturating_add(outcome.cost));
        outcome.value.map_err(|why| failed("evaluate", &why))
    }
}

impl<'a> Fields<'a> for Composition<'a> {
    fn field(&'a self, name: &str) -> Option<Result<Value<'a>, Error>> {
        let at = self.policy.place_of(name)?;
        let known = self.values.borrow().get(&at).cloned();
        match known {
            Some(Some(known)) => return Some(known),
            Some(None) => {
                let why = format!("composited variable {name:?} needs itself");
                return Some(Err(Error::new(why)));
            }
            None => {}
        }
        self.values.borrow_mut().insert(at, None);
        let value = self.compute(at);
        self.values.borrow_mut().insert(at, Some(value.clone()));
        Some(value)
    }
}

/// How much of the stack variables that need each other may take, beside what one expression takes.
const STACK_MAX: usize = 512 * 1024;

/// Where on the stack this is.
fn stack_depth() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

/// Whether the match conditions of a policy hold. One that does not hold decides; else one that
/// cannot be evaluated ends as the failure policy says. Fails with why the policy fails.
pub(super) fn conditions_hold(policy: &Policy, inputs: Inputs<'_>) -> Result<bool, String> {
    if policy.conditions.is_empty() {
        return Ok(true);
    }
    // Conditions do not see the namespace.
    let composition = Composition::new(policy, Inputs { namespace: &NULL, ..inputs });
    let mut left = MATCH_CONDITIONS_BUDGET;
    let mut failures = BTreeSet::new();
    let mut told = Vec::new();
    let mut holds = true;
    for condition in &policy.conditions {
        match composition.evaluate(condition, &mut left) {
            Err(OutOfBudget) if policy.fails => return Err(OUT_OF_BUDGET.to_owned()),
            Err(OutOfBudget) => return Ok(false),
            Ok(Ok(answer)) => holds &= answer.as_bool() == Some(true),
            Ok(Err(why)) => {
                if failures.insert(why.clone()) {
                    told.push(why);
                }
            }
        }
    }
    match told.as_slice() {
        _ if !holds => Ok(false),
        [] => Ok(true),
        _ if !policy.fails => Ok(false),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// What asks the authorizer about a request.
pub(super) fn authorizers(request: &Request<'_>) -> [Value<'static>; 2] {
    conditions::authorizers(request)
}

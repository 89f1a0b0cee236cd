//! A compiled expression, ready to run any number of times.

pub(crate) mod cost;
mod eval;
mod node;
mod plan;

use std::sync::Arc;

use serde_json::Value as Json;

use crate::checker::Checked;
use crate::effort::Effort;
use crate::env::{Env, Variable};
use crate::error::Error;
use crate::shape::Type;
use crate::source::{Issues, Reporter};
use crate::value::Value;
use node::Node;

/// What an expression may cost in one evaluation in Kubernetes.
pub const PER_CALL_LIMIT: u64 = 1_000_000;
/// What all expressions may cost together for one object in Kubernetes.
pub const RUNTIME_BUDGET: u64 = 10_000_000;
/// What the match conditions of a webhook or policy may cost together in Kubernetes.
pub const MATCH_CONDITIONS_BUDGET: u64 = RUNTIME_BUDGET / 4;

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    root: Node,
    slots: Vec<(Arc<str>, Variable)>,
    /// How many variables of comprehensions there can be at once.
    places: usize,
    result: Type,
}

/// The values of variables.
#[derive(Default)]
pub struct Activation<'a> {
    bindings: Vec<(&'a str, Binding<'a>)>,
}

/// Computes a value when it is first asked for.
pub type Lazy<'a> = dyn Fn() -> Result<Value<'a>, Error> + 'a;

/// Computes the fields of a variable when they are asked for.
pub trait Fields<'a> {
    /// The value of a field, or why it has none; `None` if there is no such field.
    fn field(&'a self, name: &str) -> Option<Result<Value<'a>, Error>>;
}

#[derive(Clone)]
enum Binding<'a> {
    Json(&'a Json),
    Value(Value<'a>),
    Lazy(&'a Lazy<'a>),
    Fields(&'a dyn Fields<'a>),
}

impl<'a> Activation<'a> {
    /// Without variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With a variable whose value is JSON, seen through its declared shape.
    #[must_use]
    pub fn json(mut self, name: &'a str, value: &'a Json) -> Self {
        self.bindings.push((name, Binding::Json(value)));
        self
    }

    /// With a variable whose value is ready.
    #[must_use]
    pub fn value(mut self, name: &'a str, value: Value<'a>) -> Self {
        self.bindings.push((name, Binding::Value(value)));
        self
    }

    /// With a variable whose value is computed if it is needed.
    #[must_use]
    pub fn lazy(mut self, name: &'a str, value: &'a Lazy<'a>) -> Self {
        self.bindings.push((name, Binding::Lazy(value)));
        self
    }

    /// With a variable whose fields are computed if they are needed.
    #[must_use]
    pub fn fields(mut self, name: &'a str, fields: &'a dyn Fields<'a>) -> Self {
        self.bindings.push((name, Binding::Fields(fields)));
        self
    }

    fn get(&self, name: &str) -> Option<&Binding<'a>> {
        self.bindings.iter().rev().find(|(known, _)| *known == name).map(|(_, binding)| binding)
    }
}

/// How far an evaluation may go.
#[derive(Clone, Copy)]
pub struct Budget<'b> {
    /// What it may cost.
    pub cost: u64,
    /// Asked now and then: whether to stop.
    pub cancelled: Option<&'b dyn Fn() -> bool>,
}

impl Default for Budget<'_> {
    /// As much as Kubernetes allows.
    fn default() -> Self {
        Self { cost: PER_CALL_LIMIT, cancelled: None }
    }
}

impl Budget<'_> {
    /// So much cost.
    #[must_use]
    pub fn of(cost: u64) -> Self {
        Self { cost, cancelled: None }
    }
}

/// How an evaluation ended.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// What the expression is worth, or why nothing.
    pub value: Result<Value<'a>, Error>,
    /// What it cost.
    pub cost: u64,
}

impl Program {
    pub(crate) fn new(checked: &Checked, env: &Env, text: &str) -> Result<Self, Issues> {
        let mut planner = plan::Planner::new(checked, env);
        match planner.plan(&checked.ast.root) {
            Ok(root) => {
                let result = checked.ty(&checked.ast.root).clone();
                Ok(Self { root, slots: planner.slots, places: planner.places, result })
            }
            Err((id, error)) => {
                let mut reporter = Reporter::new(text);
                reporter.report(checked.ast.offset(id), error.to_string());
                Err(Issues { issues: reporter.issues })
            }
        }
    }

    /// The type of its value.
    #[must_use]
    pub fn result_type(&self) -> &Type {
        &self.result
    }

    /// The variables that it uses.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|(name, _)| &**name)
    }

    /// Runs it.
    pub fn evaluate<'a>(&'a self, activation: &Activation<'a>, budget: Budget<'_>) -> Outcome<'a> {
        let _effort = Effort::begin();
        let mut machine = eval::Machine::new(self, activation, budget);
        let value = machine.eval(&self.root);
        Outcome { value, cost: machine.cost() }
    }
}

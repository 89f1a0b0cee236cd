//! Admission policies as they are evaluated: their expressions, compiled.
//!
//! [`environment`] says what expressions may speak of, [`compiler`] makes programs of them. The
//! rules of the kinds compile to find mistakes; [`Policy`] is what the server keeps. What is wrong
//! with an expression that was stored all the same is kept in place of its program.
//! [`type_checking`] warns of what cannot be true of the kinds that a policy is about.

mod compiler;
mod environment;
mod type_checking;

use std::collections::HashMap;

use serde_json::Value;
use steersman_cel::Program;

pub use compiler::{Compiler, Returns, VARIABLES_MAX};
pub use environment::{
    AUTHORIZER, NAMESPACE, OBJECT, OLD_OBJECT, Offers, PARAMS, REQUEST, REQUEST_RESOURCE, VARIABLES,
};
pub use type_checking::{ExpressionWarning, KnownKind, Params, type_warnings};

use crate::metadata;

/// An expression, and what to evaluate, or why that cannot be done.
#[derive(Debug)]
pub struct Expression {
    /// As it was written.
    pub text: String,
    /// What was made of it.
    pub program: Result<Program, String>,
}

/// A value with a name, computed when it is first asked for.
#[derive(Debug)]
pub struct Variable {
    /// What it is called.
    pub name: String,
    /// What it is worth.
    pub expression: Expression,
}

/// What must hold of a request, and what is said if it does not.
#[derive(Debug)]
pub struct Validation {
    /// Whether it holds.
    pub expression: Expression,
    /// What is said; empty if nothing is prepared.
    pub message: String,
    /// Computes what is said.
    pub message_expression: Option<Expression>,
    /// The reason of a refusal; empty if it is the usual one.
    pub reason: String,
}

/// What those are told who audit.
#[derive(Debug)]
pub struct AuditAnnotation {
    /// Under which name.
    pub key: String,
    /// Computes it.
    pub value: Expression,
}

/// How a policy changes an object.
#[derive(Debug)]
pub enum Mutation {
    /// By what is laid over it.
    ApplyConfiguration(Expression),
    /// By operations.
    JsonPatch(Expression),
}

/// What a policy does.
#[derive(Debug)]
pub enum Body {
    /// It judges.
    Validating {
        /// What must hold.
        validations: Vec<Validation>,
        /// What is audited.
        annotations: Vec<AuditAnnotation>,
    },
    /// It changes.
    Mutating {
        /// How, in order.
        mutations: Vec<Mutation>,
        /// Whether it is evaluated again after others have changed the object.
        is_reinvoked: bool,
    },
}

/// A policy, compiled.
#[derive(Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// The version and the kind of its parameters.
    pub param_kind: Option<(String, String)>,
    /// Whether a request is refused that the policy cannot be evaluated for.
    pub fails: bool,
    /// What must hold for the policy to apply.
    pub conditions: Vec<Expression>,
    /// Its variables, in order.
    pub variables: Vec<Variable>,
    /// Their places by name; of two with one name the later one counts.
    places: HashMap<String, usize>,
    /// What it does.
    pub body: Body,
}

impl Policy {
    /// Compiles a policy that judges.
    #[must_use]
    pub fn validating(policy: &Value) -> Self {
        Self::compiled(policy, |spec, compiler| Body::Validating {
            validations: items(&spec["validations"])
                .map(|validation| Validation::of(validation, compiler))
                .collect(),
            annotations: items(&spec["auditAnnotations"])
                .map(|annotation| AuditAnnotation {
                    key: text(&annotation["key"]).to_owned(),
                    value: Expression::of(&annotation["valueExpression"], |text| {
                        compiler.expression(text, Returns::TextOrNull)
                    }),
                })
                .collect(),
        })
    }

    /// Compiles a policy that changes objects.
    #[must_use]
    pub fn mutating(policy: &Value) -> Self {
        Self::compiled(policy, |spec, compiler| Body::Mutating {
            mutations: items(&spec["mutations"])
                .filter_map(|mutation| Mutation::of(mutation, compiler))
                .collect(),
            is_reinvoked: spec["reinvocationPolicy"] == "IfNeeded",
        })
    }

    /// Where a variable is among the others.
    #[must_use]
    pub fn place_of(&self, variable: &str) -> Option<usize> {
        self.places.get(variable).copied()
    }

    fn compiled(policy: &Value, body: impl FnOnce(&Value, &Compiler) -> Body) -> Self {
        let spec = &policy["spec"];
        let param_kind = spec["paramKind"].as_object().map(|kind| {
            let part = |field: &str| kind.get(field).map(text).unwrap_or_default().to_owned();
            (part("apiVersion"), part("kind"))
        });
        let mut compiler = Compiler::new(param_kind.is_some()).composed();
        let variables: Vec<Variable> = items(&spec["variables"])
            .take(VARIABLES_MAX)
            .map(|variable| {
                let name = text(&variable["name"]).to_owned();
                let expression =
                    Expression::of(&variable["expression"], |text| compiler.variable(&name, text));
                Variable { name, expression }
            })
            .collect();
        let conditions = items(&spec["matchConditions"]).map(|condition| {
            let compile = |text: &str| compiler.expression(text, Returns::Bool);
            Expression::of(&condition["expression"], compile)
        });
        Self {
            name: metadata::text(policy, "name").to_owned(),
            param_kind,
            fails: spec["failurePolicy"] != "Ignore",
            conditions: conditions.collect(),
            places: variables.iter().enumerate().map(|(at, v)| (v.name.clone(), at)).collect(),
            variables,
            body: body(spec, &compiler),
        }
    }
}

impl Expression {
    fn of(text: &Value, compile: impl FnOnce(&str) -> Result<Program, String>) -> Self {
        let text = self::text(text).to_owned();
        Self { program: compile(&text), text }
    }
}

impl Validation {
    fn of(validation: &Value, compiler: &Compiler) -> Self {
        let compile = |text: &str| compiler.expression(text, Returns::Bool);
        let message = &validation["messageExpression"];
        Self {
            expression: Expression::of(&validation["expression"], compile),
            message: text(&validation["message"]).to_owned(),
            message_expression: (!text(message).is_empty())
                .then(|| Expression::of(message, |text| compiler.message(text))),
            reason: text(&validation["reason"]).to_owned(),
        }
    }
}

impl Mutation {
    fn of(mutation: &Value, compiler: &Compiler) -> Option<Self> {
        let expression = |part: &str, returns| {
            Expression::of(&mutation[part]["expression"], |text| compiler.mutation(text, returns))
        };
        match text(&mutation["patchType"]) {
            "ApplyConfiguration" => {
                Some(Self::ApplyConfiguration(expression("applyConfiguration", Returns::Object)))
            }
            "JSONPatch" => Some(Self::JsonPatch(expression("jsonPatch", Returns::Patches))),
            _ => None,
        }
    }

    /// What it evaluates.
    #[must_use]
    pub fn expression(&self) -> &Expression {
        match self {
            Self::ApplyConfiguration(expression) | Self::JsonPatch(expression) => expression,
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

//! One rule, compiled.

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value;
use steersman_cel::{Compiled, Env, Issues, Program, Shape, Type};

use super::field_path;

pub(super) const SELF: &str = "self";
pub(super) const OLD_SELF: &str = "oldSelf";

/// The rules that stand in a schema.
pub(super) fn all_of(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["x-kubernetes-validations"].as_array().into_iter().flatten()
}

/// A rule that can be evaluated.
pub(super) struct Rule {
    pub(super) program: Result<Program, String>,
    /// The expression that makes the message, as it is written and compiled.
    pub(super) message_program: Option<(Box<str>, Program)>,
    /// Whether it speaks of what an object replaces.
    pub(super) uses_old: bool,
    /// Whether it may do so where there is nothing to replace.
    pub(super) optional_old: bool,
    /// As messages name it: its message, or the rule itself.
    pub(super) named: Box<str>,
    pub(super) message: Box<str>,
    pub(super) reason: Option<Box<str>>,
    /// Where its failures are told, from where it stands.
    pub(super) field_path: Option<String>,
    /// How what it sees is shaped.
    pub(super) shape: Arc<Shape>,
}

impl Rule {
    /// A rule as a schema has it; `None` if it says nothing.
    pub(super) fn new(rule: &Value, schema: &Value, seen: &Seen<'_>) -> Option<Self> {
        let text = |field: &str| rule[field].as_str().unwrap_or_default().trim();
        let given = rule["rule"].as_str().filter(|given| !given.trim().is_empty())?;
        let env = seen.environment(rule);
        let compiled = bool_of(env, given);
        let uses_old = compiled.as_ref().is_ok_and(|compiled| compiled.uses(OLD_SELF));
        let program = compiled.and_then(|it| it.program().map_err(|why| not_made(&why)));
        let message_program = message_of(env, rule).and_then(|made| made.ok()?.program().ok());
        let expression = rule["messageExpression"].as_str().unwrap_or_default();
        let message = text("message");
        let field_path = rule["fieldPath"].as_str().filter(|path| !path.is_empty());
        Some(Self {
            program,
            message_program: message_program.map(|program| (expression.into(), program)),
            uses_old,
            optional_old: is_optional(rule),
            named: if message.is_empty() { given.trim().into() } else { message.into() },
            message: message.into(),
            reason: rule["reason"].as_str().map(Box::from),
            field_path: field_path.and_then(|path| field_path::resolved(schema, path)),
            shape: Arc::clone(seen.shape),
        })
    }
}

/// What the rules of one schema see, and may refer to: all of them the same, but for how they see
/// what an object replaces.
pub(super) struct Seen<'a> {
    pub(super) shape: &'a Arc<Shape>,
    plain: OnceCell<Env>,
    optional: OnceCell<Env>,
}

impl<'a> Seen<'a> {
    pub(super) fn of(shape: &'a Arc<Shape>) -> Self {
        Self { shape, plain: OnceCell::new(), optional: OnceCell::new() }
    }

    /// What the expressions of a rule may refer to.
    pub(super) fn environment(&self, rule: &Value) -> &Env {
        let shape = self.shape;
        let env = || Env::kubernetes().shared_variable(SELF, Arc::clone(shape));
        if is_optional(rule) {
            let optional = || env().typed_variable(OLD_SELF, Type::optional(shape.ty()));
            self.optional.get_or_init(optional)
        } else {
            self.plain.get_or_init(|| env().shared_variable(OLD_SELF, Arc::clone(shape)))
        }
    }
}

fn is_optional(rule: &Value) -> bool {
    rule["optionalOldSelf"] == true
}

/// Compiles the rule itself.
pub(super) fn bool_of<'e>(env: &'e Env, text: &str) -> Result<Compiled<'e>, String> {
    let compiled = env.check(text).map_err(|why| format!("compilation failed: {why}"))?;
    match compiled.result_type() {
        Type::Bool => Ok(compiled),
        _ => Err("cel expression must evaluate to a bool".to_owned()),
    }
}

/// Compiles the message expression, if there is one.
pub(super) fn message_of<'e>(env: &'e Env, rule: &Value) -> Option<Result<Compiled<'e>, String>> {
    let text = rule["messageExpression"].as_str().filter(|text| !text.is_empty())?;
    let compiled = env.check(text);
    let compiled = compiled.map_err(|why| format!("messageExpression compilation failed: {why}"));
    Some(compiled.and_then(|compiled| match compiled.result_type() {
        Type::String => Ok(compiled),
        _ => Err("messageExpression must evaluate to a string".to_owned()),
    }))
}

/// It compiles, but cannot be run.
pub(super) fn not_made(why: &Issues) -> String {
    format!("program instantiation failed: {}", first(why))
}

/// What stands in the way of a program. Where that is, cel-go does not tell any more.
pub(super) fn first(why: &Issues) -> &str {
    why.issues.first().map_or("", |issue| issue.message.as_str())
}

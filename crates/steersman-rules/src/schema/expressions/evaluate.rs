//! What rules say of an object.
//!
//! What was there before and has not changed since is not refused: of a value that is equal to the
//! one it replaces, failures are told as warnings, unless the rule itself compares the two. Items
//! are compared with the item of the same keys, those of other lists not at all.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_cel::{
    Activation, Budget, ErrorKind, PER_CALL_LIMIT, Program, RUNTIME_BUDGET, Shape,
};
use steersman_values::quoted;

use super::super::correlation::{Items, is_unchanged};
use super::super::node::Node;
use super::super::validate::Change;
use super::level::Level;
use super::rule::{OLD_SELF, Rule, SELF};
use crate::abandoned::is_abandoned;
use crate::field::{Errors, FieldError, FieldErrorKind};

/// How far one expression may go.
const BUDGET: Budget<'_> = Budget { cost: PER_CALL_LIMIT, cancelled: Some(&is_abandoned) };

/// The longest message that an expression may make.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// How many warnings are kept; more help nobody.
const WARNINGS_MAX: usize = 1000;

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be run";

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What is wrong.
    pub(crate) errors: Errors,
    /// What is wrong and was so before.
    pub(crate) warnings: Vec<String>,
}

/// Evaluates all rules on an object. With its shape, what has not changed is forgiven.
pub(in crate::schema) fn evaluate(
    root: &Level,
    shape: Option<&Node>,
    change: Change<'_>,
) -> Findings {
    let Change { new, old } = change;
    let mut run = Run { findings: Findings::default(), budget: RUNTIME_BUDGET };
    let whole = shape.zip(old).map(|(node, old)| Pair::new(node, new, old));
    let unchanged = Ratchet { current: whole.as_ref(), parent: None };
    let place = Place { path: "", old, unchanged };
    // Whether it came to an end stands in what it found.
    let _ = run.level(root, new, place);
    run.findings
}

struct Run {
    findings: Findings,
    /// What is left of what all rules may cost together.
    budget: u64,
}

/// A value and what it replaces.
struct Pair<'a> {
    /// How it is shaped.
    node: &'a Node,
    new: &'a Value,
    old: &'a Value,
    /// Whether it is as it was, once that was asked: each of many items may want to know.
    unchanged: OnceCell<bool>,
}

/// What has to be unchanged for a failure to be forgiven.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    current: Option<&'a Pair<'a>>,
    /// The nearest value around it that has a counterpart.
    parent: Option<&'a Pair<'a>>,
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    path: &'a str,
    /// What rules see as `oldSelf`.
    old: Option<&'a Value>,
    unchanged: Ratchet<'a>,
}

/// Whether evaluation goes on.
type Flow = ControlFlow<()>;

impl<'a> Pair<'a> {
    fn new(node: &'a Node, new: &'a Value, old: &'a Value) -> Self {
        Self { node, new, old, unchanged: OnceCell::new() }
    }

    fn is_unchanged(&self) -> bool {
        *self.unchanged.get_or_init(|| is_unchanged(self.node, self.new, self.old))
    }
}

impl<'a> Ratchet<'a> {
    fn forgives(self) -> bool {
        self.current.or(self.parent).is_some_and(Pair::is_unchanged)
    }

    /// The same for whoever looks at a field. In which version an object was written cannot be seen any
    /// more.
    fn beside(self, field: &str) -> Self {
        match self.parent {
            None if ["apiVersion", "kind"].contains(&field) => Self { current: None, parent: None },
            _ => self,
        }
    }

    /// A part of the value with what it replaces, if both are known.
    fn part(
        self,
        shape: impl FnOnce(&'a Node) -> &'a Node,
        old: Option<&'a Value>,
        new: &'a Value,
    ) -> Option<Pair<'a>> {
        let node = self.current?.node.said();
        Some(Pair::new(shape(node), new, old?))
    }

    /// The same for that part.
    fn below(self, part: Option<&'a Pair<'a>>) -> Self {
        match self.current {
            None => self,
            parent => Self { current: part, parent },
        }
    }
}

impl Run {
    fn level(&mut self, level: &Level, value: &Value, place: Place<'_>) -> Flow {
        if value.is_null() {
            return Flow::Continue(());
        }
        if !level.rules.is_empty() {
            self.rules(level, value, place)?;
        }
        for part in &level.parts {
            let unchanged = Ratchet { current: None, ..place.unchanged };
            self.level(part, value, Place { unchanged, ..place })?;
        }
        match value {
            Value::Array(items) => self.items(level, items, place),
            Value::Object(_) => self.fields(level, value, place),
            _ => Flow::Continue(()),
        }
    }

    fn items(&mut self, level: &Level, items: &[Value], place: Place<'_>) -> Flow {
        let Some(below) = &level.items else { return Flow::Continue(()) };
        let before = place.old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let before = Items::new(level.list_keys.as_deref(), before);
        for (index, item) in items.iter().enumerate() {
            let path = format!("{}[{index}]", place.path);
            let old = before.like(item);
            let part = place.unchanged.part(Node::item, old, item);
            let unchanged = place.unchanged.below(part.as_ref());
            self.level(below, item, Place { path: &path, old, unchanged })?;
        }
        Flow::Continue(())
    }

    fn fields(&mut self, level: &Level, value: &Value, place: Place<'_>) -> Flow {
        let fields = value.as_object().into_iter().flatten();
        for (name, value) in fields {
            let additional = level.additional.as_deref();
            let (below, path) = match (additional, level.properties.get(name.as_str())) {
                (Some(additional), _) => (additional, format!("{}[{name}]", place.path)),
                (None, Some(property)) if place.path.is_empty() => (property, name.clone()),
                (None, Some(property)) => (property, format!("{}.{name}", place.path)),
                (None, None) => continue,
            };
            let old = place.old.and_then(|old| old.get(name));
            let unchanged = place.unchanged.beside(name);
            let part = unchanged.part(|node| node.child(name), old, value);
            let unchanged = unchanged.below(part.as_ref());
            self.level(below, value, Place { path: &path, old, unchanged })?;
        }
        Flow::Continue(())
    }

    fn rules(&mut self, level: &Level, value: &Value, place: Place<'_>) -> Flow {
        if self.budget == 0 {
            return self.end(level, place, OUT_OF_BUDGET);
        }
        let old = place.old.filter(|old| !old.is_null());
        for rule in &level.rules {
            if rule.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            let place = Place { old, ..place };
            match &rule.program {
                Err(why) => self.invalid(level, place, &format!("rule compile error: {why}")),
                Ok(program) => self.rule(level, rule, program, value, place)?,
            }
        }
        Flow::Continue(())
    }

    fn rule(
        &mut self,
        level: &Level,
        rule: &Rule,
        program: &Program,
        value: &Value,
        place: Place<'_>,
    ) -> Flow {
        let activation = activation(rule, value, place.old);
        let outcome = program.evaluate(&activation, BUDGET);
        let Some(left) = self.budget.checked_sub(outcome.cost) else {
            return self.end(level, place, OUT_OF_BUDGET);
        };
        self.budget = left;
        match outcome.value {
            Ok(answer) if answer.as_bool() == Some(true) => Flow::Continue(()),
            Ok(_) => self.failed(level, rule, value, place),
            Err(why) if why.kind == ErrorKind::CostLimit => {
                let text = format!(
                    "'{why}': no further validation rules will be run due to call cost exceeds \
                     limit for rule: {}",
                    rule.named
                );
                self.end(level, place, &text)
            }
            Err(why) => {
                let why = why.to_string();
                let text = match why.starts_with("no such overload") {
                    true => format!(
                        "'{why}': call arguments did not match a supported operator, function or \
                         macro signature for rule: {}",
                        rule.named
                    ),
                    false => format!("{why} evaluating rule: {}", rule.named),
                };
                self.invalid(level, place, &text);
                Flow::Continue(())
            }
        }
    }

    /// Tells that a rule does not hold.
    fn failed(&mut self, level: &Level, rule: &Rule, value: &Value, place: Place<'_>) -> Flow {
        let message = match self.message(level, rule, value, place) {
            Ok(message) => message,
            Err(why) => {
                self.add(rule, place, invalid_type(level, &told_at(rule, place), &why));
                return Flow::Break(());
            }
        };
        let detail = message.unwrap_or_else(|| match rule.message.is_empty() {
            true => format!("failed rule: {}", rule.named),
            false => rule.message.to_string(),
        });
        let shown = match &*level.type_name {
            "object" | "array" => None,
            _ => Some(value),
        };
        self.add(
            rule,
            place,
            error_of(rule.reason.as_deref(), &told_at(rule, place), shown, &detail),
        );
        Flow::Continue(())
    }

    /// What the message expression makes of the failure; nothing if it makes nothing of use.
    fn message(
        &mut self,
        level: &Level,
        rule: &Rule,
        value: &Value,
        place: Place<'_>,
    ) -> Result<Option<String>, String> {
        let Some((text, program)) = &rule.message_program else { return Ok(None) };
        // What is replaced is seen as it is, never as an option, and only beside a rule that asks for it.
        let activation = plain_activation(value, place.old.filter(|_| level.uses_old));
        let outcome = program.evaluate(&activation, BUDGET);
        let Some(left) = self.budget.checked_sub(outcome.cost) else {
            return Err("messageExpression evaluation failed due to running out of cost budget, \
                        no further validation rules will be run"
                .to_owned());
        };
        self.budget = left;
        match outcome.value {
            Err(why) if why.kind == ErrorKind::CostLimit => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                     messageExpression: {}",
                quoted(text)
            )),
            Err(_) => Ok(None),
            Ok(message) => {
                let message = message.as_str().map(str::trim).unwrap_or_default();
                let is_usable = !message.is_empty()
                    && message.len() <= MESSAGE_BYTES_MAX
                    && !message.contains('\n');
                Ok(is_usable.then(|| message.to_owned()))
            }
        }
    }

    fn add(&mut self, rule: &Rule, place: Place<'_>, error: FieldError) {
        if rule.uses_old || !place.unchanged.forgives() {
            self.findings.errors.push(error);
        } else if self.findings.warnings.len() < WARNINGS_MAX {
            self.findings.warnings.push(error.message());
        }
    }

    fn invalid(&mut self, level: &Level, place: Place<'_>, why: &str) {
        self.findings.errors.push(invalid_type(level, &shown_path(place.path), why));
    }

    fn end(&mut self, level: &Level, place: Place<'_>, why: &str) -> Flow {
        self.invalid(level, place, why);
        Flow::Break(())
    }
}

/// What the expressions of a rule see.
pub(super) fn activation<'a>(
    rule: &'a Rule,
    value: &'a Value,
    old: Option<&'a Value>,
) -> Activation<'a> {
    if rule.optional_old {
        let activation = Activation::new().json(SELF, value);
        return activation.value(OLD_SELF, optional(old, &rule.shape));
    }
    plain_activation(value, old)
}

fn plain_activation<'a>(value: &'a Value, old: Option<&'a Value>) -> Activation<'a> {
    let activation = Activation::new().json(SELF, value);
    match old {
        Some(old) => activation.json(OLD_SELF, old),
        None => activation,
    }
}

fn optional<'a>(old: Option<&'a Value>, shape: &'a Shape) -> steersman_cel::Value<'a> {
    let old = old.and_then(|old| steersman_cel::Value::shaped(old, shape).ok());
    steersman_cel::Value::Optional(old.map(Arc::new))
}

fn told_at(rule: &Rule, place: Place<'_>) -> String {
    match &rule.field_path {
        Some(below) if place.path.is_empty() => below.clone(),
        Some(below) => format!("{}.{below}", place.path),
        None => shown_path(place.path),
    }
}

/// The object itself has no path.
fn shown_path(path: &str) -> String {
    if path.is_empty() { "<nil>".to_owned() } else { path.to_owned() }
}

fn invalid_type(level: &Level, path: &str, why: &str) -> FieldError {
    FieldError::invalid(path, &json!(level.type_name), why)
}

/// A failure as its reason has it. Objects and lists are not shown.
fn error_of(reason: Option<&str>, path: &str, shown: Option<&Value>, detail: &str) -> FieldError {
    match (reason, shown) {
        (Some("FieldValueForbidden"), _) => FieldError::forbidden(path, detail),
        (Some("FieldValueRequired"), _) => FieldError::required(path, detail),
        (Some("FieldValueDuplicate"), Some(value)) => FieldError::duplicate(path, value),
        (Some("FieldValueDuplicate"), None) => FieldError {
            kind: FieldErrorKind::Duplicate,
            field: path.to_owned(),
            text: "Duplicate value".to_owned(),
        },
        (_, Some(value)) => FieldError::invalid(path, value, detail),
        (_, None) => FieldError {
            kind: FieldErrorKind::Invalid,
            field: path.to_owned(),
            text: format!("Invalid value: {detail}"),
        },
    }
}

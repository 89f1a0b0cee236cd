//! Runs a program. Recursion goes as deep as the expression nests, which parsing bounds.

mod lookup;
mod loops;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Error;
use crate::library::{find, find_all};
use crate::value::{Map, Struct, Value, equal};

use super::{Activation, Binding, Budget, Fields, Program};
use crate::program::cost::{LIST_CREATE, MAP_CREATE, Rule, STRUCT_CREATE};
use crate::program::node::{
    Attribute, Branch, By, CallNode, ElementNode, EntryNode, Equality, Members, Node, OrElse,
    PatternKind, PatternNode, Root, StructNode,
};
use lookup::{Missing, computed, field, index, present};

type Answer<'a> = Result<Value<'a>, Error>;

/// The state of one evaluation.
pub(super) struct Machine<'a, 'b> {
    program: &'a Program,
    slots: Vec<Option<Binding<'a>>>,
    locals: Vec<Local<'a>>,
    cost: u64,
    budget: Budget<'b>,
    /// How often a loop went round: a question about going on is asked now and then.
    rounds: u32,
}

/// A variable of a comprehension.
#[derive(Clone)]
enum Local<'a> {
    Value(Value<'a>),
    /// Is computed when it is first used.
    Lazy(&'a Node),
    Failed(Error),
}

impl<'a, 'b> Machine<'a, 'b> {
    pub(super) fn new(
        program: &'a Program,
        activation: &Activation<'a>,
        budget: Budget<'b>,
    ) -> Self {
        let slots = program.slots.iter().map(|(name, _)| activation.get(name).cloned()).collect();
        let locals = vec![Local::Value(Value::Null); program.places];
        Self { program, slots, locals, cost: 0, budget, rounds: 0 }
    }

    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    fn charge(&mut self, cost: u64) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.budget.cost { Err(Error::cost_limit()) } else { Ok(()) }
    }

    pub(super) fn eval(&mut self, node: &'a Node) -> Answer<'a> {
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Equal(equality) => self.equality(equality),
            Node::Call(call) => self.call(call),
            Node::Pattern(pattern) => self.pattern(pattern),
            Node::Member(member) => self.member(&member.0, &member.1),
            Node::OrElse(or) => self.or_else(or),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Struct(construction) => self.construction(construction),
            Node::Quantifier(quantifier) => self.quantifier(quantifier),
            Node::One(over) => self.one(over),
            Node::Collect(collect) => self.collect(collect),
            Node::Bind(bind) => self.bind(bind),
        }
    }

    fn attribute(&mut self, attribute: &'a Attribute) -> Answer<'a> {
        let value = self.resolve(attribute);
        if let Err(error) = &value
            && error.is_final()
        {
            return value;
        }
        if !matches!(attribute.root, Root::Conditional(_)) {
            if !attribute.test {
                self.charge(1)?;
            }
        } else if attribute.test {
            self.cost = self.cost.saturating_sub(1);
        }
        value
    }

    fn branch(&mut self, branch: &'a Branch) -> Answer<'a> {
        match branch {
            Branch::Attribute(attribute) => self.resolve(attribute),
            Branch::Computed(node) => self.eval(node),
        }
    }

    /// The value of an attribute, without the cost of having asked for it.
    fn resolve(&mut self, attribute: &'a Attribute) -> Answer<'a> {
        let value = match &attribute.root {
            Root::Slot(at) => {
                if let Some(Binding::Fields(fields)) = self.slots[*at] {
                    return self.qualify(Value::Null, attribute, Some(fields));
                }
                self.slot(*at)?
            }
            Root::Local(place) => self.local(*place)?,
            Root::Computed(node) => self.eval(node)?,
            Root::Conditional(parts) => match self.eval(&parts.0)? {
                Value::Bool(true) => self.branch(&parts.1)?,
                Value::Bool(false) => self.branch(&parts.2)?,
                _ => return Err(Error::no_such_overload()),
            },
        };
        if attribute.qualifiers.is_empty() {
            return Ok(value);
        }
        self.qualify(value, attribute, None)
    }

    /// Goes from a value along the qualifiers of an attribute; the first leads into `fields`, where
    /// those are what the attribute begins with.
    fn qualify(
        &mut self,
        value: Value<'a>,
        attribute: &'a Attribute,
        fields: Option<&'a dyn Fields<'a>>,
    ) -> Answer<'a> {
        if attribute.qualifiers.is_empty() {
            return Err(Error::no_such_overload());
        }
        let (mut value, mut optional) = match value {
            Value::Optional(None) if attribute.test => return Ok(Value::Bool(false)),
            Value::Optional(None) => return Ok(value),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        let last = attribute.qualifiers.len() - 1;
        for (at, qualifier) in attribute.qualifiers.iter().enumerate() {
            optional |= qualifier.optional;
            let found = match fields.filter(|_| at == 0) {
                Some(fields) => computed(fields, &qualifier.by),
                None => self.step(&value, &qualifier.by),
            };
            if attribute.test && at == last {
                self.charge(1)?;
                return present(found).map(Value::Bool);
            }
            match found {
                Ok(next) => value = next,
                Err(Missing::Absent(_)) if optional => {
                    return Ok(if attribute.test {
                        Value::Bool(false)
                    } else {
                        Value::Optional(None)
                    });
                }
                Err(Missing::Absent(error) | Missing::Failed(error)) => {
                    if !error.is_final() {
                        self.charge(1)?;
                    }
                    return Err(error);
                }
            }
            self.charge(1)?;
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    fn step(&mut self, value: &Value<'a>, by: &'a By) -> Result<Value<'a>, Missing> {
        match by {
            By::Field(name, expected) => field(value, name, expected.as_ref()),
            By::Constant(key) => index(value, key),
            By::Computed(branch) => {
                let key = self.branch(branch).map_err(Missing::Failed)?;
                index(value, &key)
            }
        }
    }

    fn slot(&mut self, at: usize) -> Answer<'a> {
        match &self.slots[at] {
            Some(Binding::Value(value)) => Ok(value.clone()),
            Some(Binding::Json(json)) => Value::shaped(json, &self.program.slots[at].1.shape),
            Some(Binding::Lazy(lazy)) => {
                let value = lazy()?;
                self.slots[at] = Some(Binding::Value(value.clone()));
                Ok(value)
            }
            // Only its fields have values.
            Some(Binding::Fields(_)) => Err(Error::no_such_overload()),
            None => {
                let name = &self.program.slots[at].0;
                Err(Error::new(format!("no such attribute(s): {name}")))
            }
        }
    }

    fn local(&mut self, place: usize) -> Answer<'a> {
        let node = match &self.locals[place] {
            Local::Value(value) => return Ok(value.clone()),
            Local::Failed(error) => return Err(error.clone()),
            Local::Lazy(node) => *node,
        };
        let value = self.eval(node);
        self.locals[place] = match &value {
            Ok(value) => Local::Value(value.clone()),
            Err(error) => Local::Failed(error.clone()),
        };
        value
    }

    /// `&&` and `||`: one deciding term decides, whatever the others fail with.
    fn logical(&mut self, terms: &'a [Node], deciding: bool) -> Answer<'a> {
        let mut failed = None;
        for term in terms {
            let error = match self.eval(term) {
                Ok(Value::Bool(answer)) if answer == deciding => return Ok(Value::Bool(deciding)),
                Ok(Value::Bool(_)) => continue,
                Ok(_) => Error::no_such_overload(),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => error,
            };
            failed.get_or_insert(error);
        }
        failed.map_or(Ok(Value::Bool(!deciding)), Err)
    }

    /// Both sides of an operator, or why not and what the other side is: cel-go computes the second
    /// even if the first failed.
    fn both(&mut self, sides: &'a [Node; 2]) -> Result<[Value<'a>; 2], (Error, Option<Value<'a>>)> {
        let first = match self.eval(&sides[0]) {
            Err(error) if error.is_final() => return Err((error, None)),
            first => first,
        };
        match (first, self.eval(&sides[1])) {
            (Ok(first), Ok(second)) => Ok([first, second]),
            (_, Err(error)) if error.is_final() => Err((error, None)),
            (Err(error), second) => Err((error, second.ok())),
            (Ok(first), Err(error)) => Err((error, Some(first))),
        }
    }

    /// An operator that got no value costs one.
    fn failed<T>(&mut self, error: Error) -> Result<T, Error> {
        if !error.is_final() {
            self.charge(1)?;
        }
        Err(error)
    }

    fn equality(&mut self, equality: &'a Equality) -> Answer<'a> {
        let sides = match self.both(&equality.sides) {
            Ok(sides) => sides,
            Err((error, other)) => {
                // What failed has size one; comparing with nothing costs nothing.
                let size = other.as_ref().map_or(1, Value::cost_size);
                if !error.is_final() {
                    self.charge(size.min(1))?;
                }
                return Err(error);
            }
        };
        let same = equal(&sides[0], &sides[1]);
        self.charge(equality.rule.cost(&sides, None))?;
        same.map(|same| Value::Bool(same != equality.negated))
    }

    fn call(&mut self, call: &'a CallNode) -> Answer<'a> {
        match call.args.as_slice() {
            [] => self.run(call, &[]),
            [one] => match self.eval(one) {
                Ok(one) => self.run(call, &[one]),
                Err(error) => self.failed(error),
            },
            [first, second] => {
                let first = self.eval(first);
                if let Err(error) = &first
                    && error.is_final()
                {
                    return first;
                }
                let second = self.eval(second);
                match (first, second) {
                    (Ok(first), Ok(second)) => self.run(call, &[first, second]),
                    (_, Err(error)) if error.is_final() => Err(error),
                    (Err(error), _) | (_, Err(error)) => self.failed(error),
                }
            }
            many => {
                let mut args = Vec::with_capacity(many.len());
                for arg in many {
                    args.push(self.eval(arg)?);
                }
                self.run(call, &args)
            }
        }
    }

    fn run(&mut self, call: &'a CallNode, args: &[Value<'a>]) -> Answer<'a> {
        let mut value = Err(Error::no_such_overload());
        for run in &call.runs {
            value = run(args);
            if !matches!(&value, Err(error) if *error == Error::no_such_overload()) {
                break;
            }
        }
        let cost = match call.rule {
            Rule::Fixed(cost) => cost,
            rule => rule.cost(args, value.as_ref().ok()),
        };
        self.charge(cost)?;
        value
    }

    fn pattern(&mut self, node: &'a PatternNode) -> Answer<'a> {
        // A text, a pattern and, for some, a number.
        let mut places = [Value::Null, Value::Null, Value::Null];
        for (place, arg) in places.iter_mut().zip(&node.args) {
            *place = self.eval(arg)?;
        }
        let args = &places[..node.args.len()];
        self.charge(node.rule.cost(args, None))?;
        let Some(text) = args.first().and_then(Value::as_str) else {
            return Err(Error::no_such_overload());
        };
        match node.kind {
            PatternKind::Matches => Ok(Value::Bool(node.pattern.is_match(text))),
            PatternKind::Find => Ok(find(&node.pattern, text)),
            PatternKind::FindAll => {
                let limit = args.get(2).map_or(Some(-1), Value::as_int);
                let limit = limit.ok_or_else(Error::no_such_overload)?;
                Ok(find_all(&node.pattern, text, limit))
            }
        }
    }

    fn member(&mut self, wanted: &'a Node, members: &Members) -> Answer<'a> {
        let wanted = self.eval(wanted)?;
        if let Value::String(text) = &wanted {
            return Ok(Value::Bool(members.texts.contains(text.as_str())));
        }
        for member in &members.others {
            if equal(member, &wanted)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }

    fn or_else(&mut self, or: &'a OrElse) -> Answer<'a> {
        match self.eval(&or.sides[0])? {
            Value::Optional(Some(value)) if or.unwrap => Ok((*value).clone()),
            value @ Value::Optional(Some(_)) => Ok(value),
            Value::Optional(None) => self.eval(&or.sides[1]),
            _ => Err(Error::no_such_overload()),
        }
    }

    fn list(&mut self, elements: &'a [ElementNode]) -> Answer<'a> {
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.eval(&element.value)?;
            if !element.optional {
                items.push(value);
                continue;
            }
            match value {
                Value::Optional(Some(value)) => items.push((*value).clone()),
                Value::Optional(None) => {}
                other => {
                    return Err(Error::new(format!(
                        "cannot initialize optional list element from non-optional value {other}"
                    )));
                }
            }
        }
        self.charge(LIST_CREATE)?;
        Ok(Value::list(items))
    }

    /// The value of an entry that may be absent.
    fn entry(
        &mut self,
        name: &dyn std::fmt::Display,
        value: &'a Node,
        optional: bool,
    ) -> Result<Option<Value<'a>>, Error> {
        let value = self.eval(value)?;
        match value {
            value if !optional => Ok(Some(value)),
            Value::Optional(value) => Ok(value.map(|value| (*value).clone())),
            other => Err(Error::new(format!(
                "cannot initialize optional entry '{name}' from non-optional value {other}"
            ))),
        }
    }

    fn map(&mut self, nodes: &'a [EntryNode]) -> Answer<'a> {
        let mut entries = Vec::with_capacity(nodes.len());
        for node in nodes {
            let key = self.eval(&node.key)?;
            if let Some(value) = self.entry(&key, &node.value, node.optional)? {
                entries.push((key, value));
            }
        }
        self.charge(MAP_CREATE)?;
        Map::new(entries).map(Value::Map)
    }

    fn construction(&mut self, node: &'a StructNode) -> Answer<'a> {
        let mut fields = BTreeMap::new();
        for (name, value, optional) in &node.fields {
            if let Some(value) = self.entry(name, value, *optional)? {
                fields.insert(Arc::clone(name), value);
            }
        }
        self.charge(STRUCT_CREATE)?;
        Ok(Value::Struct(Arc::new(Struct { shape: Arc::clone(&node.shape), fields })))
    }
}

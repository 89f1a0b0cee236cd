//! From the checked tree to the program.

use std::collections::HashSet;
use std::sync::Arc;

use crate::ast::{
    ACCUMULATOR, Call, Comprehension, Element, Entry, Expr, Form, Id, Kind, Literal, Select,
};
use crate::checker::{Checked, Reference};
use crate::env::{Env, Variable};
use crate::error::Error;
use crate::library::Run;
use crate::pattern::compile;
use crate::shape::Type;
use crate::shape::{DYN, ObjectShape};
use crate::value::{List, Map, Text, Value};

use super::cost::{Rule, rule};
use super::node::{
    Attribute, Bind, Branch, By, CallNode, Collect, ElementNode, EntryNode, Equality, Into, Loop,
    Members, Node, OrElse, PatternKind, PatternNode, Qualifier, Quantifier, Root, StructNode,
};

/// What planning makes, beside the root.
pub(super) struct Planner<'c> {
    checked: &'c Checked,
    env: &'c Env,
    /// Variables from outside, in the order in which they are first used.
    pub(super) slots: Vec<(Arc<str>, Variable)>,
    /// Variables of comprehensions around the node, each with its place.
    locals: Vec<(Arc<str>, usize)>,
    next: usize,
    /// How many places there must be.
    pub(super) places: usize,
}

/// Why there is no program, and which node is to blame.
pub(super) type Refused = (Id, Error);

type Planned = Result<Node, Refused>;

/// Functions whose value is computed beforehand if that of the argument is known.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

impl<'c> Planner<'c> {
    pub(super) fn new(checked: &'c Checked, env: &'c Env) -> Self {
        Self { checked, env, slots: Vec::new(), locals: Vec::new(), next: 0, places: 0 }
    }

    pub(super) fn plan(&mut self, expr: &Expr) -> Planned {
        match &expr.kind {
            Kind::Unreadable => Err((expr.id, Error::new("invalid expression"))),
            Kind::Literal(literal) => Ok(Node::Const(constant(literal))),
            Kind::Ident(name) => Ok(self.name(expr.id, name)),
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct(construction) => self.construction(expr.id, &construction.fields),
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn name(&mut self, id: Id, written: &str) -> Node {
        let root = match self.checked.references.get(&id) {
            Some(Reference::Type(ty)) => return Node::Const(Value::Type(ty.clone())),
            Some(Reference::Local(name)) => self.local(name),
            Some(Reference::Variable(name)) => Root::Slot(self.slot(Arc::clone(name))),
            _ => Root::Slot(self.slot(written.into())),
        };
        attribute(root)
    }

    fn local(&mut self, name: &Arc<str>) -> Root {
        match self.locals.iter().rev().find(|(known, _)| known == name) {
            Some((_, place)) => Root::Local(*place),
            None => Root::Slot(self.slot(Arc::clone(name))),
        }
    }

    fn slot(&mut self, name: Arc<str>) -> usize {
        if let Some(at) = self.slots.iter().position(|(known, _)| *known == name) {
            return at;
        }
        let variable = self.env.variables.get(&name).cloned();
        let variable =
            variable.unwrap_or_else(|| Variable { ty: Type::Dyn, shape: Arc::new(DYN.clone()) });
        self.slots.push((name, variable));
        self.slots.len() - 1
    }

    /// The attribute that a node is, or one that starts from its value.
    fn attribute_of(node: Node) -> Box<Attribute> {
        match node {
            Node::Attribute(attribute) if !attribute.test => attribute,
            other => Box::new(Attribute {
                root: Root::Computed(other),
                qualifiers: Vec::new(),
                test: false,
            }),
        }
    }

    fn qualified(operand: Node, by: By, optional: bool) -> Box<Attribute> {
        let mut attribute = Self::attribute_of(operand);
        attribute.qualifiers.push(Qualifier { by, optional });
        attribute
    }

    /// The object that the checker expects a field in.
    fn object_of(&self, operand: &Expr) -> Option<Arc<ObjectShape>> {
        let ty = self.checked.ty(operand);
        match ty.as_optional().unwrap_or(ty) {
            Type::Object(shape) => Some(Arc::clone(shape)),
            _ => None,
        }
    }

    fn select(&mut self, expr: &Expr, select: &Select) -> Planned {
        if self.checked.references.contains_key(&expr.id) {
            return Ok(self.name(expr.id, &select.field));
        }
        let by = By::Field(Arc::clone(&select.field), self.object_of(&select.operand));
        let mut attribute = Self::qualified(self.plan(&select.operand)?, by, false);
        attribute.test = select.test;
        Ok(Node::Attribute(attribute))
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Planned {
        let Some(Reference::Function(name, chosen)) = self.checked.references.get(&expr.id) else {
            // Found missing when it runs: nothing was checked.
            let rule = Rule::Fixed(1);
            return Ok(Node::Call(Box::new(CallNode { runs: Vec::new(), args: Vec::new(), rule })));
        };
        let name = *name;
        if name == "_?._"
            && let [operand, Expr { kind: Kind::Literal(Literal::String(field)), .. }] =
                call.args.as_slice()
        {
            let by = By::Field(Arc::clone(field), self.object_of(operand));
            return Ok(Node::Attribute(Self::qualified(self.plan(operand)?, by, true)));
        }
        let overloads = self.env.function(name).map_or(&[][..], |(_, overloads)| overloads);
        let chosen: Vec<_> = chosen.iter().filter_map(|at| overloads.get(*at)).collect();
        let member = chosen.first().is_some_and(|overload| overload.member);
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for arg in call.target.iter().filter(|_| member).chain(&call.args) {
            args.push(self.plan(arg)?);
        }
        let overload = match chosen.as_slice() {
            [one] => Some(one.id),
            _ => None,
        };
        let mut runs: Vec<Run> = Vec::new();
        for overload in &chosen {
            if !runs.iter().any(|run| std::ptr::fn_addr_eq(*run, overload.run)) {
                runs.push(overload.run);
            }
        }
        let kubernetes = self.env.kubernetes_costs;
        special(name, overload, args, kubernetes).or_else(|args| {
            let rule = rule(name, overload, kubernetes);
            ordinary((name, overload), runs, args, rule).map_err(|error| (expr.id, error))
        })
    }

    fn list(&mut self, elements: &[Element]) -> Planned {
        let mut nodes = Vec::with_capacity(elements.len());
        for element in elements {
            let value = self.plan(&element.value)?;
            nodes.push(ElementNode { value, optional: element.optional });
        }
        let known: Option<Vec<Value<'static>>> = nodes
            .iter()
            .map(|node| match &node.value {
                Node::Const(value) if !node.optional => Some(value.clone()),
                _ => None,
            })
            .collect();
        Ok(known
            .map_or_else(|| Node::List(nodes.into()), |values| Node::Const(Value::list(values))))
    }

    fn map(&mut self, entries: &[Entry]) -> Planned {
        let mut nodes = Vec::with_capacity(entries.len());
        for entry in entries {
            let (key, value) = (self.plan(&entry.key)?, self.plan(&entry.value)?);
            nodes.push(EntryNode { key, value, optional: entry.optional });
        }
        let known: Option<Vec<_>> = nodes
            .iter()
            .map(|node| match (&node.key, &node.value) {
                (Node::Const(key), Node::Const(value)) if !node.optional => {
                    Some((key.clone(), value.clone()))
                }
                _ => None,
            })
            .collect();
        // Keys of an unusable type are told when the expression runs.
        let folded = known.and_then(|entries| Map::new(entries).ok());
        Ok(folded.map_or_else(|| Node::Map(nodes.into()), |map| Node::Const(Value::Map(map))))
    }

    fn construction(&mut self, id: Id, fields: &[crate::ast::FieldInit]) -> Planned {
        let Some(Reference::Type(Type::Object(shape))) = self.checked.references.get(&id) else {
            return Err((id, Error::new("unknown type")));
        };
        let shape = Arc::clone(shape);
        let mut nodes = Vec::with_capacity(fields.len());
        for field in fields {
            nodes.push((Arc::clone(&field.name), self.plan(&field.value)?, field.optional));
        }
        Ok(Node::Struct(Box::new(StructNode { shape, fields: nodes })))
    }

    /// Plans a part in which names have places.
    fn within<T>(
        &mut self,
        names: &[&Arc<str>],
        part: impl FnOnce(&mut Self, usize) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        let (depth, place) = (self.locals.len(), self.next);
        for name in names {
            self.locals.push((Arc::clone(name), self.next));
            self.next += 1;
        }
        self.places = self.places.max(self.next);
        let planned = part(self, place);
        self.locals.truncate(depth);
        self.next = place;
        planned
    }

    fn comprehension(&mut self, c: &Comprehension) -> Planned {
        if c.form == Form::Bind {
            let init = self.plan(&c.init)?;
            return self.within(&[&c.accumulator], |planner, place| {
                let result = planner.plan(&c.result)?;
                Ok(Node::Bind(Box::new(Bind { place, init, result })))
            });
        }
        let range = self.plan(&c.range)?;
        let names: Vec<&Arc<str>> = [&c.variable].into_iter().chain(&c.second).collect();
        let two = c.second.is_some();
        self.within(&names, |planner, place| {
            let over = |body| Loop { range, place, two, body };
            let step = call_of(&c.step)?;
            match c.form {
                Form::All | Form::Exists => {
                    let over = over(planner.plan(&step.args[1])?);
                    Ok(Node::Quantifier(Box::new(Quantifier { over, all: c.form == Form::All })))
                }
                Form::ExistsOne => Ok(Node::One(Box::new(over(planner.plan(&step.args[0])?)))),
                _ => planner.collect(c.form, step, over),
            }
        })
    }

    fn collect(&mut self, form: Form, step: &Call, over: impl FnOnce(Node) -> Loop) -> Planned {
        let (filter, insert) = if &*step.function == "_?_:_" {
            (Some(self.plan(&step.args[0])?), call_of(&step.args[1])?)
        } else {
            (None, step)
        };
        let last = insert.args.last().ok_or((0, Error::no_such_overload()))?;
        let (value, into) = match (form, &last.kind) {
            (Form::List, Kind::List(one)) => (self.plan(&one[0].value)?, Into::List),
            (Form::Map, _) => (self.plan(last)?, Into::Map),
            _ => (self.plan(last)?, Into::Entries),
        };
        // The accumulator and the call; and the list of one, unless it is known; and the key.
        let step_cost = match into {
            Into::List if matches!(value, Node::Const(_)) => 2,
            Into::List => 2 + super::cost::LIST_CREATE,
            Into::Map => 3,
            Into::Entries => 2,
        };
        let over = over(value);
        Ok(Node::Collect(Box::new(Collect { over, filter, into, step_cost })))
    }
}

fn attribute(root: Root) -> Node {
    Node::Attribute(Box::new(Attribute { root, qualifiers: Vec::new(), test: false }))
}

fn call_of(expr: &Expr) -> Result<&Call, Refused> {
    match &expr.kind {
        Kind::Call(call) => Ok(call),
        _ => Err((expr.id, Error::new(format!("a step without {ACCUMULATOR}")))),
    }
}

fn branch(node: Node) -> Branch {
    match node {
        Node::Attribute(attribute) if !attribute.test => Branch::Attribute(*attribute),
        other => Branch::Computed(other),
    }
}

/// Operators that are no calls when they run; gives the arguments back if it is none of them.
fn special(
    name: &str,
    overload: Option<&str>,
    mut args: Vec<Node>,
    kubernetes: bool,
) -> Result<Node, Vec<Node>> {
    match (name, args.len()) {
        ("_&&_", _) => Ok(Node::And(args.into())),
        ("_||_", _) => Ok(Node::Or(args.into())),
        ("_?_:_", 3) => {
            let (no, yes) = (args.pop(), args.pop());
            let (Some(no), Some(yes), Some(condition)) = (no, yes, args.pop()) else {
                return Err(args);
            };
            let parts = (condition, branch(yes), branch(no));
            Ok(attribute(Root::Conditional(Box::new(parts))))
        }
        ("_==_" | "_!=_", 2) => {
            let negated = name == "_!=_";
            let id = if negated { "not_equals" } else { "equals" };
            let rule = rule(name, Some(id), kubernetes);
            let sides = <[Node; 2]>::try_from(args)?;
            Ok(Node::Equal(Box::new(Equality { sides, negated, rule })))
        }
        ("_[_]" | "_[?_]", 2) => {
            let [operand, index] = <[Node; 2]>::try_from(args)?;
            let by = match index {
                Node::Const(value) => By::Constant(value),
                other => By::Computed(branch(other)),
            };
            Ok(Node::Attribute(Planner::qualified(operand, by, name == "_[?_]")))
        }
        ("or" | "orValue", 2)
            if matches!(
                overload,
                None | Some("optional_or_optional" | "optional_orValue_value")
            ) =>
        {
            let sides = <[Node; 2]>::try_from(args)?;
            Ok(Node::OrElse(Box::new(OrElse { sides, unwrap: name == "orValue" })))
        }
        _ => Err(args),
    }
}

/// A call, with what can be known about it computed beforehand.
fn ordinary(
    (name, overload): (&'static str, Option<&str>),
    runs: Vec<Run>,
    args: Vec<Node>,
    rule: Rule,
) -> Result<Node, Error> {
    if overload == Some("in_list")
        && let [_, Node::Const(Value::List(list))] = args.as_slice()
    {
        if list.len() == 0 {
            return Ok(Node::Const(Value::Bool(false)));
        }
        if let Some(members) = members(list) {
            let wanted = args.into_iter().next().unwrap_or(Node::Const(Value::Null));
            return Ok(Node::Member(Box::new((wanted, members))));
        }
    }
    if CONVERSIONS.contains(&name)
        && let [Node::Const(value)] = args.as_slice()
        && let Some(run) = runs.first()
    {
        return run(std::slice::from_ref(value)).map(Node::Const);
    }
    let kind = match name {
        "matches" => Some(PatternKind::Matches),
        "find" => Some(PatternKind::Find),
        "findAll" => Some(PatternKind::FindAll),
        _ => None,
    };
    if let (Some(kind), Some(Node::Const(Value::String(text)))) = (kind, args.get(1)) {
        let pattern = compile(text.as_str()).map_err(Error::new)?;
        return Ok(Node::Pattern(Box::new(PatternNode { kind, pattern, args, rule })));
    }
    Ok(Node::Call(Box::new(CallNode { runs, args, rule })))
}

/// Constants of simple types, ready to be looked up among.
fn members(list: &List<'static>) -> Option<Members> {
    let mut members = Members { texts: HashSet::new(), others: Vec::new() };
    for item in list.iter() {
        match item.ok()? {
            Value::String(text) => {
                members.texts.insert(text.as_str().into());
            }
            value @ (Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
                members.others.push(value);
            }
            _ => return None,
        }
    }
    Some(members)
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(answer) => Value::Bool(*answer),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::String(Text::Shared(Arc::clone(text))),
        Literal::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
    }
}

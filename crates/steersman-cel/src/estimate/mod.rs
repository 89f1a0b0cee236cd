//! What an expression can cost, before it runs: cel-go's reckoning over declared sizes.

mod calls;
mod range;

use std::collections::HashMap;
use std::sync::Arc;

pub use range::Estimate;

use crate::ast::{
    ById, Call, Comprehension, Element, Entry, Expr, Form, Id, Kind, Literal, Select,
};
use crate::checker::{Checked, Reference};
use crate::env::Env;
use crate::program::cost::{LIST_CREATE, MAP_CREATE, STRUCT_CREATE};
use crate::shape::Type;
use crate::shape::{Shape, ShapeKind};

/// The size of what has no limit of its own, as Kubernetes has it.
const NO_LIMIT: u64 = i64::MAX as u64;

/// A way from a variable: field names, `@items`, `@keys`, `@values`, `@indices`.
type Path = Vec<Arc<str>>;

/// Estimates an expression.
pub(crate) fn estimate(checked: &Checked, env: &Env) -> Estimate {
    let mut coster = Coster {
        checked,
        env,
        paths: ById::default(),
        locals: HashMap::new(),
        sizes: ById::default(),
        entries: ById::default(),
    };
    coster.cost(&checked.ast.root)
}

struct Coster<'c> {
    checked: &'c Checked,
    env: &'c Env,
    paths: ById<Path>,
    locals: HashMap<Arc<str>, Vec<LocalVariable>>,
    sizes: ById<Estimate>,
    entries: ById<EntrySize>,
}

/// What is known about a variable of a comprehension.
#[derive(Clone)]
struct LocalVariable {
    path: Path,
    size: Option<Estimate>,
    entry: Option<EntrySize>,
}

/// The sizes of what a list or map holds.
#[derive(Clone, Copy)]
struct EntrySize {
    list: bool,
    key: Estimate,
    value: Estimate,
}

/// A part of a call as estimates see it.
struct Part<'e> {
    path: Path,
    ty: Type,
    expr: Option<&'e Expr>,
    size: Option<Estimate>,
}

/// What a call costs and how big its result is.
struct CallEstimate {
    cost: Estimate,
    size: Option<Estimate>,
}

impl<'c> Coster<'c> {
    fn cost(&mut self, expr: &'c Expr) -> Estimate {
        match &expr.kind {
            Kind::Unreadable | Kind::Literal(_) => Estimate::default(),
            Kind::Ident(name) => self.ident(expr.id, name),
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr, call),
            Kind::List(elements) => self.list(expr.id, elements),
            Kind::Map(entries) => self.map(expr.id, entries),
            Kind::Struct(construction) => {
                construction.fields.iter().fold(Estimate::fixed(STRUCT_CREATE), |sum, field| {
                    sum.plus(self.cost(&field.value))
                })
            }
            Kind::Comprehension(c) if c.form == Form::Bind => self.bind(expr.id, c),
            Kind::Comprehension(c) => self.comprehension(expr.id, c),
        }
    }

    fn ident(&mut self, id: Id, name: &str) -> Estimate {
        let path = match self.local(name) {
            Some(local) => local.path.clone(),
            None => vec![self.full_name(id, name)],
        };
        self.paths.insert(id, path);
        Estimate::fixed(1)
    }

    fn full_name(&self, id: Id, name: &str) -> Arc<str> {
        match self.checked.references.get(&id) {
            Some(Reference::Variable(name) | Reference::Local(name)) => Arc::clone(name),
            _ => name.into(),
        }
    }

    fn local(&self, name: &str) -> Option<&LocalVariable> {
        self.locals.get(name)?.last()
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn select(&mut self, expr: &'c Expr, select: &'c Select) -> Estimate {
        let name: Option<Arc<str>> = match self.checked.references.get(&expr.id) {
            Some(Reference::Variable(name)) => Some(Arc::clone(name)),
            Some(Reference::Type(ty)) => Some(ty.name().into()),
            _ => None,
        };
        if let Some(name) = name {
            self.paths.insert(expr.id, vec![name]);
            return Estimate::fixed(1);
        }
        let mut sum = self.cost(&select.operand);
        if select.test {
            // Kubernetes counts what leads to the field, not the question.
            let asked = u64::from(!self.env.kubernetes_costs);
            return sum.plus(Estimate::fixed(asked));
        }
        if matches!(self.checked.ty(&select.operand), Type::Map(_) | Type::Object(_)) {
            sum = sum.plus(Estimate::fixed(1));
        }
        let mut path = self.path(&select.operand);
        path.push(Arc::clone(&select.field));
        self.paths.insert(expr.id, path);
        sum
    }

    fn call(&mut self, expr: &'c Expr, call: &'c Call) -> Estimate {
        let Some(Reference::Function(name, chosen)) = self.checked.references.get(&expr.id) else {
            return Estimate::default();
        };
        if *name == "dyn"
            && let [arg] = call.args.as_slice()
        {
            let cost = self.cost(arg).plus(Estimate::fixed(1));
            self.copy_sizes(expr.id, arg);
            return cost;
        }
        let mut args: Vec<(Estimate, Part<'c>)> = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push((self.cost(arg), self.part(arg)));
        }
        let overloads = self.env.function(name).map_or(&[][..], |(_, overloads)| overloads);
        let chosen: Vec<_> = chosen.iter().filter_map(|at| overloads.get(*at)).collect();
        let mut sum = Estimate::default();
        let mut target = None;
        if chosen.first().is_some_and(|overload| overload.member)
            && let Some(receiver) = &call.target
        {
            sum = self.cost(receiver);
            target = Some(self.part(receiver));
        }
        let mut cost = Estimate { min: u64::MAX, max: 0 };
        let mut size: Option<Estimate> = None;
        for overload in chosen {
            let found = self.function((expr, name, overload.id), target.as_ref(), &args);
            cost = cost.union(found.cost);
            size = match (size, found.size) {
                (Some(size), Some(found)) => Some(size.union(found)),
                (size, found) => size.or(found),
            };
            let below = match overload.id {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let Some(below) = below
                && let Some(operand) = call.args.first()
            {
                size = self.entry_size(operand).map(|entry| entry.value);
                let mut path = self.path(operand);
                path.push(below.into());
                self.paths.insert(expr.id, path);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        sum.plus(cost)
    }

    fn list(&mut self, id: Id, elements: &'c [Element]) -> Estimate {
        let mut sum = Estimate::fixed(LIST_CREATE);
        let mut value = Estimate { min: u64::MAX, max: 0 };
        for element in elements {
            sum = sum.plus(self.cost(&element.value));
            value = value.union(self.size_or_unknown(&element.value));
        }
        if elements.is_empty() {
            value.min = 0;
        }
        self.entries.insert(id, EntrySize { list: true, key: Estimate::fixed(1), value });
        sum
    }

    fn map(&mut self, id: Id, entries: &'c [Entry]) -> Estimate {
        let mut sum = Estimate::fixed(MAP_CREATE);
        let start = if entries.is_empty() { 0 } else { u64::MAX };
        let (mut key, mut value) =
            (Estimate { min: start, max: 0 }, Estimate { min: start, max: 0 });
        for entry in entries {
            sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            key = key.union(self.size_or_unknown(&entry.key));
            value = value.union(self.size_or_unknown(&entry.value));
        }
        self.entries.insert(id, EntrySize { list: false, key, value });
        sum
    }

    fn push(&mut self, name: &Arc<str>, local: LocalVariable) {
        self.locals.entry(Arc::clone(name)).or_default().push(local);
    }

    fn pop(&mut self, name: &Arc<str>) {
        self.locals.get_mut(name).and_then(Vec::pop);
    }

    fn push_bound(&mut self, name: &Arc<str>, init: &Expr) {
        let local = LocalVariable {
            path: self.path(init),
            size: self.size(init),
            entry: self.entry_size(init),
        };
        self.push(name, local);
    }

    /// The variables of a loop: elements, keys, values, indices of its range.
    fn push_iterated(&mut self, c: &Comprehension) {
        let entry = self.entry_size(&c.range);
        let list = entry
            .map_or_else(|| matches!(self.checked.ty(&c.range), Type::List(_)), |entry| entry.list);
        let path = self.path(&c.range);
        let below = |name: &str| path.iter().cloned().chain([name.into()]).collect::<Path>();
        let key = entry.map(|entry| entry.key);
        let value = entry.map(|entry| entry.value);
        // cel-go's paths share memory where there is room, and room doubles: the second variable's
        // step is then written over the first's.
        let shared = c.second.is_some() && !path.len().is_power_of_two() && !path.is_empty();
        let first = match (&c.second, list) {
            (Some(_), true) if shared => (below("@items"), key),
            (Some(_), false) if shared => (below("@values"), key),
            (None, true) => (below("@items"), value),
            (None, false) | (Some(_), false) => (below("@keys"), key),
            (Some(_), true) => (below("@indices"), key),
        };
        self.push(&c.variable, LocalVariable { path: first.0, size: first.1, entry: None });
        if let Some(second) = &c.second {
            let path = below(if list { "@items" } else { "@values" });
            self.push(second, LocalVariable { path, size: value, entry: None });
        }
    }

    fn comprehension(&mut self, id: Id, c: &'c Comprehension) -> Estimate {
        let mut sum = self.cost(&c.range).plus(self.cost(&c.init));
        self.push_bound(&c.accumulator, &c.init);
        self.push_iterated(c);
        let round = self.cost(&c.condition).plus(self.cost(&c.step));
        self.pop(&c.variable);
        if let Some(second) = &c.second {
            self.pop(second);
        }
        sum = sum.plus(self.cost(&c.result));
        self.pop(&c.accumulator);
        let rounds = self.size_or_unknown(&c.range);
        sum = sum.plus(rounds.times(round));
        match &c.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&c.init) {
                    self.sizes.insert(id, size);
                }
            }
            Kind::List(_) | Kind::Map(_) => {
                self.sizes.insert(id, rounds);
                if let Some(entry) = self.entry_size(&c.step) {
                    self.entries.insert(id, entry);
                }
            }
            _ => {}
        }
        sum
    }

    fn bind(&mut self, id: Id, c: &'c Comprehension) -> Estimate {
        let sum = self.cost(&c.range).plus(self.cost(&c.init));
        self.push_bound(&c.accumulator, &c.init);
        let sum = sum.plus(self.cost(&c.result));
        self.pop(&c.accumulator);
        self.copy_sizes(id, &c.result);
        sum
    }

    fn copy_sizes(&mut self, id: Id, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(id, size);
        }
        if let Some(entry) = self.entry_size(from) {
            self.entries.insert(id, entry);
        }
    }

    fn part(&mut self, expr: &'c Expr) -> Part<'c> {
        let mut path = self.path(expr);
        if path.first().is_some_and(|first| &**first == crate::ast::ACCUMULATOR) {
            path.clear();
        }
        let size = self.size(expr);
        Part { path, ty: self.checked.ty(expr).clone(), expr: Some(expr), size }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Estimate {
        self.size(expr).unwrap_or(Estimate::UNKNOWN)
    }

    fn size(&mut self, expr: &Expr) -> Option<Estimate> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(size);
        }
        if let Some(size) = self.declared(&self.path(expr)) {
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.ty(expr)) {
            return Some(Estimate::fixed(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    /// The size that a shape declares for a way from a variable.
    fn declared(&self, path: &[Arc<str>]) -> Option<Estimate> {
        let (root, rest) = path.split_first()?;
        // Kubernetes starts from `self`, whatever the name is: types and elements of literals too.
        let variables = &self.env.variables;
        let root = &variables.get(root).or_else(|| variables.get("self"))?.shape;
        if let Some((last, before)) = rest.split_last()
            && &**last == "@keys"
        {
            let map = root.at(before)?;
            // Kubernetes takes keys for nothing.
            return matches!(map.kind, ShapeKind::Map(_)).then(Estimate::default);
        }
        let shape: &Shape = root.at(rest)?;
        match shape.kind {
            ShapeKind::Dyn if shape.elements_max.is_none() => None,
            // What has no elements takes nothing.
            ShapeKind::Object(_) | ShapeKind::Bool | ShapeKind::Int | ShapeKind::Double => {
                Some(Estimate::default())
            }
            _ => Some(Estimate { min: 0, max: shape.elements_max.unwrap_or(NO_LIMIT) }),
        }
    }

    fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entry) = self.entries.get(&expr.id) {
            return Some(*entry);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name)?.entry,
            _ => None,
        }
    }
}

fn literal_size(expr: &Expr) -> Option<Estimate> {
    let size = match &expr.kind {
        Kind::Literal(Literal::String(text)) => text.chars().count(),
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        Kind::Literal(_) => 1,
        Kind::List(elements) => elements.len(),
        Kind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Estimate::fixed(size as u64))
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        other => other.as_optional().is_some_and(is_scalar),
    }
}

impl EntrySize {
    fn union(self, other: Self) -> Self {
        Self {
            list: self.list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

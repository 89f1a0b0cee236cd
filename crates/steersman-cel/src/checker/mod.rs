//! Gives every node a type and every call its overloads, or says what does not fit.

mod literals;
mod unify;

use std::sync::Arc;

use crate::ast::{
    Ast, ById, Call, Comprehension, Construction, Element, Entry, Expr, Id, Kind, Literal, Select,
};
use crate::env::Env;
use crate::library::Overload;
use crate::shape::Type;
use crate::source::{Issues, NOWHERE, Reporter};
use unify::{Unifier, instantiate, most_general};

/// What a node refers to.
#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A variable from outside, by its full name.
    Variable(Arc<str>),
    /// A variable of a comprehension.
    Local(Arc<str>),
    /// A type.
    Type(Type),
    /// A function, by its full name, and which of its overloads may be meant.
    Function(&'static str, Vec<usize>),
}

/// What checking found out.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) ast: Ast,
    pub(crate) types: Vec<Type>,
    pub(crate) references: ById<Reference>,
}

impl Checked {
    pub(crate) fn ty(&self, expr: &Expr) -> &Type {
        self.types.get(expr.id as usize).unwrap_or(&Type::Dyn)
    }
}

/// Checks a tree against what an environment declares.
pub(crate) fn check(text: &str, ast: Ast, env: &Env) -> Result<Checked, Issues> {
    let types = vec![Type::Error; ast.offsets.len()];
    let mut checker = Checker {
        env,
        ast: &ast,
        types,
        references: ById::default(),
        unifier: Unifier::default(),
        scopes: Vec::new(),
        reporter: Reporter::new(text),
    };
    checker.check(&ast.root);
    let unifier = &checker.unifier;
    let types: Vec<Type> = checker.types.iter().map(|ty| unifier.resolve(ty, true)).collect();
    if unifier.is_exhausted() {
        checker.reporter.report(NOWHERE, "the types of the expression are too large");
    }
    let references = checker.references;
    let mut reporter = checker.reporter;
    if env.validates_literals && reporter.issues.is_empty() {
        literals::validate(&ast, &types, &references, &mut reporter);
    }
    reporter.finish()?;
    Ok(Checked { ast, types, references })
}

struct Checker<'c> {
    env: &'c Env,
    ast: &'c Ast,
    types: Vec<Type>,
    references: ById<Reference>,
    unifier: Unifier,
    scopes: Vec<(Arc<str>, Type)>,
    reporter: Reporter<'c>,
}

/// What a name stands for.
enum Named {
    Variable(Arc<str>, Type),
    Local(Arc<str>, Type),
    Type(Type),
}

impl Checker<'_> {
    fn set(&mut self, id: Id, ty: Type) {
        self.types[id as usize] = if self.env.unchecked { Type::Dyn } else { ty };
    }

    fn ty(&self, expr: &Expr) -> Type {
        self.types[expr.id as usize].clone()
    }

    fn report(&mut self, id: Id, message: String) {
        let offset = self.ast.offset(id);
        self.reporter.report(offset, message);
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        if self.env.unchecked {
            self.references.insert(id, Reference::Variable(name.into()));
            return self.set(id, Type::Dyn);
        }
        let container = &self.env.container;
        self.report(id, format!("undeclared reference to '{name}' (in container '{container}')"));
        self.set(id, Type::Error);
    }

    fn check(&mut self, expr: &Expr) {
        match &expr.kind {
            Kind::Unreadable => self.set(expr.id, Type::Error),
            Kind::Literal(literal) => self.set(expr.id, literal_type(literal)),
            Kind::Ident(name) => self.ident(expr.id, name),
            Kind::Select(select) => self.select(expr, select),
            Kind::Call(call) => self.call(expr.id, call),
            Kind::List(elements) => self.list(expr.id, elements),
            Kind::Map(entries) => self.map(expr.id, entries),
            Kind::Struct(construction) => self.construction(expr.id, construction),
            Kind::Comprehension(comprehension) => self.comprehension(expr.id, comprehension),
        }
    }

    fn lookup(&self, name: &str) -> Option<Named> {
        // What a comprehension names hides everything else of that name, and what it contains.
        let first = name.split('.').next().unwrap_or(name);
        if let Some((local, ty)) = self.scopes.iter().rev().find(|(known, _)| **known == *first) {
            let whole = first.len() == name.len();
            return whole.then(|| Named::Local(Arc::clone(local), ty.clone()));
        }
        for candidate in self.env.candidates(name) {
            if let Some((name, variable)) = self.env.variables.get_key_value(candidate.as_str()) {
                return Some(Named::Variable(Arc::clone(name), variable.ty.clone()));
            }
            // A field of a variable is not mistaken for a type that is named alike.
            let within = candidate.split_once('.').map(|(first, _)| first);
            if within.is_some_and(|first| self.env.variables.contains_key(first)) {
                continue;
            }
            if let Some(ty) = self.env.type_named(&candidate) {
                return Some(Named::Type(ty));
            }
        }
        None
    }

    fn named(&mut self, id: Id, named: Named) {
        match named {
            Named::Variable(name, ty) => {
                self.set(id, ty);
                self.references.insert(id, Reference::Variable(name));
            }
            Named::Local(name, ty) => {
                self.set(id, ty);
                self.references.insert(id, Reference::Local(name));
            }
            Named::Type(ty) => {
                self.set(id, Type::Type(Some(Arc::new(ty.clone()))));
                self.references.insert(id, Reference::Type(ty));
            }
        }
    }

    fn ident(&mut self, id: Id, name: &str) {
        match self.lookup(name) {
            Some(named) => self.named(id, named),
            None => self.undeclared(id, name),
        }
    }

    fn select(&mut self, expr: &Expr, select: &Select) {
        if let Some(named) = expr.qualified_name().and_then(|name| self.lookup(&name)) {
            self.named(expr.id, named);
            return;
        }
        let ty = self.field(expr.id, &select.operand, &select.field, false);
        let ty = if select.test { Type::Bool } else { self.unifier.resolve(&ty, false) };
        self.set(expr.id, ty);
    }

    fn field(&mut self, id: Id, operand: &Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let ty = self.unifier.resolve(&self.ty(operand), false);
        let (target, was_optional) = match ty.as_optional() {
            Some(inner) => (inner.clone(), true),
            None => (ty, false),
        };
        let result = match &target {
            Type::Map(of) => of.1.clone(),
            Type::Object(object) => match object.field(field) {
                Some(field) => field.ty.clone(),
                None if object.open => Type::Dyn,
                None if is_opaque(&object.name) && object.fields.is_empty() => {
                    self.unresolved(id, &object.name)
                }
                None => {
                    self.report(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                self.report(id, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if optional || was_optional { Type::optional(result) } else { result }
    }

    /// A type of which nobody knows the fields.
    fn unresolved(&mut self, id: Id, name: &str) -> Type {
        self.report(id, format!("unexpected failed resolution of '{name}'"));
        Type::Error
    }

    fn call(&mut self, id: Id, call: &Call) {
        if &*call.function == "_?._"
            && let [operand, Expr { kind: Kind::Literal(Literal::String(field)), .. }] =
                call.args.as_slice()
        {
            let ty = self.field(id, operand, field, true);
            let ty = self.unifier.resolve(&ty, false);
            self.set(id, ty);
            self.check(&call.args[1]);
            self.references.insert(id, Reference::Function("_?._", vec![0]));
            return;
        }
        for arg in &call.args {
            self.check(arg);
        }
        let Some(target) = &call.target else {
            match self.env.function(&call.function) {
                Some((name, overloads)) => self.resolve(id, (name, overloads), None, &call.args),
                None => self.undeclared(id, &call.function),
            }
            return;
        };
        let qualified = target
            .qualified_name()
            .and_then(|prefix| self.env.function(&format!("{prefix}.{}", call.function)));
        if let Some(function) = qualified {
            self.resolve(id, function, None, &call.args);
            return;
        }
        self.check(target);
        match self.env.function(&call.function) {
            Some(function) => self.resolve(id, function, Some(target), &call.args),
            None => self.undeclared(id, &call.function),
        }
    }

    fn resolve(
        &mut self,
        id: Id,
        (name, overloads): (&'static str, &[Overload]),
        target: Option<&Expr>,
        args: &[Expr],
    ) {
        if matches!(name, "_&&_" | "_||_") {
            return self.logical(id, name, args);
        }
        let mut given: Vec<Type> = target.iter().map(|target| self.ty(target)).collect();
        given.extend(args.iter().map(|arg| self.ty(arg)));
        let mut chosen = Vec::new();
        let mut result: Option<Type> = None;
        for (at, overload) in overloads.iter().enumerate() {
            if overload.member != target.is_some() || overload.params.len() != given.len() {
                continue;
            }
            let Some(ty) = self.attempt(overload, &given) else { continue };
            chosen.push(at);
            result = Some(match result {
                None => ty,
                Some(known) if matches!(known, Type::Dyn) || ty.same(&known) => known,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            let given: Vec<Type> = given.iter().map(|ty| self.unifier.resolve(ty, true)).collect();
            let signature = signature(&given, target.is_some());
            let message =
                format!("found no matching overload for '{name}' applied to '{signature}'");
            self.report(id, message);
            self.set(id, Type::Error);
            return;
        };
        self.set(id, result);
        self.references.insert(id, Reference::Function(name, chosen));
    }

    /// What an overload makes of these types; `None` if it does not take them.
    fn attempt(&mut self, overload: &Overload, given: &[Type]) -> Option<Type> {
        if overload.type_params.is_empty() {
            let fits = self.unifier.all_assignable(given, &overload.params);
            return fits.then(|| overload.result.clone());
        }
        let vars: Vec<(Arc<str>, Type)> = overload
            .type_params
            .iter()
            .map(|name| (Arc::clone(name), self.unifier.fresh()))
            .collect();
        let params: Vec<Type> = overload.params.iter().map(|ty| instantiate(ty, &vars)).collect();
        if !self.unifier.all_assignable(given, &params) {
            return None;
        }
        Some(self.unifier.resolve(&instantiate(&overload.result, &vars), false))
    }

    fn logical(&mut self, id: Id, name: &'static str, args: &[Expr]) {
        let mut fits = true;
        for arg in args {
            let ty = self.ty(arg);
            if !self.unifier.assignable(&ty, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, &ty);
                fits = false;
            }
        }
        self.set(id, if fits { Type::Bool } else { Type::Error });
        self.references.insert(id, Reference::Function(name, vec![0]));
    }

    /// The type within an optional that an element marked by `?` must be.
    fn unwrapped(&mut self, value: &Expr) -> Type {
        let ty = self.unifier.resolve(&self.ty(value), false);
        if let Some(inner) = ty.as_optional() {
            return inner.clone();
        }
        if !matches!(ty, Type::Dyn) {
            self.mismatch(value.id, &Type::optional(ty.clone()), &ty);
        }
        ty
    }

    fn element_type(&mut self, value: &Expr, optional: bool) -> Type {
        self.check(value);
        if optional { self.unwrapped(value) } else { self.ty(value) }
    }

    fn join(&mut self, known: Option<Type>, next: Type) -> Type {
        let Some(known) = known else { return next };
        if self.unifier.assignable(&known, &next) {
            return most_general(&known, &next);
        }
        Type::Dyn
    }

    fn list(&mut self, id: Id, elements: &[Element]) {
        let mut ty = None;
        for element in elements {
            let next = self.element_type(&element.value, element.optional);
            ty = Some(self.join(ty, next));
        }
        let ty = ty.unwrap_or_else(|| self.unifier.fresh());
        self.set(id, Type::list(ty));
    }

    fn map(&mut self, id: Id, entries: &[Entry]) {
        let (mut key, mut value) = (None, None);
        for entry in entries {
            self.check(&entry.key);
            let next = self.ty(&entry.key);
            key = Some(self.join(key, next));
            let next = self.element_type(&entry.value, entry.optional);
            value = Some(self.join(value, next));
        }
        let key = key.unwrap_or_else(|| self.unifier.fresh());
        let value = value.unwrap_or_else(|| self.unifier.fresh());
        let key = self.unifier.as_key(key);
        self.set(id, Type::map(key, value));
    }

    fn construction(&mut self, id: Id, construction: &Construction) {
        let ty = match self.lookup(&construction.name) {
            Some(Named::Type(ty)) => ty,
            Some(Named::Variable(_, ty) | Named::Local(_, ty)) => {
                self.report(id, format!("'{ty}' is not a type"));
                Type::Error
            }
            None => return self.undeclared(id, &construction.name),
        };
        let shape = match &ty {
            Type::Object(shape) => Some(Arc::clone(shape)),
            Type::Error => None,
            other => {
                self.report(id, format!("'{}' is not a message type", other.name()));
                None
            }
        };
        self.references.insert(id, Reference::Type(ty.clone()));
        self.set(id, if shape.is_some() { ty } else { Type::Error });
        for field in &construction.fields {
            let found = self.element_type(&field.value, field.optional);
            let Some(shape) = &shape else { continue };
            let Some(declared) = shape.fields.get(&field.name) else {
                if shape.open {
                    continue;
                }
                let name = &field.name;
                // Its provider knows every field of a patch, and some without a type.
                let message = if &*shape.name == "JSONPatch" {
                    format!("expected type of field '{name}' is '' but provided type is '{found}'")
                } else {
                    format!("undefined field '{name}'")
                };
                self.report(field.id, message);
                continue;
            };
            if !self.unifier.assignable(&declared.ty, &found) {
                let (name, declared) = (&field.name, &declared.ty);
                self.report(field.id, format!(
                    "expected type of field '{name}' is '{declared}' but provided type is '{found}'"
                ));
            }
        }
    }

    fn comprehension(&mut self, id: Id, loops: &Comprehension) {
        self.check(&loops.range);
        self.check(&loops.init);
        let range = self.unifier.resolve(&self.ty(&loops.range), false);
        let accumulator = self.ty(&loops.init);
        self.scopes.push((Arc::clone(&loops.accumulator), accumulator.clone()));
        let (first, second) = match &range {
            Type::List(of) if loops.second.is_some() => (Type::Int, (**of).clone()),
            Type::List(of) => ((**of).clone(), Type::Dyn),
            Type::Map(of) => (of.0.clone(), of.1.clone()),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                self.report(loops.range.id, format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, \
                     map, or dynamic)"
                ));
                (Type::Error, Type::Error)
            }
        };
        let depth = self.scopes.len();
        self.scopes.push((Arc::clone(&loops.variable), first));
        if let Some(name) = &loops.second {
            self.scopes.push((Arc::clone(name), second));
        }
        self.check(&loops.condition);
        self.expect(&loops.condition, &Type::Bool);
        self.check(&loops.step);
        self.expect(&loops.step, &accumulator);
        self.scopes.truncate(depth);
        self.check(&loops.result);
        self.scopes.truncate(depth - 1);
        let ty = self.unifier.resolve(&self.ty(&loops.result), false);
        self.set(id, ty);
    }

    fn expect(&mut self, expr: &Expr, expected: &Type) {
        let found = self.ty(expr);
        if !self.unifier.assignable(expected, &found) {
            self.mismatch(expr.id, expected, &found);
        }
    }
}

/// Whether a type is of a library, which tells nobody its fields. The variables of a policy are no
/// such type, although there are none before the first.
fn is_opaque(name: &str) -> bool {
    name.starts_with("kubernetes.") && name != "kubernetes.variables"
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// `(int, string)` or, with a receiver, `int.(string)`.
fn signature(types: &[Type], member: bool) -> String {
    let shown = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
    match types.split_first() {
        Some((target, rest)) if member => format!("{target}.({})", shown(rest)),
        _ => format!("({})", shown(types)),
    }
}

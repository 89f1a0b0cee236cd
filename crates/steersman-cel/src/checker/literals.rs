//! Literals that cannot mean anything: found when an expression is compiled, not when it runs.

use super::Reference;
use crate::ast::{Ast, ById, Call, Element, Entry, Expr, Id, Kind, Literal};
use crate::library::{Piece, Pieces, format_complaint};
use crate::pattern::compile;
use crate::shape::Type;
use crate::source::Reporter;
use crate::time::{Duration, Timestamp};

pub(super) fn validate(
    ast: &Ast,
    types: &[Type],
    references: &ById<Reference>,
    reporter: &mut Reporter<'_>,
) {
    let mut validator = Validator { ast, types, references, reporter };
    validator.visit(&ast.root, false);
}

struct Validator<'v, 'r, 't> {
    ast: &'v Ast,
    types: &'v [Type],
    references: &'v ById<Reference>,
    reporter: &'r mut Reporter<'t>,
}

impl Validator<'_, '_, '_> {
    fn ty(&self, expr: &Expr) -> &Type {
        self.types.get(expr.id as usize).unwrap_or(&Type::Dyn)
    }

    fn report(&mut self, id: Id, message: String) {
        self.reporter.report(self.ast.offset(id), message);
    }

    /// `mixed` where elements of a list may have different types: in what is to be formatted.
    fn visit(&mut self, expr: &Expr, mixed: bool) {
        match &expr.kind {
            Kind::Unreadable | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select(select) => self.visit(&select.operand, mixed),
            Kind::Call(call) => {
                self.call(expr.id, call);
                let mixed = mixed || &*call.function == "format";
                for arg in call.target.iter().chain(&call.args) {
                    self.visit(arg, mixed);
                }
            }
            Kind::List(elements) => self.list(elements, mixed),
            Kind::Map(entries) => self.map(entries, mixed),
            Kind::Struct(construction) => {
                for field in &construction.fields {
                    self.visit(&field.value, mixed);
                }
            }
            Kind::Comprehension(c) => {
                for part in [&c.range, &c.init, &c.condition, &c.step, &c.result] {
                    self.visit(part, mixed);
                }
            }
        }
    }

    fn call(&mut self, id: Id, call: &Call) {
        let Some(Reference::Function(name, _)) = self.references.get(&id) else { return };
        let arg = match *name {
            "duration" | "timestamp" => call.args.first(),
            "matches" => call.args.last(),
            "format" => return self.format(id, call),
            _ => return,
        };
        if let ("timestamp", Some(Expr { id, kind: Kind::Literal(Literal::Int(seconds)), .. })) =
            (*name, arg)
            && Timestamp::new(*seconds, 0).is_none()
        {
            return self.report(*id, "invalid timestamp argument".to_owned());
        }
        let Some(Expr { id, kind: Kind::Literal(Literal::String(text)), .. }) = arg else { return };
        let valid = match *name {
            "duration" => Duration::parse(text).is_some(),
            "timestamp" => Timestamp::parse(text).is_some(),
            _ => compile(text).is_ok(),
        };
        if !valid {
            self.report(*id, format!("invalid {name} argument"));
        }
    }

    fn format(&mut self, id: Id, call: &Call) {
        let Some(Expr { kind: Kind::Literal(Literal::String(text)), .. }) = &call.target else {
            return;
        };
        let [Expr { kind: Kind::List(args), .. }] = call.args.as_slice() else { return };
        let mut count = 0;
        for piece in Pieces::of(text) {
            let Piece::Clause(index, clause) = piece else { continue };
            count += 1;
            let Some(arg) = args.get(index) else {
                return self.report(id, format!("index {index} out of range"));
            };
            let (verb, _) = match clause {
                Ok(clause) => clause,
                Err(message) => return self.report(id, message),
            };
            if let Some((id, message)) = self.unformattable(verb, &arg.value) {
                return self.report(id, message);
            }
        }
        if args.len() > count {
            let given = args.len();
            self.report(
                id,
                format!(
                    "too many arguments supplied to string.format (expected {count}, got {given})"
                ),
            );
        }
    }

    /// The first of an argument and what is written in it that a verb cannot show, and why.
    fn unformattable(&self, verb: char, value: &Expr) -> Option<(Id, String)> {
        if let Some(message) = format_complaint(verb, self.ty(value)) {
            return Some((value.id, message));
        }
        match &value.kind {
            Kind::List(elements) if verb == 's' => {
                elements.iter().find_map(|element| self.unformattable(verb, &element.value))
            }
            Kind::Map(entries) if verb == 's' => entries.iter().find_map(|entry| {
                let key = self.unformattable(verb, &entry.key);
                key.or_else(|| self.unformattable(verb, &entry.value))
            }),
            _ => None,
        }
    }

    /// The type of an element, without the optional that it may be in.
    fn element_type(&self, value: &Expr, optional: bool) -> Type {
        let ty = self.ty(value);
        let inner = if optional { ty.as_optional() } else { None };
        inner.unwrap_or(ty).clone()
    }

    fn compare(&mut self, id: Id, known: &Type, next: &Type) -> bool {
        let same = known.same(next);
        if !same {
            self.report(id, format!("expected type '{known}' but found '{next}'"));
        }
        same
    }

    fn list(&mut self, elements: &[Element], mixed: bool) {
        if let Some(first) = elements.first().filter(|_| !mixed) {
            let known = self.element_type(&first.value, first.optional);
            for element in &elements[1..] {
                let next = self.element_type(&element.value, element.optional);
                if !self.compare(element.value.id, &known, &next) {
                    break;
                }
            }
        }
        for element in elements {
            self.visit(&element.value, mixed);
        }
    }

    fn map(&mut self, entries: &[Entry], mixed: bool) {
        if let Some(first) = entries.first().filter(|_| !mixed) {
            let key = self.ty(&first.key).clone();
            let value = self.element_type(&first.value, first.optional);
            for entry in &entries[1..] {
                let next = self.ty(&entry.key).clone();
                self.compare(entry.key.id, &key, &next);
                let next = self.element_type(&entry.value, entry.optional);
                self.compare(entry.value.id, &value, &next);
            }
        }
        for entry in entries {
            self.visit(&entry.key, mixed);
            self.visit(&entry.value, mixed);
        }
    }
}

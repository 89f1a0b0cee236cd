//! Calls that stand for other trees: `has`, the comprehensions, `optMap`, `cel.bind`.

use std::sync::Arc;

use super::{COPIED_MAX, Parser, call};
use crate::ast::{
    ACCUMULATOR, Call, Comprehension, Element, Expr, Form, Id, Kind, Literal, Select,
};

/// The other name that a comprehension's variable must not take.
const OLD_ACCUMULATOR: &str = "__result__";
const UNUSED: &str = "#unused";
const SORT_INPUT: &str = "@__sortBy_input__";

/// Why a macro cannot be expanded, and which node is to blame.
type Refused = (Id, String);

impl Parser<'_, '_> {
    /// A call without receiver, perhaps a macro.
    pub(super) fn function(&mut self, id: Id, name: &str, mut args: Vec<Expr>) -> Expr {
        if name == "has" && args.len() == 1 {
            let arg = args.remove(0);
            let blamed = arg.id;
            let expanded = match arg.kind {
                Kind::Select(select) => {
                    let select = Select { test: true, ..*select };
                    Ok(Expr { id, kind: Kind::Select(Box::new(select)) })
                }
                _ => Err((blamed, "invalid argument to has() macro".to_owned())),
            };
            return self.expanded(id, expanded);
        }
        call(id, name, args)
    }

    /// A call with a receiver, perhaps a macro.
    pub(super) fn method(&mut self, id: Id, name: &str, target: Expr, args: Vec<Expr>) -> Expr {
        let expanded = match (name, args.len()) {
            ("all", 2) => self.quantifier(id, Form::All, target, args),
            ("exists", 2) => self.quantifier(id, Form::Exists, target, args),
            ("exists_one", 2) => self.quantifier(id, Form::ExistsOne, target, args),
            ("all", 3) if self.syntax.two_variables => self.quantifier(id, Form::All, target, args),
            ("exists", 3) if self.syntax.two_variables => {
                self.quantifier(id, Form::Exists, target, args)
            }
            ("exists_one" | "existsOne", 3) if self.syntax.two_variables => {
                self.quantifier(id, Form::ExistsOne, target, args)
            }
            ("map", 2 | 3) => self.mapping(id, target, args),
            ("filter", 2) => self.filtering(id, target, args),
            ("transformList" | "transformMap" | "transformMapEntry", 3 | 4)
                if self.syntax.two_variables =>
            {
                self.transform(id, name, target, args)
            }
            ("optMap" | "optFlatMap", 2) if self.syntax.optionals => {
                self.opt_map(id, name == "optFlatMap", target, args)
            }
            ("sortBy", 2) if self.syntax.lists => self.sort_by(id, target, args),
            ("bind", 3) if self.syntax.bindings && target.as_ident() == Some("cel") => {
                self.bind(id, args)
            }
            ("least" | "greatest", _) if self.syntax.math && target.as_ident() == Some("math") => {
                self.least_or_greatest(id, name, &target, args)
            }
            _ => return member_call(id, name, target, args),
        };
        self.expanded(id, expanded)
    }

    fn expanded(&mut self, id: Id, expanded: Result<Expr, Refused>) -> Expr {
        expanded.unwrap_or_else(|(blamed, message)| {
            let offset = self.offsets[blamed as usize];
            self.reporter.report(offset, message);
            Expr { id, kind: Kind::Unreadable }
        })
    }

    fn new_id(&mut self, of: Id) -> Id {
        let offset = self.offsets[of as usize];
        self.id(offset)
    }

    fn ident(&mut self, of: Id, name: &str) -> Expr {
        Expr { id: self.new_id(of), kind: Kind::Ident(name.into()) }
    }

    fn accumulated(&mut self, of: Id) -> Expr {
        self.ident(of, ACCUMULATOR)
    }

    fn constant(&mut self, of: Id, literal: Literal) -> Expr {
        Expr { id: self.new_id(of), kind: Kind::Literal(literal) }
    }

    fn generated(&mut self, of: Id, function: &str, args: Vec<Expr>) -> Expr {
        call(self.new_id(of), function, args)
    }

    fn list_of(&mut self, of: Id, values: Vec<Expr>) -> Expr {
        let elements = values.into_iter().map(|value| Element { value, optional: false }).collect();
        Expr { id: self.new_id(of), kind: Kind::List(elements) }
    }

    /// A copy whose nodes have numbers of their own. Copies of copies would double what a chain of
    /// macros comes to with each link, so there is a bound to all of them.
    fn copy(&mut self, id: Id, expr: &Expr) -> Result<Expr, Refused> {
        let mut copy = expr.clone();
        let before = self.offsets.len();
        self.renumber(&mut copy);
        self.copied += self.offsets.len() - before;
        // Whatever is written can be copied once.
        let limit = COPIED_MAX + self.tokens.len();
        if self.copied > limit {
            return Err((id, format!("expression expansion limit exceeded: {limit}")));
        }
        Ok(copy)
    }

    fn renumber(&mut self, expr: &mut Expr) {
        expr.id = self.new_id(expr.id);
        match &mut expr.kind {
            Kind::Unreadable | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select(select) => self.renumber(&mut select.operand),
            Kind::Call(call) => {
                call.target.iter_mut().for_each(|target| self.renumber(target));
                call.args.iter_mut().for_each(|arg| self.renumber(arg));
            }
            Kind::List(elements) => elements.iter_mut().for_each(|e| self.renumber(&mut e.value)),
            Kind::Map(entries) => {
                for entry in entries {
                    entry.id = self.new_id(entry.id);
                    self.renumber(&mut entry.key);
                    self.renumber(&mut entry.value);
                }
            }
            Kind::Struct(construction) => {
                for field in &mut construction.fields {
                    field.id = self.new_id(field.id);
                    self.renumber(&mut field.value);
                }
            }
            Kind::Comprehension(c) => {
                let parts =
                    [&mut c.range, &mut c.init, &mut c.condition, &mut c.step, &mut c.result];
                parts.into_iter().for_each(|part| self.renumber(part));
            }
        }
    }

    fn quantifier(
        &mut self,
        id: Id,
        form: Form,
        range: Expr,
        mut args: Vec<Expr>,
    ) -> Result<Expr, Refused> {
        let predicate = args.pop().unwrap_or(Expr { id, kind: Kind::Unreadable });
        let (variable, second) = variables(&args, "argument must be a simple name")?;
        let (init, condition, step, result) = match form {
            Form::All => {
                let accumulated = self.accumulated(id);
                let condition = self.generated(id, "@not_strictly_false", vec![accumulated]);
                let accumulated = self.accumulated(id);
                let step = self.generated(id, "_&&_", vec![accumulated, predicate]);
                (Literal::Bool(true), condition, step, self.accumulated(id))
            }
            Form::Exists => {
                let accumulated = self.accumulated(id);
                let not = self.generated(id, "!_", vec![accumulated]);
                let condition = self.generated(id, "@not_strictly_false", vec![not]);
                let accumulated = self.accumulated(id);
                let step = self.generated(id, "_||_", vec![accumulated, predicate]);
                (Literal::Bool(false), condition, step, self.accumulated(id))
            }
            _ => {
                let condition = self.constant(id, Literal::Bool(true));
                let (accumulated, one) = (self.accumulated(id), self.constant(id, Literal::Int(1)));
                let more = self.generated(id, "_+_", vec![accumulated, one]);
                let accumulated = self.accumulated(id);
                let step = self.generated(id, "_?_:_", vec![predicate, more, accumulated]);
                let (accumulated, one) = (self.accumulated(id), self.constant(id, Literal::Int(1)));
                let result = self.generated(id, "_==_", vec![accumulated, one]);
                (Literal::Int(0), condition, step, result)
            }
        };
        let init = self.constant(id, init);
        let accumulator = ACCUMULATOR.into();
        Ok(comprehension(
            id,
            Comprehension {
                form,
                range,
                variable,
                second,
                accumulator,
                init,
                condition,
                step,
                result,
            },
        ))
    }

    fn mapping(&mut self, id: Id, range: Expr, mut args: Vec<Expr>) -> Result<Expr, Refused> {
        let transform = args.pop().unwrap_or(Expr { id, kind: Kind::Unreadable });
        let filter = (args.len() == 2).then(|| args.pop()).flatten();
        let (variable, _) = variables(&args, "argument is not an identifier")?;
        Ok(self.list_fold(id, range, (variable, None), filter, transform))
    }

    fn filtering(&mut self, id: Id, range: Expr, mut args: Vec<Expr>) -> Result<Expr, Refused> {
        let filter = args.pop();
        let (variable, _) = variables(&args, "argument is not an identifier")?;
        let kept = args.pop().unwrap_or(Expr { id, kind: Kind::Unreadable });
        Ok(self.list_fold(id, range, (variable, None), filter, kept))
    }

    fn list_fold(
        &mut self,
        id: Id,
        range: Expr,
        (variable, second): (Arc<str>, Option<Arc<str>>),
        filter: Option<Expr>,
        transform: Expr,
    ) -> Expr {
        let init = self.list_of(id, Vec::new());
        let condition = self.constant(id, Literal::Bool(true));
        let accumulated = self.accumulated(id);
        let one = self.list_of(id, vec![transform]);
        let step = self.generated(id, "_+_", vec![accumulated, one]);
        let step = self.under(id, filter, step);
        let result = self.accumulated(id);
        let accumulator = ACCUMULATOR.into();
        let form = Form::List;
        comprehension(
            id,
            Comprehension {
                form,
                range,
                variable,
                second,
                accumulator,
                init,
                condition,
                step,
                result,
            },
        )
    }

    /// The step only where a filter says so.
    fn under(&mut self, id: Id, filter: Option<Expr>, step: Expr) -> Expr {
        let Some(filter) = filter else {
            return step;
        };
        let accumulated = self.accumulated(id);
        self.generated(id, "_?_:_", vec![filter, step, accumulated])
    }

    fn transform(
        &mut self,
        id: Id,
        name: &str,
        range: Expr,
        mut args: Vec<Expr>,
    ) -> Result<Expr, Refused> {
        let transform = args.pop().unwrap_or(Expr { id, kind: Kind::Unreadable });
        let filter = (args.len() == 3).then(|| args.pop()).flatten();
        let (variable, second) = variables(&args, "argument must be a simple name")?;
        if name == "transformList" {
            return Ok(self.list_fold(id, range, (variable, second), filter, transform));
        }
        let init = Expr { id: self.new_id(id), kind: Kind::Map(Vec::new()) };
        let condition = self.constant(id, Literal::Bool(true));
        let accumulated = self.accumulated(id);
        let (form, inserted) = if name == "transformMap" {
            (Form::Map, vec![accumulated, self.ident(id, &variable), transform])
        } else {
            (Form::MapEntry, vec![accumulated, transform])
        };
        let step = self.generated(id, "cel.@mapInsert", inserted);
        let step = self.under(id, filter, step);
        let result = self.accumulated(id);
        let accumulator = ACCUMULATOR.into();
        Ok(comprehension(
            id,
            Comprehension {
                form,
                range,
                variable,
                second,
                accumulator,
                init,
                condition,
                step,
                result,
            },
        ))
    }

    /// `init` under a name within `result`.
    fn bound(&mut self, id: Id, name: Arc<str>, init: Expr, result: Expr) -> Expr {
        let range = self.list_of(id, Vec::new());
        let condition = self.constant(id, Literal::Bool(false));
        let step = self.ident(id, &name);
        let (variable, accumulator) = (UNUSED.into(), name);
        let (form, second) = (Form::Bind, None);
        comprehension(
            id,
            Comprehension {
                form,
                range,
                variable,
                second,
                accumulator,
                init,
                condition,
                step,
                result,
            },
        )
    }

    fn bind(&mut self, id: Id, args: Vec<Expr>) -> Result<Expr, Refused> {
        let Ok([variable, init, result]) = <[Expr; 3]>::try_from(args) else {
            return Err((id, "cel.bind() takes three arguments".to_owned()));
        };
        let Kind::Ident(name) = variable.kind else {
            let message = "cel.bind() variable names must be simple identifiers".to_owned();
            return Err((variable.id, message));
        };
        Ok(self.bound(id, name, init, result))
    }

    fn opt_map(
        &mut self,
        id: Id,
        flat: bool,
        target: Expr,
        args: Vec<Expr>,
    ) -> Result<Expr, Refused> {
        let Ok([variable, mapped]) = <[Expr; 2]>::try_from(args) else {
            return Err((id, "optMap() takes two arguments".to_owned()));
        };
        let Kind::Ident(name) = variable.kind else {
            let function = if flat { "optFlatMap" } else { "optMap" };
            let message = format!("{function}() variable name must be a simple identifier");
            return Err((variable.id, message));
        };
        let copy = self.copy(id, &target)?;
        let value_id = self.new_id(id);
        let value = member_call(value_id, "value", copy, Vec::new());
        let inner = self.new_id(id);
        let mut yes = self.bound(inner, name, value, mapped);
        if !flat {
            yes = self.generated(id, "optional.of", vec![yes]);
        }
        let has_id = self.new_id(id);
        let has = member_call(has_id, "hasValue", target, Vec::new());
        let none = self.generated(id, "optional.none", Vec::new());
        Ok(call(id, "_?_:_", vec![has, yes, none]))
    }

    fn sort_by(&mut self, id: Id, target: Expr, args: Vec<Expr>) -> Result<Expr, Refused> {
        if matches!(target.kind, Kind::Literal(_) | Kind::Map(_) | Kind::Struct(_)) {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call or \
                           select expression";
            return Err((target.id, message.to_owned()));
        }
        let input = self.ident(id, SORT_INPUT);
        let keys_id = self.new_id(id);
        let keys = self.mapping(keys_id, input, args)?;
        let input = self.ident(id, SORT_INPUT);
        let sorted_id = self.new_id(id);
        let sorted = member_call(sorted_id, "@sortByAssociatedKeys", input, vec![keys]);
        Ok(self.bound(id, SORT_INPUT.into(), target, sorted))
    }

    fn least_or_greatest(
        &mut self,
        id: Id,
        name: &str,
        target: &Expr,
        args: Vec<Expr>,
    ) -> Result<Expr, Refused> {
        let function = if name == "least" { "math.@min" } else { "math.@max" };
        if args.is_empty() {
            return Err((target.id, format!("math.{name}() requires at least one argument")));
        }
        if let [only] = args.as_slice() {
            if !numeric(only) && !numeric_list(only) {
                return Err((only.id, format!("math.{name}() invalid single argument value")));
            }
            return Ok(call(id, function, args));
        }
        if let Some(wrong) = args.iter().find(|arg| !numeric(arg)) {
            let message = format!("math.{name}() simple literal arguments must be numeric");
            return Err((wrong.id, message));
        }
        let args = if args.len() == 2 { args } else { vec![self.list_of(id, args)] };
        Ok(call(id, function, args))
    }
}

fn numeric(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(literal) => {
            matches!(literal, Literal::Int(_) | Literal::Uint(_) | Literal::Double(_))
        }
        Kind::List(_) | Kind::Map(_) | Kind::Struct(_) => false,
        _ => true,
    }
}

fn numeric_list(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::List(elements) => !elements.is_empty() && elements.iter().all(|e| numeric(&e.value)),
        _ => false,
    }
}

pub(super) fn member_call(id: Id, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
    let call = Call { function: function.into(), target: Some(target), args };
    Expr { id, kind: Kind::Call(Box::new(call)) }
}

fn comprehension(id: Id, comprehension: Comprehension) -> Expr {
    Expr { id, kind: Kind::Comprehension(Box::new(comprehension)) }
}

/// The one or two names that a comprehension gives to what it visits.
fn variables(args: &[Expr], otherwise: &str) -> Result<(Arc<str>, Option<Arc<str>>), Refused> {
    let mut names: Vec<Arc<str>> = Vec::with_capacity(2);
    for arg in args {
        let name = arg.as_ident().ok_or_else(|| (arg.id, otherwise.to_owned()))?;
        if names.iter().any(|other| &**other == name) {
            return Err((arg.id, format!("duplicate variable name: {name}")));
        }
        if name == ACCUMULATOR || name == OLD_ACCUMULATOR {
            let message = "iteration variable overwrites accumulator variable".to_owned();
            return Err((arg.id, message));
        }
        names.push(name.into());
    }
    let mut names = names.into_iter();
    Ok((names.next().unwrap_or_default(), names.next()))
}

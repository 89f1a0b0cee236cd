//! Which types go with which, and what the unknown ones turn out to be.

use std::cell::Cell;
use std::sync::Arc;

use crate::shape::Type;

/// What is known about type variables so far. A failed attempt leaves nothing behind.
#[derive(Debug, Default)]
pub(super) struct Unifier {
    known: Vec<Option<Type>>,
    /// What was overwritten, to be put back.
    trail: Vec<(u32, Option<Type>)>,
    /// How many types were looked at.
    steps: Cell<u32>,
}

/// How many types are looked at for one expression. They are trees that share their branches, and a few
/// hundred characters can make one with more leaves than there is memory for.
const STEPS_MAX: u32 = 1 << 21;

/// How large a type may be that is a key: none that is used has more than one part.
const KEY_MAX: u32 = 64;

impl Unifier {
    pub(super) fn fresh(&mut self) -> Type {
        self.known.push(None);
        Type::Var(u32::try_from(self.known.len() - 1).unwrap_or(u32::MAX))
    }

    /// Whether there were too many types to look at. What is said of them from then on means nothing.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps.get() > STEPS_MAX
    }

    fn step(&self) -> bool {
        self.steps.set(self.steps.get().saturating_add(1));
        !self.is_exhausted()
    }

    /// A type as that of keys: whatever is large is as good as any other, since no map can have it.
    pub(super) fn as_key(&self, ty: Type) -> Type {
        let mut left = KEY_MAX;
        if self.is_within(&ty, &mut left) { ty } else { Type::Dyn }
    }

    fn is_within(&self, ty: &Type, left: &mut u32) -> bool {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        match ty {
            Type::Var(_) => self.find(ty).is_none_or(|known| self.is_within(known, left)),
            Type::List(of) | Type::Type(Some(of)) => self.is_within(of, left),
            Type::Map(of) => self.is_within(&of.0, left) && self.is_within(&of.1, left),
            Type::Opaque(_, params) => params.iter().all(|param| self.is_within(param, left)),
            _ => true,
        }
    }

    fn find(&self, ty: &Type) -> Option<&Type> {
        match ty {
            Type::Var(number) => self.known.get(*number as usize)?.as_ref(),
            _ => None,
        }
    }

    fn set(&mut self, var: &Type, to: Type) {
        if let Type::Var(number) = var {
            let old = self.known[*number as usize].replace(to);
            self.trail.push((*number, old));
        }
    }

    /// Whether values of both types go together.
    pub(super) fn assignable(&mut self, a: &Type, b: &Type) -> bool {
        self.all_assignable(std::slice::from_ref(a), std::slice::from_ref(b))
    }

    pub(super) fn all_assignable(&mut self, a: &[Type], b: &[Type]) -> bool {
        let mark = self.trail.len();
        if self.go_together(a, b) {
            return true;
        }
        while self.trail.len() > mark {
            if let Some((number, old)) = self.trail.pop() {
                self.known[number as usize] = old;
            }
        }
        false
    }

    fn go_together(&mut self, a: &[Type], b: &[Type]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.goes(a, b))
    }

    fn goes(&mut self, a: &Type, b: &Type) -> bool {
        if !self.step() {
            return true;
        }
        if matches!(b, Type::Var(_)) {
            let (valid, known) = self.substitutes(a, b);
            if valid || known {
                return valid;
            }
        }
        if matches!(a, Type::Var(_)) {
            return self.substitutes(b, a).0;
        }
        if a.is_dyn_or_error() || b.is_dyn_or_error() {
            return true;
        }
        match (a, b) {
            (Type::Null, Type::Null) => true,
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Opaque(..) | Type::Object(_) | Type::Duration | Type::Timestamp
            ),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) => self.goes(a, b),
            (Type::Map(a), Type::Map(b)) => self.goes(&a.0, &b.0) && self.goes(&a.1, &b.1),
            (Type::Opaque(x, a), Type::Opaque(y, b)) => x == y && self.go_together(a, b),
            (a, b) => a.same(b),
        }
    }

    /// Whether `a` may stand for the variable `b`, and whether something stood for it already.
    fn substitutes(&mut self, a: &Type, b: &Type) -> (bool, bool) {
        if a.same(b) {
            return (true, true);
        }
        if let Some(known) = self.find(b).cloned() {
            if a.same(&known) {
                return (true, true);
            }
            if self.goes(a, &known) {
                let wider = most_general(a, &known);
                if self.absent(b, &wider) {
                    self.set(b, wider);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.absent(b, a) {
            self.set(b, a.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Whether a variable does not occur in a type.
    fn absent(&self, var: &Type, within: &Type) -> bool {
        if !self.step() || var.same(within) {
            return false;
        }
        match within {
            Type::Var(_) => self.find(within).is_none_or(|known| self.absent(var, known)),
            Type::List(of) => self.absent(var, of),
            Type::Map(of) => self.absent(var, &of.0) && self.absent(var, &of.1),
            Type::Type(Some(of)) => self.absent(var, of),
            Type::Opaque(_, params) => params.iter().all(|param| self.absent(var, param)),
            _ => true,
        }
    }

    /// The type with what is known filled in; what is not becomes `dyn` if asked for.
    pub(super) fn resolve(&self, ty: &Type, to_dyn: bool) -> Type {
        if !self.step() {
            return Type::Dyn;
        }
        match ty {
            Type::Var(_) => match self.find(ty) {
                Some(known) => self.resolve(known, to_dyn),
                None if to_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(of) => Type::list(self.resolve(of, to_dyn)),
            Type::Map(of) => Type::map(self.resolve(&of.0, to_dyn), self.resolve(&of.1, to_dyn)),
            Type::Type(Some(of)) => Type::Type(Some(Arc::new(self.resolve(of, to_dyn)))),
            Type::Opaque(name, params) if !params.is_empty() => {
                let params = params.iter().map(|param| self.resolve(param, to_dyn)).collect();
                Type::Opaque(Arc::clone(name), params)
            }
            other => other.clone(),
        }
    }
}

pub(super) fn most_general(a: &Type, b: &Type) -> Type {
    if equal_or_less_specific(a, b) { a.clone() } else { b.clone() }
}

fn equal_or_less_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Var(_), _) => true,
        (_, Type::Dyn | Type::Var(_)) => false,
        (Type::Opaque(x, a), Type::Opaque(y, b)) => {
            x == y
                && a.len() == b.len()
                && a.iter().zip(b.iter()).all(|(a, b)| equal_or_less_specific(a, b))
        }
        (Type::List(a), Type::List(b)) => equal_or_less_specific(a, b),
        (Type::Map(a), Type::Map(b)) => {
            equal_or_less_specific(&a.0, &b.0) && equal_or_less_specific(&a.1, &b.1)
        }
        (Type::Type(_), Type::Type(_)) => true,
        (a, b) => a.same(b),
    }
}

/// The type with names that stand for types replaced.
pub(super) fn instantiate(ty: &Type, params: &[(Arc<str>, Type)]) -> Type {
    match ty {
        Type::Param(name) => params
            .iter()
            .find(|(param, _)| param == name)
            .map_or_else(|| ty.clone(), |(_, var)| var.clone()),
        Type::List(of) => Type::list(instantiate(of, params)),
        Type::Map(of) => Type::map(instantiate(&of.0, params), instantiate(&of.1, params)),
        Type::Type(Some(of)) => Type::Type(Some(Arc::new(instantiate(of, params)))),
        Type::Opaque(name, inner) if !inner.is_empty() => {
            let inner = inner.iter().map(|param| instantiate(param, params)).collect();
            Type::Opaque(Arc::clone(name), inner)
        }
        other => other.clone(),
    }
}

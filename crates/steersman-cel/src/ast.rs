//! The tree of an expression after its macros are expanded.
//!
//! Every node has a number of its own, under which position, type and chosen overloads are kept.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Names a node of one expression.
pub(crate) type Id = u32;

/// Something of expressions, by their numbers.
pub(crate) type ById<T> = HashMap<Id, T, BuildHasherDefault<IdHasher>>;

/// Hashes numbers that are counted up: nobody chooses them, so nothing has to be withstood.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, id: u32) {
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The variable in which a comprehension gathers its result; cannot be written in source.
pub(crate) const ACCUMULATOR: &str = "@result";

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Stands where something could not be read; an issue was reported.
    Unreadable,
    Literal(Literal),
    Ident(Arc<str>),
    Select(Box<Select>),
    Call(Box<Call>),
    List(Vec<Element>),
    Map(Vec<Entry>),
    Struct(Box<Construction>),
    Comprehension(Box<Comprehension>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
}

/// `operand.field`, or with `test` what `has(operand.field)` asks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Select {
    pub(crate) operand: Expr,
    pub(crate) field: Arc<str>,
    pub(crate) test: bool,
}

/// A function, an operator included. `&&` and `||` take any number of arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) function: Arc<str>,
    pub(crate) target: Option<Expr>,
    pub(crate) args: Vec<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Element {
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: Id,
    pub(crate) key: Expr,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// `Name{field: value}`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Construction {
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<FieldInit>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldInit {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) value: Expr,
    pub(crate) optional: bool,
}

/// A loop over a list or a map, as cel-go expands macros into it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comprehension {
    /// Which macro it came from: evaluation has a shorter way for each.
    pub(crate) form: Form,
    pub(crate) range: Expr,
    pub(crate) variable: Arc<str>,
    pub(crate) second: Option<Arc<str>>,
    pub(crate) accumulator: Arc<str>,
    pub(crate) init: Expr,
    pub(crate) condition: Expr,
    pub(crate) step: Expr,
    pub(crate) result: Expr,
}

/// What a comprehension computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    All,
    Exists,
    ExistsOne,
    /// `map`, `filter`, `transformList`: the step adds a list of one, perhaps under a condition.
    List,
    /// `transformMap`: the step inserts a key and a value.
    Map,
    /// `transformMapEntry`: the step inserts a map.
    MapEntry,
    /// `cel.bind` and what is made of it: no loop, the accumulator is a name for `init`.
    Bind,
}

impl Expr {
    pub(crate) fn as_ident(&self) -> Option<&str> {
        match &self.kind {
            Kind::Ident(name) => Some(name),
            _ => None,
        }
    }

    /// `a.b.c` as a name, if the node is made of names and selections alone.
    pub(crate) fn qualified_name(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.to_string()),
            Kind::Select(select) if !select.test => {
                let mut name = select.operand.qualified_name()?;
                name.push('.');
                name.push_str(&select.field);
                Some(name)
            }
            _ => None,
        }
    }
}

/// A tree and where its nodes stand.
#[derive(Clone, Debug)]
pub(crate) struct Ast {
    pub(crate) root: Expr,
    /// Characters before each node, by its number.
    pub(crate) offsets: Vec<u32>,
}

impl Ast {
    pub(crate) fn offset(&self, id: Id) -> u32 {
        self.offsets.get(id as usize).copied().unwrap_or(crate::source::NOWHERE)
    }
}

//! The program: a tree with names resolved to places, functions to code, constants folded.

use std::collections::HashSet;
use std::sync::Arc;

use crate::library::Run;
use crate::pattern::Pattern;
use crate::shape::ObjectShape;
use crate::value::Value;

use super::cost::Rule;

/// A step of the program.
#[derive(Debug)]
pub(crate) enum Node {
    Const(Value<'static>),
    Attribute(Box<Attribute>),
    And(Box<[Node]>),
    Or(Box<[Node]>),
    Equal(Box<Equality>),
    Call(Box<CallNode>),
    /// A call with a pattern that is known before.
    Pattern(Box<PatternNode>),
    /// `x in ["a", "b"]`.
    Member(Box<(Node, Members)>),
    OrElse(Box<OrElse>),
    List(Box<[ElementNode]>),
    Map(Box<[EntryNode]>),
    Struct(Box<StructNode>),
    Quantifier(Box<Quantifier>),
    One(Box<Loop>),
    Collect(Box<Collect>),
    Bind(Box<Bind>),
}

/// A place in the data: a root and the way from there.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) root: Root,
    pub(crate) qualifiers: Vec<Qualifier>,
    /// Whether only presence is asked for.
    pub(crate) test: bool,
}

#[derive(Debug)]
pub(crate) enum Root {
    /// A variable that comes from outside.
    Slot(usize),
    /// A variable of a comprehension.
    Local(usize),
    /// What a part of the expression computes.
    Computed(Node),
    /// One of two, as a condition says.
    Conditional(Box<(Node, Branch, Branch)>),
}

/// Part of an attribute. An attribute within another costs one less than by itself.
#[derive(Debug)]
pub(crate) enum Branch {
    Attribute(Attribute),
    Computed(Node),
}

#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) by: By,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum By {
    /// A field; with the object that the checker expects it in.
    Field(Arc<str>, Option<Arc<ObjectShape>>),
    Constant(Value<'static>),
    Computed(Branch),
}

#[derive(Debug)]
pub(crate) struct Equality {
    pub(crate) sides: [Node; 2],
    pub(crate) negated: bool,
    pub(crate) rule: Rule,
}

#[derive(Debug)]
pub(crate) struct CallNode {
    /// The first that takes the arguments is used; the checker left more than one for `dyn` only.
    pub(crate) runs: Vec<Run>,
    pub(crate) args: Vec<Node>,
    pub(crate) rule: Rule,
}

#[derive(Debug)]
pub(crate) struct PatternNode {
    pub(crate) kind: PatternKind,
    pub(crate) pattern: Pattern,
    pub(crate) args: Vec<Node>,
    pub(crate) rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatternKind {
    Matches,
    Find,
    FindAll,
}

/// Constants to look something up among.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) texts: HashSet<Box<str>>,
    pub(crate) others: Vec<Value<'static>>,
}

/// `a.or(b)`, or with `unwrap` `a.orValue(b)`.
#[derive(Debug)]
pub(crate) struct OrElse {
    pub(crate) sides: [Node; 2],
    pub(crate) unwrap: bool,
}

#[derive(Debug)]
pub(crate) struct ElementNode {
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct EntryNode {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) struct StructNode {
    pub(crate) shape: Arc<ObjectShape>,
    pub(crate) fields: Vec<(Arc<str>, Node, bool)>,
}

/// What every loop has.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) range: Node,
    /// The place of the first variable; the second follows it.
    pub(crate) place: usize,
    pub(crate) two: bool,
    pub(crate) body: Node,
}

/// `all`, or `exists`.
#[derive(Debug)]
pub(crate) struct Quantifier {
    pub(crate) over: Loop,
    pub(crate) all: bool,
}

/// `map`, `filter`, `transformList`, `transformMap`, `transformMapEntry`.
#[derive(Debug)]
pub(crate) struct Collect {
    pub(crate) over: Loop,
    pub(crate) filter: Option<Node>,
    pub(crate) into: Into,
    /// What each kept element costs beside its own value.
    pub(crate) step_cost: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Into {
    List,
    /// Under the first variable.
    Map,
    /// A map that is merged.
    Entries,
}

#[derive(Debug)]
pub(crate) struct Bind {
    pub(crate) place: usize,
    pub(crate) init: Node,
    pub(crate) result: Node,
}

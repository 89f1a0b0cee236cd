//! One value's shape: what it is, how it merges, what it must satisfy.
//!
//! Built-in types are [`Shape::Named`] references into the table of [`super::builtin`], because
//! they refer to each other in circles; custom resources are trees of their own.

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::builtin;
use super::format::Format;
use super::pattern::Pattern;

/// Text that is static for what is built in and owned for what is custom.
pub(crate) type Text = Cow<'static, str>;

/// The shape of a value in its place.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) shape: Shape,
    /// Whether apply replaces the object or map as a whole; overrides what its type says.
    pub(crate) atomic: Option<bool>,
    /// How strategic merge treats it.
    pub(crate) patch: PatchRule,
    /// What a custom resource's schema demands besides the type.
    pub(crate) rules: Option<Box<Rules>>,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Anything; objects merge field by field, lists are atomic.
    Any,
    /// Anything, replaced as a whole.
    Raw,
    Scalar(Scalar),
    /// A built-in type, by its place in the table.
    Named(usize),
    Object(Object),
    Map(Box<Node>),
    List(Box<List>),
}

/// The types of single values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Int32,
    Int64,
    /// An integer of any size, in custom schemas.
    Integer,
    Number,
    Bool,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
}

/// A struct: known fields, sorted by name.
#[derive(Debug, Default)]
pub(crate) struct Object {
    /// The name of the Go type, such as `v1.DeploymentSpec`; empty in custom schemas.
    pub(crate) name: Text,
    pub(crate) fields: Vec<Field>,
    pub(crate) atomic: bool,
    /// Whether unknown fields stay (`x-kubernetes-preserve-unknown-fields`).
    pub(crate) open: bool,
}

/// A field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: Text,
    pub(crate) node: Node,
    pub(crate) required: bool,
    /// What a missing merge key means.
    pub(crate) default: Option<Value>,
    /// Whether the struct exists even when nothing is set in it.
    pub(crate) value: bool,
    /// What a document has in it when nothing is set.
    pub(crate) unset: Unset,
}

/// What Go writes of a field in which nothing is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unset {
    /// Nothing. A zero that is set stays; an empty list or map is nothing.
    #[default]
    Absent,
    /// The zero of its type.
    Zero,
    Null,
    /// Nothing, not even a zero.
    OmitEmpty,
}

/// A list and how apply merges it.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) item: Node,
    pub(crate) kind: ListKind,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    /// Items are objects identified by these fields.
    Map(Vec<Text>),
}

/// How strategic merge treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchRule {
    pub(crate) merge: Merge,
    /// Whether a patch's `$retainKeys` may name what stays.
    pub(crate) retain_keys: bool,
}

/// `patchStrategy` and `patchMergeKey`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Merge {
    /// Objects merge, lists are replaced.
    #[default]
    Default,
    Replace,
    /// A list of single values is merged as a set.
    Set,
    /// A list of objects is merged by this field.
    Key(Text),
}

/// What a custom schema demands of a value, and its default.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) default: Option<Value>,
    pub(crate) nullable: bool,
    pub(crate) enumeration: Vec<Value>,
    pub(crate) minimum: Option<Bound>,
    pub(crate) maximum: Option<Bound>,
    pub(crate) multiple_of: Option<f64>,
    /// Allowed lengths of strings.
    pub(crate) length: Range,
    /// Allowed lengths of lists.
    pub(crate) items: Range,
    /// Allowed numbers of keys in objects.
    pub(crate) properties: Range,
    /// Whether items of lists must differ.
    pub(crate) unique: bool,
    pub(crate) pattern: Option<Pattern>,
    /// The format of strings: its name as the schema says it, and its test.
    pub(crate) format: Option<(String, Format)>,
    /// What other schemas say of the same value; few have any.
    pub(crate) junctors: Option<Box<Junctors>>,
    /// Whether the schema names no type: rules for values of other types than a given one do
    /// not concern it.
    pub(crate) typeless: bool,
}

/// Schemas that a value must also satisfy, or must not.
#[derive(Debug, Default)]
pub(crate) struct Junctors {
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Node>,
}

/// A limit of a number.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) value: Number,
    pub(crate) exclusive: bool,
}

/// Limits of a length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range {
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
}

/// How a value merges, given what it actually is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relation<'a> {
    /// As a whole.
    Leaf,
    /// Field by field.
    Granular,
    /// A list that is a set of single values.
    Set,
    /// A list of objects with keys.
    Keyed(&'a List, &'a [Text]),
}

/// Stands in wherever a schema says nothing.
pub(crate) static ANY: Node = Node::new(Shape::Any);

impl Node {
    pub(crate) const fn new(shape: Shape) -> Self {
        let patch = PatchRule { merge: Merge::Default, retain_keys: false };
        Self { shape, atomic: None, patch, rules: None }
    }

    /// The struct this is, whether named or inline.
    pub(crate) fn object(&self) -> Option<&Object> {
        match &self.shape {
            Shape::Object(object) => Some(object),
            Shape::Named(index) => Some(builtin::object(*index)),
            _ => None,
        }
    }

    /// The field of a struct, if the schema declares it.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.object()?.field(name)
    }

    /// The shape below a key of an object or map.
    pub(crate) fn child(&self, name: &str) -> &Node {
        match &self.shape {
            Shape::Map(value) => value,
            _ => self.field(name).map_or(&ANY, |field| &field.node),
        }
    }

    /// The shape of a list's items.
    pub(crate) fn item(&self) -> &Node {
        match &self.shape {
            Shape::List(list) => &list.item,
            _ => &ANY,
        }
    }

    /// How this value merges.
    pub(crate) fn relation(&self, value: &Value) -> Relation<'_> {
        match (&self.shape, value) {
            (Shape::Any, Value::Object(_)) => Relation::Granular,
            (Shape::Object(_) | Shape::Named(_) | Shape::Map(_), Value::Object(_)) => {
                if self.is_atomic() { Relation::Leaf } else { Relation::Granular }
            }
            (Shape::List(list), Value::Array(_)) => match &list.kind {
                ListKind::Atomic => Relation::Leaf,
                ListKind::Set => Relation::Set,
                ListKind::Map(keys) => Relation::Keyed(list, keys),
            },
            _ => Relation::Leaf,
        }
    }

    /// Whether fields that the schema does not declare are mistakes.
    pub(crate) fn is_closed(&self) -> bool {
        match &self.shape {
            Shape::Named(_) => true,
            Shape::Object(object) => !object.open,
            _ => false,
        }
    }

    /// Whether `null` is a value of its own here.
    pub(crate) fn is_nullable(&self) -> bool {
        match &self.rules {
            Some(rules) => rules.nullable,
            None => matches!(self.shape, Shape::Any | Shape::Raw),
        }
    }

    fn is_atomic(&self) -> bool {
        self.atomic.unwrap_or_else(|| self.object().is_some_and(|object| object.atomic))
    }
}

impl Object {
    /// The declared field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        let found = self.fields.binary_search_by(|field| field.name.as_ref().cmp(name)).ok()?;
        Some(&self.fields[found])
    }
}

impl List {
    /// What a missing key of an item means; `None` if it has no default.
    pub(crate) fn key_default(&self, key: &str) -> Option<&Value> {
        let field = self.item.field(key)?;
        let rules = field.node.rules.as_ref();
        field.default.as_ref().or_else(|| rules.and_then(|rules| rules.default.as_ref()))
    }
}

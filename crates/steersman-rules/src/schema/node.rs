//! One value's shape: what it is, how it merges, what it must satisfy.
//!
//! Built-in types are [`Shape::Named`] references into the table of [`super::builtin`], because
//! they refer to each other in circles; custom resources are trees of their own.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use serde_json::{Number, Value};

use super::builtin;
use super::format::Format;
use super::index::Index;
use super::pattern::Pattern;

/// Text that is static for what is built in and owned for what is custom.
pub type Text = Cow<'static, str>;

/// The shape of a value in its place.
#[derive(Debug)]
pub struct Node {
    /// What it is.
    pub shape: Shape,
    /// Whether apply replaces the object or map as a whole; overrides what its type says.
    pub atomic: Option<bool>,
    /// How strategic merge treats it.
    pub patch: PatchRule,
    /// What a custom resource's schema demands besides the type.
    pub rules: Option<Arc<Rules>>,
}

/// What a value is.
#[derive(Debug)]
pub enum Shape {
    /// Anything; objects merge field by field, lists are atomic.
    Any,
    /// Anything, replaced as a whole.
    Raw,
    /// What Go reads with a decoder of its own: this built-in type where it is an object, and otherwise
    /// whatever it is.
    Part(usize),
    /// A single value.
    Scalar(Scalar),
    /// A built-in type, by its place in the table.
    Named(usize),
    /// A struct with known fields.
    Object(Object),
    /// Any keys, each with a value of this shape.
    Map(Box<Node>),
    /// A list.
    List(Box<List>),
}

/// The types of single values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the types")]
pub enum Scalar {
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
pub struct Object {
    /// The name of the Go type, such as `v1.DeploymentSpec`; empty in custom schemas.
    pub name: Text,
    /// Its fields.
    pub fields: Vec<Field>,
    /// Whether apply replaces it as a whole.
    pub atomic: bool,
    /// Whether unknown fields stay (`x-kubernetes-preserve-unknown-fields`).
    pub open: bool,
    /// Whether no object in an unknown field keeps any field, however open this is: the schema names
    /// `additionalProperties` and does not say what they are.
    pub bare: bool,
    /// Whether it is a resource of its own (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
    /// Where its fields are, if it is built in.
    pub(super) index: Option<Index>,
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// Its name in documents.
    pub name: Text,
    /// The shape of its value.
    pub node: Node,
    /// Whether objects of a built-in kind must have it.
    pub required: bool,
    /// What a missing merge key means.
    pub default: Option<Value>,
    /// Whether the struct exists even when nothing is set in it.
    pub value: bool,
    /// What a document has in it when nothing is set.
    pub unset: Unset,
}

/// What Go writes of a field in which nothing is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unset {
    /// Nothing. A zero that is set stays; an empty list or map is nothing.
    #[default]
    Absent,
    /// The zero of its type.
    Zero,
    /// `null`.
    Null,
    /// Nothing, not even a zero.
    OmitEmpty,
}

/// A list and how apply merges it.
#[derive(Debug)]
pub struct List {
    /// The shape of its items.
    pub item: Node,
    /// How apply merges it.
    pub kind: ListKind,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Replaced as a whole.
    Atomic,
    /// Items are single values, each there once.
    Set,
    /// Items are objects identified by these fields.
    Map(Vec<Text>),
}

/// How strategic merge treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchRule {
    /// How it is merged.
    pub merge: Merge,
    /// Whether a patch's `$retainKeys` may name what stays.
    pub retain_keys: bool,
}

/// `patchStrategy` and `patchMergeKey`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// Objects merge, lists are replaced.
    #[default]
    Default,
    /// Replaced as a whole.
    Replace,
    /// A list of single values is merged as a set.
    Set,
    /// A list of objects is merged by this field.
    Key(Text),
}

/// What a custom schema demands of a value, and its default.
#[derive(Debug, Default)]
pub struct Rules {
    /// What stands where nothing is given.
    pub default: Option<Value>,
    /// Whether `null` is a value.
    pub nullable: bool,
    /// The allowed values; empty allows all.
    pub enumeration: Vec<Value>,
    /// The least number.
    pub minimum: Option<Bound>,
    /// The greatest number.
    pub maximum: Option<Bound>,
    /// What numbers must be multiples of.
    pub multiple_of: Option<f64>,
    /// Allowed lengths of strings.
    pub length: Range,
    /// Allowed lengths of lists.
    pub items: Range,
    /// Allowed numbers of keys in objects.
    pub properties: Range,
    /// Whether items of lists must differ.
    pub unique: bool,
    /// The fields that objects must have, in the order of the schema.
    pub required: Vec<Text>,
    /// Whether objects have no fields but those that the schema names.
    pub closed: bool,
    /// What strings must match.
    pub pattern: Option<Pattern>,
    /// The format of strings: its name as the schema says it, and its test.
    pub format: Option<(String, Format)>,
    /// The format of numbers: `int32`, `int64`, `float` or `double`.
    pub number: Option<&'static str>,
    /// What the schema itself says of metadata, which is shaped like that of every object.
    pub own: Option<Box<Node>>,
    /// What other schemas say of the same value; few have any.
    pub junctors: Option<Box<Junctors>>,
    /// Whether the schema names no type although it has a shape.
    pub typeless: bool,
}

impl Rules {
    /// To be shared by as many nodes as there are: most demand nothing.
    pub(super) fn shared(self) -> Arc<Self> {
        static NOTHING: LazyLock<Arc<Rules>> = LazyLock::new(Arc::default);
        if self.is_nothing() { Arc::clone(&NOTHING) } else { Arc::new(self) }
    }

    fn is_nothing(&self) -> bool {
        let Self { default, nullable, enumeration, minimum, maximum, multiple_of, .. } = self;
        let Self { length, items, properties, unique, required, closed, pattern, .. } = self;
        let Self { format, number, own, junctors, typeless, .. } = self;
        let is_open = |range: &Range| range.min.is_none() && range.max.is_none();
        default.is_none()
            && !nullable
            && enumeration.is_empty()
            && (minimum.is_none() && maximum.is_none() && multiple_of.is_none())
            && [length, items, properties].into_iter().all(is_open)
            && !(*unique || *closed || *typeless)
            && required.is_empty()
            && (pattern.is_none() && format.is_none() && number.is_none())
            && (own.is_none() && junctors.is_none())
    }
}

/// Schemas that a value must also satisfy, or must not.
#[derive(Debug, Default)]
pub struct Junctors {
    /// All of these.
    pub all_of: Vec<Node>,
    /// At least one of these.
    pub any_of: Vec<Node>,
    /// Exactly one of these.
    pub one_of: Vec<Node>,
    /// Not this.
    pub not: Option<Node>,
}

/// A limit of a number.
#[derive(Clone, Debug)]
pub struct Bound {
    pub value: Number,
    pub exclusive: bool,
}

/// Limits of a length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    pub min: Option<u64>,
    pub max: Option<u64>,
}

/// How a value merges, given what it actually is.
#[derive(Clone, Copy, Debug)]
pub enum Relation<'a> {
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
pub static ANY: Node = Node::new(Shape::Any);

impl Node {
    /// A value of this shape, of which nothing else is said.
    pub const fn new(shape: Shape) -> Self {
        let patch = PatchRule { merge: Merge::Default, retain_keys: false };
        Self { shape, atomic: None, patch, rules: None }
    }

    /// The struct this is, whether named or inline.
    pub fn object(&self) -> Option<&Object> {
        match &self.shape {
            Shape::Object(object) => Some(object),
            Shape::Named(index) | Shape::Part(index) => Some(builtin::object(*index)),
            _ => None,
        }
    }

    /// The field of a struct, if the schema declares it.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.object()?.field(name)
    }

    /// The shape below a key of an object or map.
    pub fn child(&self, name: &str) -> &Node {
        match &self.shape {
            Shape::Map(value) => value,
            _ => self.field(name).map_or(&ANY, |field| &field.node),
        }
    }

    /// The shape of a list's items.
    pub fn item(&self) -> &Node {
        match &self.shape {
            Shape::List(list) => &list.item,
            _ => &ANY,
        }
    }

    /// How this value merges.
    pub fn relation(&self, value: &Value) -> Relation<'_> {
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
    pub fn is_closed(&self) -> bool {
        match &self.shape {
            Shape::Named(_) | Shape::Part(_) => true,
            Shape::Object(object) => !object.open,
            _ => false,
        }
    }

    /// Whether no object below a field keeps any field: the schema knows of the field, and nothing of
    /// what is in it.
    pub(super) fn is_bare(&self, name: &str) -> bool {
        matches!(&self.shape, Shape::Object(object) if object.bare && object.field(name).is_none())
    }

    /// Whether nothing is said of what is here, nor of anything below.
    pub(super) fn knows_nothing(&self) -> bool {
        matches!(self.shape, Shape::Any | Shape::Raw | Shape::Scalar(_))
    }

    /// Whether this, or anything below it that is not a built-in type, is so.
    pub(super) fn contains(&self, is_so: &dyn Fn(&Self) -> bool) -> bool {
        is_so(self)
            || match &self.shape {
                Shape::Object(object) => {
                    object.fields.iter().any(|field| field.node.contains(is_so))
                }
                Shape::Map(below) => below.contains(is_so),
                Shape::List(list) => list.item.contains(is_so),
                _ => false,
            }
    }

    /// What stands where nothing is given, if a custom schema says so.
    pub(super) fn default(&self) -> Option<&Value> {
        self.rules.as_ref()?.default.as_ref()
    }

    /// What a custom schema says of metadata, which is shaped like that of every object.
    pub(super) fn own(&self) -> Option<&Self> {
        self.rules.as_ref()?.own.as_deref()
    }

    /// This, or what a custom schema says in its place.
    pub(super) fn said(&self) -> &Self {
        self.own().unwrap_or(self)
    }

    /// Whether a custom schema speaks of what is here.
    pub(super) fn is_spoken_of(&self) -> bool {
        self.rules.is_some()
    }

    /// Whether `null` is a value of its own here.
    pub fn is_nullable(&self) -> bool {
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
    pub fn field(&self, name: &str) -> Option<&Field> {
        let found = match &self.index {
            Some(index) => index.find(&self.fields, name)?,
            None => self.fields.binary_search_by(|field| field.name.as_ref().cmp(name)).ok()?,
        };
        Some(&self.fields[found])
    }

    /// The fields that a document of a built-in type has although nothing is set in them.
    pub(super) fn written(&self) -> impl Iterator<Item = &Field> {
        self.those_at(Index::written)
    }

    /// The fields that exist in every value of a built-in type, written or not.
    pub(crate) fn implied(&self) -> impl Iterator<Item = &Field> {
        self.those_at(Index::implied)
    }

    fn those_at(&self, places: impl Fn(&Index) -> &[u8]) -> impl Iterator<Item = &Field> {
        let places = self.index.as_ref().map_or(&[][..], places);
        places.iter().map(|place| &self.fields[usize::from(*place)])
    }
}

impl Field {
    /// Whether it exists in every value of its type, written or not.
    pub(crate) fn is_implied(&self) -> bool {
        self.value || (self.unset == Unset::Null && matches!(self.node.shape, Shape::List(_)))
    }
}

impl List {
    /// What a missing key of an item means; `None` if it has no default.
    pub fn key_default(&self, key: &str) -> Option<&Value> {
        let field = self.item.field(key)?;
        let rules = field.node.rules.as_ref();
        field.default.as_ref().or_else(|| rules.and_then(|rules| rules.default.as_ref()))
    }
}

//! What is declared about data: which JSON value is which CEL value, and how big it can get.
//!
//! A shape is to a [`Type`] what a schema is: it knows that a string is a timestamp, that a list is a
//! set, how a property's name is written in an expression, and the sizes that estimates start from.

mod ty;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use ty::Type;
pub(crate) use ty::split_params;

use crate::words::is_keyword;

/// The size of the largest request that Kubernetes accepts: sizes without a limit of their own end
/// here.
pub const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// The shape of a JSON value.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Which values it has.
    pub kind: ShapeKind,
    /// Whether `null` is one of them.
    pub nullable: bool,
    /// How many elements, entries or characters it can have at most.
    pub elements_max: Option<u64>,
    /// How many bytes it takes at least as JSON.
    pub bytes_min: u64,
}

/// Which values a shape has.
#[derive(Clone, Debug)]
pub enum ShapeKind {
    /// Any; numbers without a fraction are `int`, others `double`.
    Dyn,
    /// A string or an integer.
    IntOrString,
    /// `true` or `false`.
    Bool,
    /// An integer.
    Int,
    /// A number, `double` even without a fraction.
    Double,
    /// Text.
    String,
    /// Text in base64 that is seen as bytes.
    Bytes,
    /// Text that is seen as a timestamp.
    Timestamp,
    /// Text that is a day and seen as a timestamp.
    Date,
    /// Text that is seen as a duration.
    Duration,
    /// A list.
    List(Arc<Shape>, ListKind),
    /// An object whose keys are data.
    Map(Arc<Shape>),
    /// An object whose fields are declared.
    Object(Arc<ObjectShape>),
}

/// When two lists are equal and what their sum is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// In order.
    Atomic,
    /// Without order, each value once.
    Set,
    /// Without order, each combination of these fields once.
    Map(Arc<[Arc<str>]>),
}

/// An object with named fields.
#[derive(Clone, Debug)]
pub struct ObjectShape {
    /// The name of the type.
    pub name: Arc<str>,
    /// The fields, by their names in expressions.
    pub fields: BTreeMap<Arc<str>, Field>,
    /// Whether it may have any other field as well, of any type.
    pub open: bool,
}

/// A field of an object.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in JSON.
    pub json: Arc<str>,
    /// What it holds.
    pub shape: Arc<Shape>,
    /// What the checker sees.
    pub ty: Type,
}

/// Anything.
pub(crate) static DYN: Shape = Shape::new(ShapeKind::Dyn);

impl Shape {
    /// A shape without limits.
    #[must_use]
    pub const fn new(kind: ShapeKind) -> Self {
        Self { kind, nullable: false, elements_max: None, bytes_min: 1 }
    }

    /// A list of anything shaped like this.
    #[must_use]
    pub fn list(of: Shape) -> Self {
        Self::new(ShapeKind::List(Arc::new(of), ListKind::Atomic))
    }

    /// A map to anything shaped like this.
    #[must_use]
    pub fn map(of: Shape) -> Self {
        Self::new(ShapeKind::Map(Arc::new(of)))
    }

    /// An object of a type of the given name, its fields by their names in JSON. A field whose name
    /// cannot be written in an expression, not even escaped, is left out.
    #[must_use]
    pub fn object(name: &str, fields: impl IntoIterator<Item = (String, Shape)>) -> Self {
        let fields = fields
            .into_iter()
            .filter_map(|(json, shape)| {
                let json: Arc<str> = json.into();
                let name = if is_plain(&json) { Arc::clone(&json) } else { escape(&json)?.into() };
                Some((name, Field::new(json, shape)))
            })
            .collect();
        Self::new(ShapeKind::Object(Arc::new(ObjectShape {
            name: name.into(),
            fields,
            open: false,
        })))
    }

    /// The same with a limit of elements, entries or characters.
    #[must_use]
    pub fn at_most(mut self, elements: u64) -> Self {
        self.elements_max = Some(elements);
        self
    }

    /// The same, `null` included.
    #[must_use]
    pub fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// What the checker sees.
    #[must_use]
    pub fn ty(&self) -> Type {
        match &self.kind {
            ShapeKind::Dyn | ShapeKind::IntOrString => Type::Dyn,
            ShapeKind::Bool => Type::Bool,
            ShapeKind::Int => Type::Int,
            ShapeKind::Double => Type::Double,
            ShapeKind::String => Type::String,
            ShapeKind::Bytes => Type::Bytes,
            ShapeKind::Timestamp | ShapeKind::Date => Type::Timestamp,
            ShapeKind::Duration => Type::Duration,
            ShapeKind::List(of, _) => Type::list(of.ty()),
            ShapeKind::Map(of) => Type::map(Type::String, of.ty()),
            ShapeKind::Object(object) => Type::Object(Arc::clone(object)),
        }
    }

    /// The shape at a path of field names, `@items`, `@keys` and `@values`.
    pub(crate) fn at(&self, path: &[Arc<str>]) -> Option<&Shape> {
        let Some((first, rest)) = path.split_first() else {
            return Some(self);
        };
        let next = match (&self.kind, &**first) {
            (ShapeKind::List(of, _), "@items") | (ShapeKind::Map(of), "@values") => of,
            (ShapeKind::Object(object), name) => &object.field(name)?.shape,
            _ => return None,
        };
        next.at(rest)
    }
}

impl Field {
    fn new(json: Arc<str>, shape: Shape) -> Self {
        Self { json, ty: shape.ty(), shape: Arc::new(shape) }
    }
}

impl ObjectShape {
    /// A field by its name in an expression; a reserved word need not be escaped behind a dot.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        let reserved = || is_keyword(name).then(|| self.fields.get(format!("__{name}__").as_str()));
        self.fields.get(name).or_else(|| reserved().flatten())
    }

    /// Without fields.
    #[must_use]
    pub fn empty(name: &str) -> Self {
        Self { name: name.into(), fields: BTreeMap::new(), open: false }
    }

    /// With these fields, of which nothing but the types is known: what they hold is seen as it
    /// stands in JSON.
    #[must_use]
    pub fn of_types(name: &str, fields: impl IntoIterator<Item = (String, Type)>) -> Self {
        let shape = Arc::new(DYN.clone());
        let field = |(name, ty): (String, Type)| {
            let name: Arc<str> = name.into();
            (Arc::clone(&name), Field { json: name, shape: Arc::clone(&shape), ty })
        };
        Self { name: name.into(), fields: fields.into_iter().map(field).collect(), open: false }
    }
}

/// Whether a property's name is written in an expression as it is.
fn is_plain(name: &str) -> bool {
    let mut last = b'0';
    let is_plain = name.bytes().all(|byte| {
        let is_second = byte == b'_' && last == b'_';
        last = byte;
        byte.is_ascii_alphanumeric() || (byte == b'_' && !is_second)
    });
    is_plain && !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && !is_keyword(name)
}

/// How a property's name is written in an expression: `foo-bar` as `foo__dash__bar`, `namespace` as
/// `__namespace__`. `None` if it cannot be.
///
/// ```
/// assert_eq!(steersman_cel::escape("x-y").as_deref(), Some("x__dash__y"));
/// assert_eq!(steersman_cel::escape("namespace").as_deref(), Some("__namespace__"));
/// assert_eq!(steersman_cel::escape("ä"), None);
/// ```
#[must_use]
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_keyword(name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (text, taken) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c.is_ascii_alphanumeric() || c == '_' => (&rest[..1], 1),
            _ => return None,
        };
        out.push_str(text);
        rest = &rest[taken..];
    }
    Some(out)
}

/// What an escaped name stands for; `None` if it is no such name.
#[must_use]
pub fn unescape(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("__") {
        out.push_str(&rest[..at]);
        let inner = &rest[at + 2..];
        let Some(end) = inner.find("__").filter(|end| *end > 0) else {
            out.push_str("__");
            rest = inner;
            continue;
        };
        match &inner[..end] {
            "underscores" => out.push_str("__"),
            "dot" => out.push('.'),
            "dash" => out.push('-'),
            "slash" => out.push('/'),
            word if is_keyword(word) && name.len() == word.len() + 4 => out.push_str(word),
            _ => return None,
        }
        rest = &inner[end + 2..];
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        for (name, escaped) in [
            ("a", "a"),
            ("a__b", "a__underscores__b"),
            ("a.b-c/d", "a__dot__b__dash__c__slash__d"),
            ("in", "__in__"),
            ("_x", "_x"),
            ("a_b_", "a_b_"),
            ("a___", "a__underscores___"),
        ] {
            assert_eq!(is_plain(name), name == escaped, "{name}");
            assert_eq!(escape(name).as_deref(), Some(escaped));
            assert_eq!(unescape(escaped).as_deref(), Some(name));
        }
        for bad in ["", "1a", "a b", "a$"] {
            assert_eq!(escape(bad), None);
            assert!(!is_plain(bad), "{bad}");
        }
    }
}

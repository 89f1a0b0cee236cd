//! The types that the checker reasons about.

use std::fmt;
use std::sync::Arc;

use super::ObjectShape;

/// A type of the language.
#[derive(Clone, Debug)]
pub enum Type {
    /// Known only when the expression runs.
    Dyn,
    /// The type of what failed to check; goes with everything, so that one mistake is told once.
    Error,
    /// The type of `null`.
    Null,
    /// `true` and `false`.
    Bool,
    /// 64 bits with a sign.
    Int,
    /// 64 bits without a sign.
    Uint,
    /// A float of 64 bits.
    Double,
    /// Text.
    String,
    /// Bytes.
    Bytes,
    /// A point in time.
    Timestamp,
    /// A span of time.
    Duration,
    /// The type of types; of a given one where that is known.
    Type(Option<Arc<Type>>),
    /// A list of one type.
    List(Arc<Type>),
    /// A map from keys to values.
    Map(Arc<(Type, Type)>),
    /// Has named fields.
    Object(Arc<ObjectShape>),
    /// Known by name and parameters alone, such as `optional_type(int)`.
    Opaque(Arc<str>, Arc<[Type]>),
    /// Stands for any type in a declaration, by its name.
    Param(Arc<str>),
    /// Stands for a type that the checker is still looking for.
    Var(u32),
}

const OPTIONAL: &str = "optional_type";

impl Type {
    /// A list.
    #[must_use]
    pub fn list(of: Type) -> Self {
        Type::List(Arc::new(of))
    }

    /// A map.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Self {
        Type::Map(Arc::new((key, value)))
    }

    /// What may be absent.
    #[must_use]
    pub fn optional(of: Type) -> Self {
        Type::Opaque(OPTIONAL.into(), [of].into())
    }

    /// An object without fields that can be named, such as `kubernetes.Quantity`.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Type::Object(Arc::new(ObjectShape::empty(name)))
    }

    pub(crate) fn as_optional(&self) -> Option<&Type> {
        match self {
            Type::Opaque(name, params) if &**name == OPTIONAL => params.first(),
            _ => None,
        }
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// The name without parameters: what `type(x)` is called.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Error => "error",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Duration => "google.protobuf.Duration",
            Type::Type(_) => "type",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Object(shape) => &shape.name,
            Type::Opaque(name, _) | Type::Param(name) => name,
            Type::Var(_) => "var",
        }
    }

    /// Whether both are the same type in every part.
    #[must_use]
    pub fn same(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::List(a), Type::List(b)) => a.same(b),
            (Type::Map(a), Type::Map(b)) => a.0.same(&b.0) && a.1.same(&b.1),
            (Type::Object(a), Type::Object(b)) => a.name == b.name,
            (Type::Opaque(a, x), Type::Opaque(b, y)) => {
                a == b && x.len() == y.len() && x.iter().zip(y.iter()).all(|(x, y)| x.same(y))
            }
            (Type::Type(a), Type::Type(b)) => match (a, b) {
                (Some(a), Some(b)) => a.same(b),
                (None, None) => true,
                _ => false,
            },
            (Type::Param(a), Type::Param(b)) => a == b,
            (Type::Var(a), Type::Var(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Reads a type as declarations write it: `list(A)`, `map(string, int)`, `kubernetes.URL`.
    pub(crate) fn read(text: &str) -> Type {
        let text = text.trim();
        if let Some((name, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            let params: Vec<Type> = split_params(inner).into_iter().map(Type::read).collect();
            return match (name, params.as_slice()) {
                ("list", [of]) => Type::list(of.clone()),
                ("map", [key, value]) => Type::map(key.clone(), value.clone()),
                ("type", [of]) => Type::Type(Some(Arc::new(of.clone()))),
                ("optional", [of]) => Type::optional(of.clone()),
                _ => Type::Opaque(name.into(), params.into()),
            };
        }
        match text {
            "dyn" => Type::Dyn,
            "null" => Type::Null,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "timestamp" => Type::Timestamp,
            "duration" => Type::Duration,
            "type" => Type::Type(None),
            "net.IP" | "net.CIDR" => Type::Opaque(text.into(), [].into()),
            _ if text.len() == 1 => Type::Param(text.into()),
            _ => Type::named(text),
        }
    }
}

/// Splits at commas outside parentheses.
pub(crate) fn split_params(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        out.push(&text[start..]);
    }
    out
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Error => f.write_str("!error!"),
            Type::Null => f.write_str("null"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Duration => f.write_str("duration"),
            Type::Type(Some(of)) => write!(f, "type({of})"),
            Type::List(of) => write!(f, "list({of})"),
            Type::Map(of) => write!(f, "map({}, {})", of.0, of.1),
            Type::Opaque(name, params) if !params.is_empty() => {
                write!(f, "{name}(")?;
                for (at, param) in params.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{param}")?;
                }
                f.write_str(")")
            }
            Type::Var(number) => write!(f, "_var{number}"),
            other => f.write_str(other.name()),
        }
    }
}

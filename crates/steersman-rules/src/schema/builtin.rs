//! The types that Kubernetes defines, read once from `builtin.txt`.
//!
//! The table is text, so that a change of a merge key can be seen in a diff; its head explains the
//! notation. `cargo xtask schemas` writes it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde_json::Value;

use super::index::Index;
use super::node::{
    Field, List, ListKind, Merge, Node, Object, PatchRule, Scalar, Shape, Text, Unset,
};

const TEXT: &str = include_str!("builtin.txt");

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::parse(TEXT));

#[derive(Default)]
struct Table {
    objects: Vec<Object>,
    /// The places of types, by name such as `core.v1.Pod`.
    names: HashMap<&'static str, usize>,
    /// The names of kinds' types, by `apps/v1` and `Deployment`.
    kinds: HashMap<(&'static str, &'static str), &'static str>,
    /// What a field of a type, or what is in it, may be, as the table writes it.
    enumerations: HashMap<(usize, &'static str), &'static str>,
}

/// A kind that the table has a type for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The name of its type, such as `v1.Deployment`.
    pub type_name: &'static str,
    /// Group and version, such as `apps/v1`.
    pub api_version: &'static str,
    /// Its name, such as `Deployment`.
    pub name: &'static str,
}

/// The type at a place of the table.
pub fn object(index: usize) -> &'static Object {
    &TABLE.objects[index]
}

/// The type of a kind.
pub fn kind(api_version: &str, kind: &str) -> Option<Node> {
    TABLE.kinds.get(&(api_version, kind)).and_then(|name| named(name))
}

/// The name of a kind's type, such as `core.v1.Pod`.
pub fn type_of(api_version: &str, kind: &str) -> Option<&'static str> {
    TABLE.kinds.get(&(api_version, kind)).copied()
}

/// The names of all types, sorted, with their places.
pub fn types() -> BTreeMap<&'static str, usize> {
    TABLE.names.iter().map(|(name, index)| (*name, *index)).collect()
}

/// All kinds, sorted by the names of their types.
pub fn kinds() -> Vec<Kind> {
    let kinds = TABLE.kinds.iter();
    let kinds = kinds.map(|((api_version, name), type_name)| Kind { type_name, api_version, name });
    let mut kinds: Vec<Kind> = kinds.collect();
    kinds.sort();
    kinds
}

/// What a field of a type, or what is in it, may be; empty where nothing is said.
pub fn enumeration(index: usize, field: &str) -> Vec<String> {
    let values = TABLE.enumerations.get(&(index, field));
    values.into_iter().flat_map(|text| text.split(',')).map(|v| v.replace('~', " ")).collect()
}

/// What Go calls the type of a field, where that does not follow from its shape.
pub(crate) fn go_name(index: usize, field: &str) -> Option<&'static str> {
    word(index, field, "go=")
}

/// The structs that a type embeds and that hold a field, such as `RuleWithOperations.Rule`.
pub(crate) fn embedded(index: usize, field: &str) -> Option<&'static str> {
    word(index, field, "in=")
}

/// What only mistakes ask for is read from the text, and not kept.
fn word(index: usize, field: &str, key: &str) -> Option<&'static str> {
    let mut types = TEXT.lines().enumerate().filter(|(_, line)| line.starts_with("type "));
    let (head, _) = types.nth(index)?;
    let mut fields = TEXT.lines().skip(head + 1).map_while(|line| line.strip_prefix("  "));
    let line = fields.find(|line| line.split(' ').next() == Some(field))?;
    line.split(' ').find_map(|word| word.strip_prefix(key))
}

/// A type by its name, such as `meta.v1.ObjectMeta`.
pub fn named(name: &str) -> Option<Node> {
    TABLE.names.get(name).map(|index| Node::new(Shape::Named(*index)))
}

impl Table {
    fn parse(text: &'static str) -> Self {
        let mut table = Self::default();
        table.index(text);
        for line in text.lines() {
            if line.starts_with("type ") {
                table.objects.push(head(line));
            } else if let Some(field) = line.strip_prefix("  ") {
                table.enumeration(field);
                let field = table.field(field);
                if let Some(object) = table.objects.last_mut() {
                    object.fields.push(field);
                }
            }
        }
        for object in &mut table.objects {
            object.index = Some(Index::of(&object.fields));
        }
        table
    }

    /// First pass: where each type will be, so that fields can refer to later ones.
    fn index(&mut self, text: &'static str) {
        for line in text.lines() {
            let mut words = line.split(' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("type"), Some(name), ..) => {
                    self.names.insert(name, self.names.len());
                }
                (Some("kind"), Some(version), Some(kind), Some(name)) => {
                    self.kinds.insert((version, kind), name);
                }
                _ => {}
            }
        }
    }

    /// Notes what a field of the last type may be.
    fn enumeration(&mut self, line: &'static str) {
        let values = line.split(' ').find_map(|word| word.strip_prefix("enum="));
        let index = self.objects.len().saturating_sub(1);
        if let (Some(values), Some(name)) = (values, line.split(' ').next()) {
            self.enumerations.insert((index, name), values);
        }
    }

    fn field(&self, line: &'static str) -> Field {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let ty = words.next().unwrap_or_default();
        let mut field = Field {
            name: Cow::Borrowed(name),
            node: self.node(ty),
            required: false,
            default: None,
            value: false,
            unset: Unset::Absent,
        };
        let mut patch = None;
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("!", _) => field.required = true,
                ("value", _) => field.value = true,
                ("unset", "zero") => field.unset = Unset::Zero,
                ("unset", "null") => field.unset = Unset::Null,
                ("omitempty", _) => field.unset = Unset::OmitEmpty,
                ("atomic", _) => field.node.atomic = Some(true),
                ("granular", _) => field.node.atomic = Some(false),
                ("set", _) => set_list(&mut field.node, ListKind::Set),
                ("map", keys) => {
                    let keys = keys.split(',').map(Cow::Borrowed).collect();
                    set_list(&mut field.node, ListKind::Map(keys));
                }
                ("default", value) => field.default = Some(Value::from(value)),
                ("patch", rule) => patch = Some(rule),
                _ => {}
            }
        }
        if field.required && field.default.is_none() {
            field.default = zero(&field.node);
        }
        field.node.patch = patch.map_or_else(|| implied(&field.node), patch_rule);
        field
    }

    fn node(&self, ty: &'static str) -> Node {
        if let Some(item) = ty.strip_prefix('[').and_then(|ty| ty.strip_suffix(']')) {
            let list = List { item: self.node(item), kind: ListKind::Atomic };
            return Node::new(Shape::List(Box::new(list)));
        }
        if let Some(value) = ty.strip_prefix('{').and_then(|ty| ty.strip_suffix('}')) {
            return Node::new(Shape::Map(Box::new(self.node(value))));
        }
        let part = ty.strip_prefix('<').and_then(|ty| ty.strip_suffix('>'));
        if let Some(index) = part.and_then(|ty| self.names.get(ty)) {
            return Node::new(Shape::Part(*index));
        }
        Node::new(match ty {
            "any" => Shape::Any,
            "raw" => Shape::Raw,
            _ => match (scalar(ty), self.names.get(ty)) {
                (Some(scalar), _) => Shape::Scalar(scalar),
                (None, Some(index)) => Shape::Named(*index),
                (None, None) => Shape::Any,
            },
        })
    }
}

/// `type core.v1.ObjectReference atomic`
fn head(line: &'static str) -> Object {
    let mut words = line.split(' ').skip(1);
    let name = words.next().unwrap_or_default();
    // Go prints a type with the last part of its package, which is the version.
    let name = name.split_once('.').map_or(name, |(_, go)| go);
    let atomic = words.next() == Some("atomic");
    Object { name: Text::Borrowed(name), atomic, ..Object::default() }
}

fn scalar(name: &str) -> Option<Scalar> {
    Some(match name {
        "string" => Scalar::String,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "number" => Scalar::Number,
        "bool" => Scalar::Bool,
        "bytes" => Scalar::Bytes,
        "time" => Scalar::Time,
        "microtime" => Scalar::MicroTime,
        "quantity" => Scalar::Quantity,
        "intorstring" => Scalar::IntOrString,
        _ => return None,
    })
}

fn set_list(node: &mut Node, kind: ListKind) {
    if let Shape::List(list) = &mut node.shape {
        list.kind = kind;
    }
}

/// What a required field holds when a client leaves it out: its type's zero.
fn zero(node: &Node) -> Option<Value> {
    match node.shape {
        Shape::Scalar(Scalar::String) => Some(Value::from("")),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64) => Some(Value::from(0)),
        Shape::Scalar(Scalar::Bool) => Some(Value::from(false)),
        _ => None,
    }
}

/// The strategic merge rule that follows from the list type.
fn implied(node: &Node) -> PatchRule {
    let merge = match &node.shape {
        Shape::List(list) => match &list.kind {
            ListKind::Atomic => Merge::Default,
            ListKind::Set => Merge::Set,
            ListKind::Map(keys) => keys.first().map_or(Merge::Set, |key| Merge::Key(key.clone())),
        },
        _ => Merge::Default,
    };
    PatchRule { merge, retain_keys: false }
}

/// `replace`, `retainKeys`, `merge:KEY` or `merge,retainKeys:KEY`.
fn patch_rule(rule: &'static str) -> PatchRule {
    let (strategies, key) = rule.split_once(':').unwrap_or((rule, ""));
    let retain_keys = strategies.split(',').any(|strategy| strategy == "retainKeys");
    let merge = match (strategies.split(',').next(), key) {
        (Some("replace"), _) => Merge::Replace,
        (Some("merge"), "") => Merge::Set,
        (Some("merge"), key) => Merge::Key(Cow::Borrowed(key)),
        _ => Merge::Default,
    };
    PatchRule { merge, retain_keys }
}

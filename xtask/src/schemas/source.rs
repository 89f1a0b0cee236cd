//! Reads type facts out of the generated Rust sources of k8s-openapi.
//!
//! Its files are regular enough for a reader by lines: the definition's name stands in the first
//! line, fields in `pub struct`, JSON names in the deserialiser's `"name" => Field::Key_name`, and
//! list types in the calls of `merge_strategies`.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::Path;
use std::{fs, io};

/// A struct of the API.
pub(super) struct Type {
    pub(super) kind: Option<Kind>,
    pub(super) fields: Vec<Field>,
    pub(super) atomic: bool,
}

/// The kind that a top-level type is.
pub(super) struct Kind {
    pub(super) api_version: String,
    pub(super) name: String,
}

pub(super) struct Field {
    pub(super) name: String,
    pub(super) ty: TypeRef,
    pub(super) required: bool,
    pub(super) flags: Flags,
}

/// How a field merges.
#[derive(Default)]
pub(super) struct Flags {
    pub(super) list: ListType,
    pub(super) atomic_map: bool,
    pub(super) granular: bool,
    pub(super) value: bool,
    pub(super) unset: Unset,
    pub(super) patch: Option<String>,
    pub(super) default: Option<String>,
    pub(super) enumeration: Option<String>,
    /// The name that Go has for the type.
    pub(super) go: Option<String>,
    /// The embedded structs that hold the field.
    pub(super) embedded: Option<String>,
}

/// What Go writes of a field in which nothing is set.
#[derive(Clone, Copy, Default)]
pub(super) enum Unset {
    /// Nothing; a zero is a value.
    #[default]
    Absent,
    Zero,
    Null,
    /// Nothing, not even a zero.
    OmitEmpty,
}

#[derive(Default)]
pub(super) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

pub(super) enum TypeRef {
    Scalar(&'static str),
    Named(String),
    List(Box<TypeRef>),
    Map(Box<TypeRef>),
}

/// A file before its references and merge keys are resolved.
struct Raw {
    definition: String,
    path: String,
    text: String,
    json_names: BTreeMap<String, String>,
}

/// Every struct below `root`, by its short definition name such as `core.v1.Pod`.
pub(super) fn read(root: &Path) -> Result<BTreeMap<String, Type>, String> {
    let mut files = Vec::new();
    collect(root, "crate", &mut files).map_err(|e| format!("{}: {e}", root.display()))?;
    let names: BTreeMap<String, &Raw> = files.iter().map(|f| (f.path.clone(), f)).collect();
    let plain = |f: &&Raw| f.text.contains("pub struct") && !f.text.contains("pub struct List<");
    files
        .iter()
        .filter(plain)
        .map(|file| Ok((file.definition.clone(), parse(file, &names)?)))
        .collect()
}

/// The kinds of versions that are not stable which the API server serves where it is asked to.
const ON_REQUEST: [(&str, &str); 3] = [
    ("internal.apiserver.k8s.io/v1alpha1", "StorageVersion"),
    ("resource.k8s.io/v1beta2", "DeviceTaintRule"),
    ("storagemigration.k8s.io/v1beta1", "StorageVersionMigration"),
];

impl Kind {
    /// Whether it is of `v1` or `v2`, not of `v1beta1`, or served on request.
    pub(super) fn is_served(&self) -> bool {
        let version = self.api_version.rsplit('/').next().unwrap_or_default();
        let is_stable = !version.contains("alpha") && !version.contains("beta");
        is_stable || ON_REQUEST.contains(&(self.api_version.as_str(), self.name.as_str()))
    }
}

impl TypeRef {
    /// The struct at the bottom of lists and maps.
    pub(super) fn named(&self) -> Option<&str> {
        match self {
            Self::Scalar(_) => None,
            Self::Named(name) => Some(name),
            Self::List(inner) | Self::Map(inner) => inner.named(),
        }
    }
}

impl Display for TypeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(name) => f.write_str(name),
            Self::Named(name) => f.write_str(name),
            Self::List(inner) => write!(f, "[{inner}]"),
            Self::Map(inner) => write!(f, "{{{inner}}}"),
        }
    }
}

impl Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.list {
            ListType::Atomic => {}
            ListType::Set => f.write_str(" set")?,
            ListType::Map(keys) => write!(f, " map={}", keys.join(","))?,
        }
        let words = [(self.atomic_map, " atomic"), (self.granular, " granular")];
        for (_, word) in words.iter().filter(|(set, _)| *set) {
            f.write_str(word)?;
        }
        if let Some(rule) = &self.patch {
            write!(f, " patch={rule}")?;
        }
        if let Some(value) = &self.default {
            write!(f, " default={value}")?;
        }
        if let Some(values) = &self.enumeration {
            write!(f, " enum={values}")?;
        }
        if let Some(name) = &self.go {
            write!(f, " go={name}")?;
        }
        if let Some(structs) = &self.embedded {
            write!(f, " in={structs}")?;
        }
        if self.value {
            f.write_str(" value")?;
        }
        f.write_str(match self.unset {
            Unset::Absent => "",
            Unset::Zero => " unset=zero",
            Unset::Null => " unset=null",
            Unset::OmitEmpty => " omitempty",
        })
    }
}

fn collect(dir: &Path, module: &str, files: &mut Vec<Raw>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            collect(&path, &format!("{module}::{name}"), files)?;
        } else {
            files.extend(raw(module, fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

fn raw(module: &str, text: String) -> Option<Raw> {
    let definition = text.lines().next()?.strip_prefix("// Generated from definition ")?;
    let name = definition.rsplit('.').next()?;
    let json_names = text.lines().filter_map(json_name).collect();
    let path = format!("{module}::{name}");
    Some(Raw { definition: short(definition), path, json_names, text })
}

/// `"hostIP" => Field::Key_host_ip,` gives (`host_ip`, `hostIP`).
fn json_name(line: &str) -> Option<(String, String)> {
    let (json, rust) = line.trim().strip_prefix('"')?.split_once("\" => Field::Key_")?;
    Some((rust.trim_end_matches(',').to_owned(), json.to_owned()))
}

/// `io.k8s.api.core.v1.Pod` is `core.v1.Pod` here.
fn short(definition: &str) -> String {
    let parts: Vec<&str> = definition.split('.').collect();
    parts[parts.len().saturating_sub(3)..].join(".")
}

fn parse(file: &Raw, names: &BTreeMap<String, &Raw>) -> Result<Type, String> {
    let mut merge = merge_flags(&file.text);
    let mut fields = Vec::new();
    let kind = kind(&file.text);
    if kind.is_some() {
        for name in ["apiVersion", "kind"] {
            let ty = TypeRef::Scalar("string");
            let flags = Flags::default();
            fields.push(Field { name: name.to_owned(), ty, required: false, flags });
        }
    }
    for line in file.text.lines() {
        let Some((rust, ty)) = field_line(line) else {
            continue;
        };
        let name = file.json_names.get(rust).ok_or_else(|| format!("{}.{rust}", file.path))?;
        let (ty, required) = match ty.strip_prefix("Option<") {
            Some(ty) => (type_ref(ty.strip_suffix('>').unwrap_or(ty), names)?, false),
            None => (type_ref(ty, names)?, true),
        };
        let mut flags = merge.remove(rust).unwrap_or_default();
        json_keys(&mut flags, &ty, names);
        fields.push(Field { name: name.clone(), ty, required, flags });
    }
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Type { kind, fields, atomic: false })
}

/// `    pub host_ip: Option<std::string::String>,`
fn field_line(line: &str) -> Option<(&str, &str)> {
    let (name, ty) = line.strip_prefix("    pub ")?.strip_suffix(',')?.split_once(": ")?;
    Some((name, ty))
}

fn kind(text: &str) -> Option<Kind> {
    let constant = |name: &str| {
        let start = text.find(&format!("const {name}: &'static str = \""))?;
        text[start..].split('"').nth(1).map(str::to_owned)
    };
    Some(Kind { api_version: constant("API_VERSION")?, name: constant("KIND")? })
}

fn type_ref(ty: &str, names: &BTreeMap<String, &Raw>) -> Result<TypeRef, String> {
    let inner = |prefix: &str| ty.strip_prefix(prefix).and_then(|rest| rest.strip_suffix('>'));
    if let Some(item) = inner("std::vec::Vec<") {
        return Ok(TypeRef::List(Box::new(type_ref(item, names)?)));
    }
    if let Some(value) = inner("std::collections::BTreeMap<std::string::String, ") {
        return Ok(TypeRef::Map(Box::new(type_ref(value, names)?)));
    }
    if let Some(boxed) = inner("std::boxed::Box<") {
        return type_ref(boxed, names);
    }
    let name = ty.rsplit("::").next().unwrap_or(ty);
    Ok(TypeRef::Scalar(match name {
        "String" => "string",
        "i32" => "int32",
        "i64" => "int64",
        "f64" => "number",
        "bool" => "bool",
        "ByteString" => "bytes",
        "Time" => "time",
        "MicroTime" => "microtime",
        "Quantity" => "quantity",
        "IntOrString" => "intorstring",
        "RawExtension" | "FieldsV1" => "any",
        "JSON" => "raw",
        "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
            "<apiextensions.v1.JSONSchemaProps>"
        }
        _ => match names.get(ty) {
            Some(file) => return Ok(TypeRef::Named(file.definition.clone())),
            None => return Err(format!("unknown type {ty}")),
        },
    }))
}

/// The list and map types that the merge implementation states, by Rust field name. Keys are still
/// Rust names.
fn merge_flags(text: &str) -> BTreeMap<String, Flags> {
    let mut found = BTreeMap::new();
    for call in text.split("crate::merge_strategies::").skip(1) {
        let Some((strategy, arguments)) = call.split_once('(') else {
            continue;
        };
        let Some(field) = arguments.split_once("&mut self.").map(|(_, rest)| identifier(rest))
        else {
            continue;
        };
        let mut flags = Flags::default();
        match strategy {
            "list::set" => flags.list = ListType::Set,
            "map::atomic" => flags.atomic_map = true,
            "list::map" => {
                let keys = arguments.split("|lhs, rhs| lhs.").skip(1).map(identifier);
                flags.list = ListType::Map(keys.map(str::to_owned).collect());
            }
            _ => {}
        }
        found.insert(field.to_owned(), flags);
    }
    found
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// Turns Rust names of merge keys into those of the item's JSON.
fn json_keys(flags: &mut Flags, ty: &TypeRef, names: &BTreeMap<String, &Raw>) {
    let ListType::Map(keys) = &mut flags.list else {
        return;
    };
    let Some(item) = ty.named() else { return };
    let Some(item) = names.values().find(|file| file.definition == item) else {
        return;
    };
    for key in keys {
        if let Some(json) = item.json_names.get(key) {
            key.clone_from(json);
        }
    }
}

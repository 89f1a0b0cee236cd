//! `kubectl get`: objects as rows of a table (`meta.k8s.io/v1` Table).
//!
//! A kind has [`Column`]s; a column knows how to read or compute its [`Cell`]. The columns of
//! built-in kinds are in one file a family ([`pods`], [`workloads`], …); those of custom resources
//! come from their definition and are read by [`path`]. kubectl prints cells as they come, so
//! ages are already words here. The clock is an argument.

mod access;
mod cells;
mod cluster;
mod duration;
mod network;
mod path;
mod pods;
mod storage;
#[cfg(test)]
mod tests;
mod workloads;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub use self::duration::human as human_duration;
pub use self::path::Path;
use crate::negotiate::MetaVersion;
use crate::schema::Text;

/// One column of a table, with the way to fill it.
#[derive(Clone, Debug)]
pub struct Column {
    /// The header.
    pub name: Text,
    /// An OpenAPI type such as `string`, or `date`.
    pub r#type: Text,
    /// An OpenAPI format such as `name`; often empty.
    pub format: Text,
    /// What the column shows.
    pub description: Text,
    /// Zero is always shown, more only with `-o wide`.
    pub priority: i64,
    /// Where the value comes from.
    pub value: Cell,
}

/// Where the value of a cell comes from.
#[derive(Clone, Debug)]
pub enum Cell {
    /// The first thing a `JSONPath` finds, read as the column's type.
    Path(Path),
    /// A field by its dotted path, and what to show where it is absent or empty.
    Field(&'static str, &'static str),
    /// A number by its dotted path; zero where it is absent.
    Number(&'static str),
    /// A switch by its dotted path, and what it is where it is absent.
    Switch(&'static str, bool),
    /// A computation over the object, at a time.
    Computed(fn(&Value, Timestamp) -> Value),
}

/// What of each object a table carries beside its cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// A `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Reads the query parameter `includeObject`; `None` if it is not one of the three.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "None" => Some(Self::None),
            "" | "Metadata" => Some(Self::Metadata),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// How a table is told.
#[derive(Clone, Copy, Debug)]
pub struct TableForm {
    /// What it carries of each object.
    pub include: IncludeObject,
    /// The version of `meta.k8s.io`, as documents carry it.
    pub api_version: &'static str,
    /// Whether it says what its columns are; of the tables of a watch only the first does.
    pub headers: bool,
}

/// At `meta.k8s.io/v1`.
impl From<IncludeObject> for TableForm {
    fn from(include: IncludeObject) -> Self {
        Self { include, api_version: MetaVersion::V1.api_version(), headers: true }
    }
}

/// The columns of a built-in kind.
pub fn columns_for(group: &str, kind: &str) -> Arc<[Column]> {
    let families = [
        pods::columns,
        workloads::columns,
        network::columns,
        storage::columns,
        cluster::columns,
        access::columns,
    ];
    let known = families.iter().find_map(|family| family(group, kind));
    known.unwrap_or_else(|| vec![created_at()]).into()
}

/// The columns of a custom resource, from its `additionalPrinterColumns`; without any, its age.
/// A column whose path is not understood shows nothing.
pub fn columns_from_crd(columns: &Value) -> Arc<[Column]> {
    match columns.as_array() {
        Some(columns) if !columns.is_empty() => columns.iter().map(custom).collect(),
        _ => Arc::new([Column { r#type: "date".into(), ..age() }]),
    }
}

/// A `meta.k8s.io` Table of the objects, with the metadata of their list.
pub fn render(
    columns: &[Column],
    objects: &[Value],
    list_metadata: Value,
    form: impl Into<TableForm>,
    now: Timestamp,
) -> Value {
    let form = form.into();
    let columns = all_columns(columns);
    let row = |object: &Value| {
        let cells = columns.iter().map(|column| column.cell(object, now)).collect();
        json!({"cells": Value::Array(cells), "object": shown(object, form)})
    };
    let definitions = || columns.iter().map(Column::definition).collect::<Value>();
    Value::Object(Map::from_iter([
        ("kind".to_owned(), "Table".into()),
        ("apiVersion".to_owned(), form.api_version.into()),
        ("metadata".to_owned(), list_metadata),
        ("columnDefinitions".to_owned(), form.headers.then(definitions).into()),
        ("rows".to_owned(), objects.iter().map(row).collect()),
    ]))
}

impl Column {
    fn new(name: &'static str, r#type: &'static str, value: Cell) -> Self {
        Self {
            name: name.into(),
            r#type: r#type.into(),
            format: "".into(),
            description: "".into(),
            priority: 0,
            value,
        }
    }

    /// Text that code makes.
    fn text(name: &'static str, value: fn(&Value, Timestamp) -> Value) -> Self {
        Self::new(name, "string", Cell::Computed(value))
    }

    /// Text that stands in a field.
    fn field(name: &'static str, path: &'static str, absent: &'static str) -> Self {
        Self::new(name, "string", Cell::Field(path, absent))
    }

    /// A number that stands in a field; zero where it is absent.
    fn number(name: &'static str, path: &'static str) -> Self {
        Self::new(name, "integer", Cell::Number(path))
    }

    /// A number that code counts.
    fn count(name: &'static str, value: fn(&Value, Timestamp) -> Value) -> Self {
        Self::new(name, "integer", Cell::Computed(value))
    }

    /// A switch that stands in a field; off where it is absent.
    fn switch(name: &'static str, path: &'static str) -> Self {
        Self::new(name, "boolean", Cell::Switch(path, false))
    }

    /// Announced as text although it is none, as Kubernetes announces some.
    fn called_text(self) -> Self {
        Self { r#type: "string".into(), ..self }
    }

    /// Shown only with `-o wide`.
    fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// What the column means.
    fn about(self, description: &'static str) -> Self {
        Self { description: description.into(), ..self }
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.r#type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        })
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.value {
            Cell::Computed(compute) => compute(object, now),
            Cell::Field(path, absent) => match at(object, path) {
                Value::Null => (*absent).into(),
                Value::String(text) if text.is_empty() => (*absent).into(),
                value if self.r#type == "string" => cells::printed(value).into(),
                value => value.clone(),
            },
            Cell::Number(path) => cells::number(at(object, path)).into(),
            Cell::Switch(path, absent) => at(object, path).as_bool().unwrap_or(*absent).into(),
            Cell::Path(path) => {
                path.first(object).map_or(Value::Null, |value| typed(value, &self.r#type, now))
            }
        }
    }
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, key| &value[key])
}

/// The name comes first, unless the kind has its own idea of where (events have).
fn all_columns(columns: &[Column]) -> Vec<Column> {
    let own_name = columns.iter().any(|column| column.name == "Name");
    let mut all = if own_name { Vec::new() } else { vec![name()] };
    all.extend_from_slice(columns);
    if columns.is_empty() {
        all.push(age());
    }
    all
}

fn name() -> Column {
    let column = Column::field("Name", "metadata.name", "");
    let about = "Name must be unique within a namespace; it cannot be updated.";
    Column { format: "name".into(), ..column.about(about) }
}

fn age() -> Column {
    Column::text("Age", duration::age).about("How long ago the object was created.")
}

fn created_at() -> Column {
    let column = Column::field("Created At", "metadata.creationTimestamp", "");
    Column { r#type: "date".into(), ..column.about("When the object was created.") }
}

fn custom(definition: &Value) -> Column {
    let text = |key: &str| definition[key].as_str().unwrap_or_default().to_owned();
    Column {
        name: text("name").into(),
        r#type: text("type").into(),
        format: text("format").into(),
        description: text("description").into(),
        priority: definition["priority"].as_i64().unwrap_or(0),
        value: Cell::Path(Path::parse(&text("jsonPath")).unwrap_or_else(Path::nowhere)),
    }
}

/// What a `JSONPath` found, as the type the column promises; nothing where it is of another.
fn typed(value: &Value, r#type: &str, now: Timestamp) -> Value {
    match (r#type, value) {
        ("string", Value::Null) => Value::Null,
        ("string", value) => cells::printed(value).into(),
        ("integer", Value::Number(number)) => {
            #[expect(clippy::cast_possible_truncation, reason = "an integer column shows integers")]
            let whole = || number.as_f64().map(|f| f as i64);
            number.as_i64().or_else(whole).map_or(Value::Null, Value::from)
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) => duration::since(time, now).into(),
        _ => Value::Null,
    }
}

fn shown(object: &Value, form: TableForm) -> Option<Value> {
    match form.include {
        IncludeObject::None => None,
        IncludeObject::Object => Some(object.clone()),
        IncludeObject::Metadata => Some(json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": form.api_version,
            "metadata": object["metadata"],
        })),
    }
}

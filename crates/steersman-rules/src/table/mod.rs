//! `kubectl get`: objects as rows of a table (`meta.k8s.io/v1` Table).
//!
//! A kind has [`Column`]s; a column knows how to read or compute its [`Cell`]. The columns of
//! built-in kinds stand with the rest of what is said of them, in [`crate::kinds`]; those of custom
//! resources come from their definition and are read by [`path`]. kubectl prints cells as they come, so
//! ages are already words here. The clock is an argument.

pub(crate) mod cells;
mod descriptions;
pub(crate) mod duration;
mod path;
pub(crate) mod template;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub use self::duration::human as human_duration;
pub use self::path::Path;
use crate::metadata::MetaVersion;
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
    pub description: Description,
    /// Zero is always shown, more only with `-o wide`.
    pub priority: i64,
    /// Whether the column is told of; Kubernetes forgets one.
    pub announced: bool,
    /// Whether rows are in the order of the numbers in this column.
    pub ranks: bool,
    /// Where the value comes from.
    pub value: Cell,
}

/// What a column shows.
#[derive(Clone, Debug)]
pub enum Description {
    /// In the words of a definition.
    Told(Text),
    /// In the words that Kubernetes has for the column of that name.
    Documented {
        /// The API group of the kind.
        group: &'static str,
        /// The kind.
        kind: &'static str,
    },
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

/// The columns of a `Scale`, whatever it is the scale of.
pub fn scale_columns() -> Arc<[Column]> {
    let description = Description::Documented { group: "autoscaling", kind: "Scale" };
    let columns = [
        Column::field("Name", "metadata.name", ""),
        Column::number("Desired", "spec.replicas"),
        Column::number("Available", "status.replicas"),
        age(),
    ];
    columns
        .into_iter()
        .map(|column| Column { description: description.clone(), ..column })
        .collect()
}

/// The columns of a custom resource, from its `additionalPrinterColumns`; without any, its age.
/// They end before the first whose path is not understood.
pub fn columns_from_crd(columns: &Value) -> Arc<[Column]> {
    match columns.as_array() {
        Some(columns) if !columns.is_empty() => columns.iter().map_while(custom).collect(),
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
        let conditions = row_conditions(object).map(|c| ("conditions".to_owned(), c));
        let cells = [("cells".to_owned(), Value::Array(cells))].into_iter().chain(conditions);
        Value::Object(cells.chain([("object".to_owned(), shown(object, form).into())]).collect())
    };
    let announced = || columns.iter().filter(|column| column.announced);
    let definitions = || announced().map(Column::definition).collect::<Value>();
    Value::Object(Map::from_iter([
        ("kind".to_owned(), "Table".into()),
        ("apiVersion".to_owned(), form.api_version.into()),
        ("metadata".to_owned(), list_metadata),
        ("columnDefinitions".to_owned(), form.headers.then(definitions).into()),
        ("rows".to_owned(), ranked(&columns, objects, now).into_iter().map(row).collect()),
    ]))
}

/// What is to be said of the row of an object besides its cells: that a pod is done.
fn row_conditions(object: &Value) -> Option<Value> {
    if object["kind"] != "Pod" || object["apiVersion"] != "v1" {
        return None;
    }
    let phase = cells::text(&object["status"]["phase"]);
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    let condition = json!({
        "type": "Completed", "status": "True", "reason": phase, "message": message,
    });
    Some(Value::Array(vec![condition]))
}

impl Column {
    pub(crate) fn new(name: &'static str, r#type: &'static str, value: Cell) -> Self {
        Self {
            name: name.into(),
            r#type: r#type.into(),
            format: "".into(),
            description: Description::Documented { group: "", kind: "" },
            priority: 0,
            announced: true,
            ranks: false,
            value,
        }
    }

    /// Text that code makes.
    pub(crate) fn text(name: &'static str, value: fn(&Value, Timestamp) -> Value) -> Self {
        Self::new(name, "string", Cell::Computed(value))
    }

    /// Text that stands in a field.
    pub(crate) fn field(name: &'static str, path: &'static str, absent: &'static str) -> Self {
        Self::new(name, "string", Cell::Field(path, absent))
    }

    /// A number that stands in a field; zero where it is absent.
    pub(crate) fn number(name: &'static str, path: &'static str) -> Self {
        Self::new(name, "integer", Cell::Number(path))
    }

    /// A number that code counts.
    pub(crate) fn count(name: &'static str, value: fn(&Value, Timestamp) -> Value) -> Self {
        Self::new(name, "integer", Cell::Computed(value))
    }

    /// A switch that stands in a field; off where it is absent.
    pub(crate) fn switch(name: &'static str, path: &'static str) -> Self {
        Self::new(name, "boolean", Cell::Switch(path, false))
    }

    /// Announced as text although it is none, as Kubernetes announces some.
    pub(crate) fn called_text(self) -> Self {
        Self { r#type: "string".into(), ..self }
    }

    /// Shown only with `-o wide`.
    pub(crate) fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// Shown in rows although no column is announced.
    pub(crate) fn unannounced(self) -> Self {
        Self { announced: false, ..self }
    }

    /// The column by which rows are sorted.
    pub(crate) fn ranking(self) -> Self {
        Self { ranks: true, ..self }
    }

    /// Announced as the name of the object.
    pub(crate) fn called_name(self) -> Self {
        Self { format: "name".into(), ..self }
    }

    /// Whether a built-in kind shows the name of its objects here. What definitions of custom
    /// resources call so is something else.
    fn is_own_name(&self) -> bool {
        self.name == "Name" && matches!(self.description, Description::Documented { .. })
    }

    fn definition(&self) -> Value {
        let description = match &self.description {
            Description::Told(words) => words,
            Description::Documented { group, kind } => descriptions::of(group, kind, &self.name),
        };
        json!({
            "name": self.name,
            "type": self.r#type,
            "format": self.format,
            "description": description,
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

/// The objects in the order of their rows.
fn ranked<'a>(columns: &[Column], objects: &'a [Value], now: Timestamp) -> Vec<&'a Value> {
    let mut objects: Vec<_> = objects.iter().collect();
    if let Some(column) = columns.iter().find(|column| column.ranks) {
        objects.sort_by_key(|object| column.cell(object, now).as_i64());
    }
    objects
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, key| &value[key])
}

/// The name comes first, unless the kind has its own idea of where (events have).
fn all_columns(columns: &[Column]) -> Vec<Column> {
    let own_name = columns.iter().any(Column::is_own_name);
    let mut all = if own_name { Vec::new() } else { vec![name()] };
    all.extend_from_slice(columns);
    all
}

pub(crate) fn name() -> Column {
    Column::field("Name", "metadata.name", "").called_name()
}

pub(crate) fn age() -> Column {
    Column::text("Age", duration::age)
}

pub(crate) fn created_at() -> Column {
    let column = Column::field("Created At", "metadata.creationTimestamp", "");
    Column { r#type: "date".into(), ..column }
}

fn custom(definition: &Value) -> Option<Column> {
    let text = |key: &str| definition[key].as_str().unwrap_or_default().to_owned();
    let words = match text("description") {
        words if words.is_empty() => {
            format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath"))
        }
        words => words,
    };
    Some(Column {
        name: text("name").into(),
        r#type: text("type").into(),
        format: text("format").into(),
        description: Description::Told(words.into()),
        priority: definition["priority"].as_i64().unwrap_or(0),
        announced: true,
        ranks: false,
        value: Cell::Path(Path::parse(&text("jsonPath"))?),
    })
}

/// What a `JSONPath` found, as the type the column promises; nothing where it is of another.
fn typed(value: &Value, r#type: &str, now: Timestamp) -> Value {
    match (r#type, value) {
        ("string", value) => cells::as_go_prints(value).into(),
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

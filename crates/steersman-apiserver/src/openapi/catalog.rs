//! The parts of all documents: of built-in kinds once per process, of custom resources as they
//! come and go.
//!
//! A part is made when a document with it is first asked for. A changed definition replaces the
//! parts of its versions only; everything else is reused.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Map, Value};
use steersman_rules::kinds;
use steersman_rules::resource::Resource;

use super::part::Part;
use super::paths::{self, PathItem, Paths};
use super::{Dialect, Form, custom, definitions, gnostic};
use crate::document::Stored;
use crate::registry::Table;
use crate::state::Server;
use crate::status::{Result, Status};

/// The parts of all built-in kinds, in one form.
#[derive(Debug)]
pub(super) struct Builtin {
    pub(super) definitions: BTreeMap<String, Part>,
    /// By the name of the document that has them, such as `apis/apps/v1`.
    pub(super) paths: BTreeMap<String, Part>,
}

/// By form; what is built in is the same for all servers of a process.
static PARTS: [OnceLock<Builtin>; 3] = [const { OnceLock::new() }; 3];

/// The parts of one version of a custom resource, in one form.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) definitions: Vec<(String, Part)>,
    pub(super) paths: Part,
}

/// What custom resources add, as far as it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Published {
    sections: Mutex<HashMap<(String, Form), Entry>>,
}

/// A section with the resource that it describes; another one of the same name makes it stale.
#[derive(Debug)]
struct Entry {
    resource: Arc<Resource>,
    section: Arc<Section>,
}

/// The name of a group-version's document: `api/v1` or `apis/apps/v1`.
pub(super) fn document_name(resource: &Resource) -> String {
    paths::base(&resource.group, &resource.version)[1..].to_owned()
}

impl Builtin {
    /// The parts in this form. The first call takes a moment.
    pub(super) fn of(form: Form) -> &'static Self {
        PARTS[form as usize].get_or_init(|| Self::render(form))
    }

    /// Like [`Self::of`], without holding up other requests.
    pub(super) async fn ready(form: Form) -> Result<&'static Self> {
        if let Some(parts) = PARTS[form as usize].get() {
            return Ok(parts);
        }
        let rendering = tokio::task::spawn_blocking(move || Self::of(form));
        rendering.await.map_err(|error| Status::internal(&error.to_string()))
    }

    fn render(form: Form) -> Self {
        let definitions = definitions::all(form.dialect())
            .map(|(name, schema)| (name.clone(), form.definition(&name, schema)))
            .collect();
        let paths = builtin_paths(form.dialect());
        let paths = paths.into_iter().map(|(name, items)| (name, form.paths(items))).collect();
        Self { definitions, paths }
    }
}

/// The paths of every document that has any.
fn builtin_paths(dialect: Dialect) -> BTreeMap<String, Vec<PathItem>> {
    let mut documents: BTreeMap<String, Vec<PathItem>> = BTreeMap::new();
    for (name, item) in paths::roots(dialect) {
        documents.insert(name.to_owned(), vec![item]);
    }
    for resource in &kinds::all_and(|_| true) {
        let Resource { group, version, .. } = resource;
        if !group.is_empty() {
            let name = format!("apis/{group}");
            documents.entry(name).or_insert_with(|| vec![paths::group(dialect, group)]);
        }
        let items = documents.entry(document_name(resource));
        let items = items.or_insert_with(|| vec![paths::group_version(dialect, group, version)]);
        items.extend(Paths { dialect, resource, custom: false }.all());
    }
    documents
}

impl Published {
    /// The parts of the custom resources among these, by the names of their documents; of one
    /// document or of all.
    pub(super) async fn sections(
        &self,
        server: &Server,
        table: &Table,
        form: Form,
        only: Option<&str>,
    ) -> Result<Vec<(String, Arc<Section>)>> {
        let mut sections = Vec::new();
        let mut rendered = false;
        // The definition of the last resource: a definition of thousands of versions is read once.
        let mut last = Last::default();
        for resource in table.resources().filter(|resource| resource.is_custom()) {
            let name = document_name(resource);
            if only.is_some_and(|only| only != name) {
                continue;
            }
            let key = (format!("{}/{}", resource.qualified(), resource.version), form);
            let section = match self.known(&key, resource) {
                Some(section) => section,
                None => {
                    rendered = true;
                    let versions = last.versions(server, resource).await?;
                    self.render(key, resource, versions).await?
                }
            };
            sections.push((name, section));
        }
        if rendered {
            self.lock().retain(|_, entry| entry.is_served(table));
        }
        Ok(sections)
    }

    /// Makes a section, without holding up other requests.
    async fn render(
        &self,
        key: (String, Form),
        resource: &Arc<Resource>,
        versions: &Versions,
    ) -> Result<Arc<Section>> {
        let form = key.1;
        let version = versions.by_name.get(&*resource.version).cloned().unwrap_or_default();
        let open = versions.open;
        let described = Arc::clone(resource);
        let rendering =
            tokio::task::spawn_blocking(move || Section::render(form, &described, &version, open));
        let section = rendering.await.map_err(|error| Status::internal(&error.to_string()))?;
        let section = Arc::new(section);
        let entry = Entry { resource: Arc::clone(resource), section: Arc::clone(&section) };
        self.lock().insert(key, entry);
        Ok(section)
    }

    /// How many sections are kept.
    #[cfg(test)]
    pub(super) fn rendered(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Form), Entry>> {
        self.sections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, key: &(String, Form), resource: &Arc<Resource>) -> Option<Arc<Section>> {
        let sections = self.lock();
        let entry = sections.get(key).filter(|entry| Arc::ptr_eq(&entry.resource, resource))?;
        Some(Arc::clone(&entry.section))
    }
}

impl Entry {
    fn is_served(&self, table: &Table) -> bool {
        let Resource { group, version, plural, .. } = &*self.resource;
        table.get(group, version, plural).is_some_and(|now| Arc::ptr_eq(now, &self.resource))
    }
}

/// The versions of a definition, as it is stored.
#[derive(Default)]
struct Versions {
    by_name: HashMap<String, Arc<Value>>,
    /// Whether unknown fields stay in all of them.
    open: bool,
}

/// The definition that was read last.
#[derive(Default)]
struct Last {
    name: String,
    versions: Versions,
}

impl Last {
    /// The versions of a resource's definition.
    async fn versions(&mut self, server: &Server, resource: &Resource) -> Result<&Versions> {
        let name = resource.qualified();
        if self.name != name {
            let mut definition = read(server, resource).await?;
            let spec = &mut definition["spec"];
            let open = spec["preserveUnknownFields"] == true;
            let all = match spec["versions"].take() {
                Value::Array(all) => all,
                // It has gone this moment.
                _ => Vec::new(),
            };
            let name_of = |version: &Value| version["name"].as_str().unwrap_or("").to_owned();
            let by_name = all.into_iter().map(|version| (name_of(&version), Arc::new(version)));
            *self = Self { name, versions: Versions { by_name: by_name.collect(), open } };
        }
        Ok(&self.versions)
    }
}

/// The definition as it is stored: what the server keeps of it in memory lacks the descriptions.
async fn read(server: &Server, resource: &Resource) -> Result<Value> {
    let folder = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
    let entry = server.get(&format!("{folder}{}", resource.qualified())).await?;
    entry.map_or(Ok(Value::Null), |entry| Stored::from(&entry).decode("apiextensions.k8s.io/v1"))
}

impl Section {
    fn render(form: Form, resource: &Resource, version: &Value, open: bool) -> Self {
        let dialect = form.dialect();
        let definitions = custom::definitions(dialect, resource, version, open);
        let definitions = definitions.map(|(name, schema)| {
            let part = form.definition(&name, schema);
            (name, part)
        });
        let paths = form.paths(Paths { dialect, resource, custom: true }.all());
        Self { definitions: definitions.into(), paths }
    }
}

impl Form {
    /// A definition as a part.
    pub(super) fn definition(self, name: &str, schema: Value) -> Part {
        let references = references(&schema);
        let bytes = match self {
            Self::V2Protobuf => gnostic::encode(&gnostic::single("definitions", name, schema)),
            Self::V2 | Self::V3 => entry(name, &schema),
        };
        Part::new(&bytes, references)
    }

    /// Paths as a part.
    pub(super) fn paths(self, items: Vec<PathItem>) -> Part {
        let items: Map<String, Value> = items.into_iter().collect();
        let references = items.values().flat_map(references).collect();
        let bytes = match self {
            Self::V2Protobuf => {
                let paths = Map::from_iter([("paths".to_owned(), Value::Object(items))]);
                gnostic::encode(&paths.into())
            }
            Self::V2 | Self::V3 => {
                let entries: Vec<Vec<u8>> =
                    items.iter().map(|(path, item)| entry(path, item)).collect();
                entries.join(b",".as_slice())
            }
        };
        Part::new(&bytes, references)
    }
}

/// The names of the definitions that a value refers to.
fn references(value: &Value) -> Box<[Box<str>]> {
    let mut found = BTreeSet::new();
    refer(value, &mut found);
    found.into_iter().map(Box::from).collect()
}

/// `"name":{…}`
fn entry(name: &str, value: &Value) -> Vec<u8> {
    format!("{}:{value}", Value::from(name)).into_bytes()
}

fn refer<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(to) if key == "$ref" && !to.contains("/parameters/") => {
                        found.insert(super::names::referred(to));
                    }
                    _ => refer(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| refer(item, found)),
        _ => {}
    }
}

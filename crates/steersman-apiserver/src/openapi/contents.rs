//! The documents of a moment, put together from their parts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};
use steersman_rules::kinds;

use super::catalog::{Builtin, Section, document_name};
use super::part::{Document, Part};
use super::{Asked, Form, gnostic, parameters};
use crate::aggregation::learn;
use crate::registry::Table;
use crate::state::remotes::{OpenApi, Told};
use crate::status::Result;

/// The version of Kubernetes whose API this is.
const VERSION: &str = "v1.36.0";

/// Everything that is published at one moment, in one form.
pub(super) struct Contents {
    pub(super) builtin: &'static Builtin,
    /// Of custom resources, with the names of their documents.
    sections: Vec<(String, Arc<Section>)>,
    /// Where the sections of a document are.
    places: HashMap<String, Vec<usize>>,
    /// The documents of version 3 that servers elsewhere have told, by name.
    elsewhere: BTreeMap<String, OpenApi>,
    /// What servers elsewhere add to the document of version 2: paths and definitions.
    added: Vec<Part>,
    added_definitions: Vec<Part>,
    /// Whether built-in kinds are served; a server that extends another only refers to them.
    whole: bool,
    /// The documents of built-in kinds that are served on request only, and were not asked for.
    hidden: BTreeSet<String>,
}

impl Asked<'_> {
    /// Everything that is published now, in one form.
    pub(super) async fn contents(&self, form: Form) -> Result<Contents> {
        self.contents_for(form, None).await
    }

    /// The same; of custom resources only what one document needs, if only that is asked for.
    pub(super) async fn contents_for(&self, form: Form, only: Option<&str>) -> Result<Contents> {
        let builtin = Builtin::ready(form).await?;
        let table = self.server.registry.table();
        let sections = self.published.sections(self.server, &table, form, only).await?;
        learn::ask_residents(self.server, form != Form::V3).await;
        let remotes = self.server.remotes.table();
        let told = remotes.values().filter_map(|remote| {
            let told = remote.told().openapi.clone()?;
            Some((remote.base()[1..].to_owned(), told))
        });
        let mut contents = Contents::new(builtin, sections);
        if form != Form::V3 {
            remotes.values().for_each(|remote| contents.add(form, &remote.told()));
        }
        let whole = table.resources().any(|resource| !resource.is_custom());
        let hidden = if whole { hidden(&table) } else { BTreeSet::new() };
        Ok(Contents { elsewhere: told.collect(), whole, hidden, ..contents })
    }
}

impl Contents {
    pub(super) fn new(builtin: &'static Builtin, sections: Vec<(String, Arc<Section>)>) -> Self {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, (name, _)) in sections.iter().enumerate() {
            places.entry(name.clone()).or_default().push(place);
        }
        Self {
            builtin,
            sections,
            places,
            elsewhere: BTreeMap::new(),
            added: Vec::new(),
            added_definitions: Vec::new(),
            whole: true,
            hidden: BTreeSet::new(),
        }
    }

    /// Adds what a server elsewhere told to the document of version 2. A definition that is there
    /// already is taken to be the same.
    fn add(&mut self, form: Form, told: &Told) {
        let Some(told) = told.openapi_v2.as_ref().filter(|told| !told.paths.is_empty()) else {
            return;
        };
        let mut known: BTreeSet<&str> =
            self.builtin.definitions.keys().map(String::as_str).collect();
        let custom = self.sections.iter().flat_map(|(_, section)| &section.definitions);
        known.extend(custom.map(|(name, _)| name.as_str()));
        for (name, schema) in told.definitions.iter().filter(|(name, _)| !known.contains(&***name))
        {
            self.added_definitions.push(form.definition(name, schema.clone()));
        }
        let paths = told.paths.iter().map(|(path, item)| (path.clone(), item.clone()));
        self.added.push(form.paths(paths.collect()));
    }

    /// The names of the documents of version 3.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let custom = self.sections.iter().map(|(name, _)| name);
        let builtin = self.own_paths().map(|(name, _)| name);
        builtin.chain(custom).chain(self.elsewhere.keys()).cloned().collect()
    }

    /// The document of that name.
    pub(super) fn v3(&self, name: &str) -> Document<'_> {
        if let Some(told) = self.elsewhere.get(name) {
            let mut document = Document::default();
            document.plain(&told.document[..]);
            return document;
        }
        let places = self.places.get(name).into_iter().flatten();
        let sections: Vec<&Section> = places.map(|place| &*self.sections[*place].1).collect();
        let is_served = self.whole && !self.hidden.contains(name);
        let builtin = self.builtin.paths.get(name).filter(|_| is_served);
        let own = sections.iter().map(|section| &section.paths);
        let paths: Vec<&Part> = builtin.into_iter().chain(own).collect();
        let own = sections.iter().flat_map(|section| &section.definitions);
        let own = own.map(|(name, part)| (name.as_str(), part)).collect();
        let definitions = reachable(&paths, &own, &self.builtin.definitions);
        let mut document = Document::default();
        let info = match builtin {
            Some(_) => json!({"title": "Kubernetes", "version": VERSION}),
            None => json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
        };
        document.plain(format!(r#"{{"openapi":"3.0.0","info":{info},"paths":{{"#).into_bytes());
        document.parts(paths);
        document.plain(br#"},"components":{"schemas":{"#.as_slice());
        document.parts(definitions);
        let security = json!({"BearerToken": bearer_token()});
        document.plain(format!(r#"}},"securitySchemes":{security}}}}}"#).into_bytes());
        document
    }

    /// The one document of version 2.
    pub(super) fn v2(&self) -> Document<'_> {
        let mut document = Document::default();
        let mut head = v2_head().to_string();
        head.pop();
        document.plain((head + r#","paths":{"#).into_bytes());
        document.parts(self.paths());
        document.plain(br#"},"definitions":{"#.as_slice());
        document.parts(self.definitions().chain(&self.added_definitions));
        document.plain(b"}}".as_slice());
        document
    }

    pub(super) fn v2_protobuf(&self) -> Document<'_> {
        let mut document = Document::default();
        document.plain(gnostic::encode(&v2_head()));
        for part in self.paths().chain(self.definitions()).chain(&self.added_definitions) {
            document.part(part);
        }
        document
    }

    /// The paths of built-in kinds that are served, with the names of their documents.
    fn own_paths(&self) -> impl Iterator<Item = (&String, &Part)> {
        let served = |name: &String| self.whole && !self.hidden.contains(name);
        self.builtin.paths.iter().filter(move |(name, _)| served(name))
    }

    /// The definitions of built-in kinds that only what is hidden needs.
    fn needless(&self) -> BTreeSet<&str> {
        let hidden = self.hidden.iter().filter_map(|name| self.builtin.paths.get(name));
        let hidden: Vec<&Part> = hidden.collect();
        if hidden.is_empty() {
            return BTreeSet::new();
        }
        let none = BTreeMap::new();
        let shown: Vec<&Part> = self.own_paths().map(|(_, part)| part).collect();
        let needed = reached(&shown, &none, &self.builtin.definitions);
        let needless = reached(&hidden, &none, &self.builtin.definitions).into_keys();
        needless.filter(|name| !needed.contains_key(name)).collect()
    }

    /// All paths.
    fn paths(&self) -> impl Iterator<Item = &Part> {
        let custom = self.sections.iter().map(|(_, section)| &section.paths);
        self.own_paths().map(|(_, part)| part).chain(custom).chain(&self.added)
    }

    fn definitions(&self) -> impl Iterator<Item = &Part> {
        let custom = self.sections.iter().flat_map(|(_, section)| &section.definitions);
        let needless = self.needless();
        let builtin = self.builtin.definitions.iter();
        let builtin = builtin.filter(move |(name, _)| !needless.contains(name.as_str()));
        builtin.map(|(_, part)| part).chain(custom.map(|(_, part)| part))
    }
}

/// What a version 2 document says before its paths and definitions.
fn v2_head() -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "parameters": parameters::shared_definitions(),
        "security": [{"BearerToken": []}],
        "securityDefinitions": {"BearerToken": bearer_token()},
    })
}

fn bearer_token() -> Value {
    let text = "Bearer Token authentication";
    json!({"description": text, "in": "header", "name": "authorization", "type": "apiKey"})
}

/// The definitions that paths need, whether directly or through others.
fn reachable<'a>(
    paths: &[&'a Part],
    own: &BTreeMap<&'a str, &'a Part>,
    builtin: &'a BTreeMap<String, Part>,
) -> Vec<&'a Part> {
    reached(paths, own, builtin).into_values().collect()
}

/// The same by their names.
fn reached<'a>(
    paths: &[&'a Part],
    own: &BTreeMap<&'a str, &'a Part>,
    builtin: &'a BTreeMap<String, Part>,
) -> BTreeMap<&'a str, &'a Part> {
    let mut found: BTreeMap<&str, &Part> = BTreeMap::new();
    let mut open: Vec<&Part> = paths.to_vec();
    while let Some(part) = open.pop() {
        for name in &part.references {
            let known = own.get(&**name).copied().or_else(|| builtin.get(&**name));
            if let Some(definition) = known
                && found.insert(name, definition).is_none()
            {
                open.push(definition);
            }
        }
    }
    found
}

/// The documents of kinds that are served on request only, and are not in this table.
fn hidden(table: &Table) -> BTreeSet<String> {
    let mut hidden = BTreeSet::new();
    for resource in kinds::on_request() {
        if !table.serves(&resource.group, &resource.version) {
            hidden.insert(document_name(&resource));
        }
        if table.builtin_in_group(&resource.group).next().is_none() {
            hidden.insert(format!("apis/{}", resource.group));
        }
    }
    hidden
}

//! The documents of a moment, put together from their parts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Value, json};

use super::catalog::{Builtin, Section};
use super::part::{Document, Part};
use super::{Asked, Form, gnostic, parameters};
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
}

impl Asked<'_> {
    /// Everything that is published now, in one form.
    pub(super) async fn contents(&self, form: Form) -> Result<Contents> {
        let builtin = Builtin::ready(form).await?;
        let table = self.server.registry.table();
        let sections = self.published.sections(self.server, &table, form).await?;
        Ok(Contents::new(builtin, sections))
    }
}

impl Contents {
    pub(super) fn new(builtin: &'static Builtin, sections: Vec<(String, Arc<Section>)>) -> Self {
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, (name, _)) in sections.iter().enumerate() {
            places.entry(name.clone()).or_default().push(place);
        }
        Self { builtin, sections, places }
    }

    /// The names of the documents of version 3.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let custom = self.sections.iter().map(|(name, _)| name);
        self.builtin.paths.keys().chain(custom).cloned().collect()
    }

    /// The document of that name.
    pub(super) fn v3(&self, name: &str) -> Document<'_> {
        let places = self.places.get(name).into_iter().flatten();
        let sections: Vec<&Section> = places.map(|place| &*self.sections[*place].1).collect();
        let builtin = self.builtin.paths.get(name);
        let listing = sections.first().filter(|_| builtin.is_none()).map(|first| &first.listing);
        let own = sections.iter().map(|section| &section.paths);
        let paths: Vec<&Part> = builtin.into_iter().chain(listing).chain(own).collect();
        let own = sections.iter().flat_map(|section| &section.definitions);
        let own = own.map(|(name, part)| (name.as_str(), part)).collect();
        let definitions = reachable(&paths, &own, &self.builtin.definitions);
        let mut document = Document::default();
        let info = json!({"title": "Kubernetes", "version": VERSION});
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
        document.parts(self.paths().map(|(_, part)| part));
        document.plain(br#"},"definitions":{"#.as_slice());
        document.parts(self.definitions());
        document.plain(b"}}".as_slice());
        document
    }

    pub(super) fn v2_protobuf(&self) -> Document<'_> {
        let mut document = Document::default();
        document.plain(gnostic::encode(&v2_head()));
        for part in self.paths().map(|(_, part)| part).chain(self.definitions()) {
            document.part(part);
        }
        document
    }

    /// All paths, with the names of their documents.
    fn paths(&self) -> impl Iterator<Item = (&str, &Part)> {
        let mut listed: BTreeSet<&str> = self.builtin.paths.keys().map(String::as_str).collect();
        let custom = self.sections.iter().flat_map(move |(name, section)| {
            let listing = listed.insert(name).then_some(&section.listing);
            listing.into_iter().chain([&section.paths]).map(|part| (name.as_str(), part))
        });
        self.builtin.paths.iter().map(|(name, part)| (name.as_str(), part)).chain(custom)
    }

    fn definitions(&self) -> impl Iterator<Item = &Part> {
        let custom = self.sections.iter().flat_map(|(_, section)| &section.definitions);
        self.builtin.definitions.values().chain(custom.map(|(_, part)| part))
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
    found.into_values().collect()
}

//! `AdmissionConfiguration` of `apiserver.config.k8s.io`: what plug-ins are told beside being on.
//!
//! Each plug-in reads its own part, in [`read`]'s way: a document of a kind that it knows, in which
//! nothing may stand that it does not know.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use steersman_rules::field::FieldError;

const VERSIONS: [&str; 2] = ["apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1alpha1"];
const KIND: &str = "AdmissionConfiguration";

/// What plug-ins are told, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmissionConfiguration {
    plugins: BTreeMap<String, Value>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AdmissionConfigurationError {
    /// A file cannot be read.
    #[error("unable to read admission control configuration from {path:?} [{reason}]")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It is not a document of the kind.
    #[error("not an {KIND}: {0}")]
    Malformed(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    #[serde(default)]
    plugins: Vec<PluginDocument>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginDocument {
    name: String,
    #[serde(default)]
    path: String,
    configuration: Option<Value>,
}

impl AdmissionConfiguration {
    /// Reads a file, as `--admission-control-config-file` of kube-apiserver. Paths in it start at
    /// its folder.
    ///
    /// # Errors
    ///
    /// If the file, or one that it names, cannot be read or is something else.
    pub fn read(path: &Path) -> Result<Self, AdmissionConfigurationError> {
        Self::parse(&text_of(path)?, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads a configuration whose paths start at a folder.
    ///
    /// # Errors
    ///
    /// If it, or a file that it names, cannot be read or is something else.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, AdmissionConfigurationError> {
        let document: Document = yaml(text)?;
        let Document { api_version, kind, plugins } = document;
        if kind != KIND || !VERSIONS.contains(&api_version.as_str()) {
            let known = VERSIONS.join(" and ");
            let text = format!("it is {api_version:?}, {kind:?}; known are {known}, {KIND}");
            return Err(AdmissionConfigurationError::Malformed(text));
        }
        let mut all = BTreeMap::new();
        for PluginDocument { name, path, configuration } in plugins {
            let configuration = match configuration {
                Some(configuration) => configuration,
                None if path.is_empty() => continue,
                None => yaml(&text_of(&folder.join(path))?)?,
            };
            // The first one counts.
            all.entry(name).or_insert(configuration);
        }
        Ok(Self { plugins: all })
    }

    /// What a plug-in is told, if anything.
    pub(super) fn of(&self, name: &str) -> Option<&Value> {
        self.plugins.get(name)
    }
}

fn text_of(path: &Path) -> Result<String, AdmissionConfigurationError> {
    fs::read_to_string(path).map_err(|error| AdmissionConfigurationError::Read {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

fn yaml<T: DeserializeOwned>(text: &str) -> Result<T, AdmissionConfigurationError> {
    serde_saphyr::from_str(text)
        .map_err(|error| AdmissionConfigurationError::Malformed(error.to_string()))
}

/// Reads what a plug-in is told, if that is of a kind, by version and name, that it knows.
pub(super) fn read<T: DeserializeOwned>(
    configuration: &Value,
    kinds: &[(&str, &str)],
) -> Result<T, String> {
    let mut document = configuration.clone();
    let fields = document.as_object_mut().ok_or("expected an object")?;
    let [version, kind] =
        ["apiVersion", "kind"].map(|name| fields.remove(name).unwrap_or_default());
    if !kinds.iter().any(|(known, name)| version == *known && kind == *name) {
        let known: Vec<String> = kinds.iter().map(|(at, kind)| format!("{at}, {kind}")).collect();
        return Err(format!(
            "no kind {kind} is known for version {version}; known are {}",
            known.join(" and ")
        ));
    }
    serde_json::from_value(document).map_err(|error| format!("strict decoding error: {error}"))
}

/// Fails with all mistakes, if there are any.
pub(super) fn sound(mistakes: &[FieldError]) -> Result<(), String> {
    let texts: Vec<String> = mistakes.iter().map(FieldError::message).collect();
    match texts.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

//! The environment of a container, and its command with `$(VARIABLES)` filled in.
//!
//! [`environment`] is a pure function: objects and Services are read before, see
//! [`Objects`]. What it refuses is the message of a container that waits
//! with the reason `CreateContainerConfigError`. [`command`] then fills in what it returned.
//!
//! Later sources go before earlier ones: Services, `envFrom` in order, `env` in order. A name is
//! taken as it is, also from the keys of a `ConfigMap`, since environments may have any name.

mod expansion;
mod file;
mod services;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapKeySelector, Container, EnvFromSource, EnvVarSource, FileKeySelector, Pod,
    Secret, SecretKeySelector, Service,
};

use crate::downward::{Addresses, Defaults, FieldError, ResourceError, field, resource};
use crate::objects::{Objects, Unavailable};

use expansion::expand;

/// Variables by name. Values are bytes because those of Secrets are.
pub(crate) type Environment = BTreeMap<String, Vec<u8>>;

/// What the environment of a container is made of.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    pub(crate) objects: &'a Objects,
    /// All Services of the cluster, or at least those of the Pod's namespace and of `default`.
    pub(crate) services: &'a [Arc<Service>],
    pub(crate) addresses: Addresses<'a>,
    pub(crate) defaults: Defaults<'a>,
    /// Reads a file of a volume; see [`VolumeFile`].
    pub(crate) files: &'a dyn Fn(&str, &str) -> Option<VolumeFile>,
}

/// A file of one of the Pod's volumes, or nothing if no such volume is mounted.
pub(crate) struct VolumeFile {
    /// Where it is on the node.
    pub(crate) path: PathBuf,
    pub(crate) content: io::Result<String>,
}

/// Why a container has no environment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error(transparent)]
    Object(#[from] Unavailable),
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    Key { kind: &'static str, namespace: String, name: String, key: String },
    #[error("cannot find the volume {0:?} referenced by FileKeyRef")]
    Volume(String),
    #[error("couldn't parse env file")]
    File,
    #[error("environment variable key {key:?} not found in file {path:?}")]
    FileKey { key: String, path: PathBuf },
}

/// The variables of a container.
pub(crate) fn environment(inputs: &Inputs<'_>) -> Result<Environment, EnvironmentError> {
    let from_services = services::variables(inputs.pod, inputs.services);
    let mut own = Environment::new();
    for source in inputs.container.env_from.iter().flatten() {
        own.extend(inputs.all_of(source)?);
    }
    for variable in inputs.container.env.iter().flatten() {
        let written = variable.value.as_deref().unwrap_or_default();
        let value = match &variable.value_from {
            Some(source) if written.is_empty() => inputs.value_of(source)?,
            _ => Some(expand(written, |name| {
                own.get(name).or_else(|| from_services.get(name)).map(Vec::as_slice)
            })),
        };
        if let Some(value) = value {
            own.insert(variable.name.clone(), value);
        }
    }
    let mut all = from_services;
    all.extend(own);
    Ok(all)
}

/// What a container runs, with variables filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) command: Vec<String>,
    pub(crate) args: Vec<String>,
}

/// The command and the arguments of a container in its environment.
pub(crate) fn command(container: &Container, environment: &Environment) -> Command {
    let filled = |texts: &Option<Vec<String>>| {
        let text = |text: &String| expand_text(text, environment);
        texts.iter().flatten().map(text).collect()
    };
    Command { command: filled(&container.command), args: filled(&container.args) }
}

/// A text with variables filled in, as paths and commands have it.
pub(crate) fn expand_text(text: &str, environment: &Environment) -> String {
    let bytes = expand(text, |name| environment.get(name).map(Vec::as_slice));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The names of the variables that a text refers to.
pub(crate) fn expand_names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    expand(text, |name| {
        names.push(name.to_owned());
        None
    });
    names
}

impl Inputs<'_> {
    /// Everything that a `ConfigMap` or Secret has.
    fn all_of(&self, source: &EnvFromSource) -> Result<Environment, EnvironmentError> {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let named = |key: &String| format!("{prefix}{key}");
        if let Some(reference) = &source.config_map_ref {
            let found = self.objects.config_map(&reference.name);
            let data = unless(found, reference.optional)?.and_then(|it| it.data.as_ref());
            let bytes = |value: &String| value.clone().into_bytes();
            Ok(data.into_iter().flatten().map(|(k, v)| (named(k), bytes(v))).collect())
        } else if let Some(reference) = &source.secret_ref {
            let found = self.objects.secret(&reference.name);
            let data = unless(found, reference.optional)?.and_then(|it| it.data.as_ref());
            Ok(data.into_iter().flatten().map(|(k, v)| (named(k), v.0.clone())).collect())
        } else {
            Ok(Environment::new())
        }
    }

    /// The value from a source; none if an optional one is missing, and then the variable is not
    /// set at all.
    fn value_of(&self, source: &EnvVarSource) -> Result<Option<Vec<u8>>, EnvironmentError> {
        if let Some(selector) = &source.field_ref {
            return Ok(Some(field(selector, self.pod, self.addresses)?.into_bytes()));
        }
        if let Some(selector) = &source.resource_field_ref {
            let own = Some(self.container);
            return Ok(Some(resource(selector, self.pod, own, self.defaults)?.into_bytes()));
        }
        if let Some(selector) = &source.config_map_key_ref {
            return self.config_map_key(selector);
        }
        if let Some(selector) = &source.secret_key_ref {
            return self.secret_key(selector);
        }
        match &source.file_key_ref {
            Some(selector) => self.file_key(selector),
            None => Ok(Some(Vec::new())),
        }
    }

    fn config_map_key(
        &self,
        selector: &ConfigMapKeySelector,
    ) -> Result<Option<Vec<u8>>, EnvironmentError> {
        let ConfigMapKeySelector { name, key, optional } = selector;
        let found: Option<&ConfigMap> = unless(self.objects.config_map(name), *optional)?;
        let Some(found) = found else { return Ok(None) };
        let value = found.data.as_ref().and_then(|data| data.get(key));
        let value = value.map(|value| value.clone().into_bytes());
        self.key(value, *optional, ("ConfigMap", name, key))
    }

    fn secret_key(
        &self,
        selector: &SecretKeySelector,
    ) -> Result<Option<Vec<u8>>, EnvironmentError> {
        let SecretKeySelector { name, key, optional } = selector;
        let found: Option<&Secret> = unless(self.objects.secret(name), *optional)?;
        let Some(found) = found else { return Ok(None) };
        let value = found.data.as_ref().and_then(|data| data.get(key));
        self.key(value.map(|value| value.0.clone()), *optional, ("Secret", name, key))
    }

    /// A value that must be there, unless it is optional.
    fn key(
        &self,
        value: Option<Vec<u8>>,
        optional: Option<bool>,
        (kind, name, key): (&'static str, &str, &str),
    ) -> Result<Option<Vec<u8>>, EnvironmentError> {
        if value.is_some() || optional == Some(true) {
            return Ok(value);
        }
        let namespace = self.pod.metadata.namespace.clone().unwrap_or_default();
        Err(EnvironmentError::Key { kind, namespace, name: name.to_owned(), key: key.to_owned() })
    }

    fn file_key(&self, selector: &FileKeySelector) -> Result<Option<Vec<u8>>, EnvironmentError> {
        let FileKeySelector { key, optional, path, volume_name } = selector;
        let missing = || EnvironmentError::Volume(volume_name.clone());
        let file = (self.files)(volume_name, path).ok_or_else(missing)?;
        let content = file.content.map_err(|error| {
            tracing::warn!(path = ?file.path, %error, "cannot read an environment file");
            EnvironmentError::File
        })?;
        let value = file::value(&content, key).map_err(|error| {
            tracing::warn!(path = ?file.path, %error, "cannot understand an environment file");
            EnvironmentError::File
        })?;
        match value.filter(|value| !value.is_empty()) {
            Some(value) => Ok(Some(value.into_bytes())),
            None if *optional == Some(true) => Ok(None),
            None => Err(EnvironmentError::FileKey { key: key.clone(), path: file.path }),
        }
    }
}

/// What was found; nothing if what is optional does not exist.
fn unless<T>(
    found: Result<&T, Unavailable>,
    optional: Option<bool>,
) -> Result<Option<&T>, Unavailable> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() && optional == Some(true) => Ok(None),
        Err(error) => Err(error),
    }
}

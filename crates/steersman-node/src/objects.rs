//! The ConfigMaps and Secrets that a Pod refers to, as they were read before a decision.
//!
//! Whoever starts containers reads what [`References::of`] names, puts it into [`Objects`], and hands
//! that to `environment` and `volumes`, which then decide without asking anybody.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, EnvFromSource, EnvVar, Pod, Secret, Volume, VolumeProjection,
};

/// Why an object cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unavailable {
    /// There is none of this name.
    #[error("{kind} {name:?} not found")]
    NotFound {
        /// Its kind, as errors of the API name it.
        kind: &'static str,
        name: String,
    },
    /// It could not be read; said as the reader said it.
    #[error("{0}")]
    Unread(String),
}

impl Unavailable {
    /// Whether there is no such object, which is fine where it is optional.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

/// What was read of one kind, by name: the object, or why it could not be read.
type Read<T> = HashMap<String, Result<Arc<T>, String>>;

/// What was read for a Pod, all of its namespace. What is not in here does not exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) config_maps: Read<ConfigMap>,
    pub(crate) secrets: Read<Secret>,
}

impl Objects {
    /// The `ConfigMap` of this name.
    pub(crate) fn config_map(&self, name: &str) -> Result<&ConfigMap, Unavailable> {
        find(&self.config_maps, "configmap", name)
    }

    /// The Secret of this name.
    pub(crate) fn secret(&self, name: &str) -> Result<&Secret, Unavailable> {
        find(&self.secrets, "secret", name)
    }
}

fn find<'a, T>(read: &'a Read<T>, kind: &'static str, name: &str) -> Result<&'a T, Unavailable> {
    match read.get(name) {
        Some(Ok(object)) => Ok(object),
        Some(Err(why)) => Err(Unavailable::Unread(why.clone())),
        None => Err(Unavailable::NotFound { kind, name: name.to_owned() }),
    }
}

/// The names of the objects that a Pod refers to, for its environment and its volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct References {
    pub(crate) config_maps: BTreeSet<String>,
    pub(crate) secrets: BTreeSet<String>,
}

impl References {
    /// What a Pod refers to. Secrets to pull images with are not among it.
    pub(crate) fn of(pod: &Pod) -> Self {
        let mut found = Self::default();
        let Some(spec) = &pod.spec else { return found };
        let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
        for Container { env, env_from, .. } in containers {
            found.add_environment(env.as_deref(), env_from.as_deref());
        }
        for container in spec.ephemeral_containers.iter().flatten() {
            found.add_environment(container.env.as_deref(), container.env_from.as_deref());
        }
        for volume in spec.volumes.iter().flatten() {
            found.add_volume(volume);
        }
        found
    }

    fn add_environment(&mut self, env: Option<&[EnvVar]>, env_from: Option<&[EnvFromSource]>) {
        for source in env_from.into_iter().flatten() {
            self.config_maps.extend(source.config_map_ref.iter().map(|it| it.name.clone()));
            self.secrets.extend(source.secret_ref.iter().map(|it| it.name.clone()));
        }
        for source in env.into_iter().flatten().filter_map(|var| var.value_from.as_ref()) {
            self.config_maps.extend(source.config_map_key_ref.iter().map(|it| it.name.clone()));
            self.secrets.extend(source.secret_key_ref.iter().map(|it| it.name.clone()));
        }
    }

    fn add_volume(&mut self, volume: &Volume) {
        self.config_maps.extend(volume.config_map.iter().map(|it| it.name.clone()));
        self.secrets.extend(volume.secret.iter().filter_map(|it| it.secret_name.clone()));
        let sources = volume.projected.iter().filter_map(|it| it.sources.as_ref()).flatten();
        for VolumeProjection { config_map, secret, .. } in sources {
            self.config_maps.extend(config_map.iter().map(|it| it.name.clone()));
            self.secrets.extend(secret.iter().map(|it| it.name.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_pod_refers_to_what_its_containers_and_volumes_name() {
        let pod: Pod = from_value(json!({ "spec": {
            "initContainers": [{ "name": "i", "envFrom": [{ "configMapRef": { "name": "a" } }] }],
            "containers": [{
                "name": "c",
                "env": [
                    { "name": "K", "valueFrom": { "configMapKeyRef": { "name": "b", "key": "k" } } },
                    { "name": "S", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
                ],
            }],
            "ephemeralContainers": [{ "name": "e", "envFrom": [{ "secretRef": { "name": "t" } }] }],
            "volumes": [
                { "name": "1", "configMap": { "name": "c" } },
                { "name": "2", "secret": { "secretName": "u" } },
                { "name": "3", "projected": { "sources": [
                    { "configMap": { "name": "d" } }, { "secret": { "name": "v" } },
                ] } },
            ],
        } }))
        .unwrap();
        let found = References::of(&pod);
        let names = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(names(&found.config_maps), "a b c d");
        assert_eq!(names(&found.secrets), "s t u v");
    }

    #[test]
    fn what_was_not_read_does_not_exist_and_what_could_not_be_read_says_why() {
        let mut objects = Objects::default();
        let missing = objects.config_map("x").unwrap_err();
        assert_eq!(missing.to_string(), "configmap \"x\" not found");
        assert!(missing.is_not_found());
        assert_eq!(objects.secret("x").unwrap_err().to_string(), "secret \"x\" not found");
        objects.secrets.insert("x".into(), Err("the server is away".into()));
        let unread = objects.secret("x").unwrap_err();
        assert_eq!(unread.to_string(), "the server is away");
        assert!(!unread.is_not_found());
    }
}

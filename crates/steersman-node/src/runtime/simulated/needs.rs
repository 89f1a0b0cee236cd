//! Whether there is what a container is made of: the ConfigMaps and Secrets, and the keys in them, that
//! its Pod refers to and cannot do without.
//!
//! Nothing is made of them here, but a container that could never start is not to look as if it had. A
//! Pod that refers to none costs no request. Nor does the volume by which containers reach the API
//! server: many clusters run without the controller that publishes the certificate in it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use k8s_openapi::api::core::v1::{
    Container, EnvFromSource, EnvVar, Pod, PodSpec, ProjectedVolumeSource, Volume, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::downward::{Addresses, Defaults};
use crate::environment::{self, environment};
use crate::objects::{Objects, References};
use crate::runtime::StartError;
use crate::volumes::{self, Tokens, failed};

/// How the name of the volume begins by which containers reach the API server.
const API_ACCESS: &str = "kube-api-access-";
/// The `ConfigMap` in it.
const ROOT_CA: &str = "kube-root-ca.crt";

/// What a container and the volumes of its Pod cannot do without.
pub(super) struct Needs {
    /// A Pod that consists of nothing else.
    pod: Pod,
}

impl Needs {
    /// What the container of this name needs, if it is anything.
    pub(super) fn of(pod: &Pod, name: &str) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let volumes: Vec<Volume> =
            spec.volumes.iter().flatten().filter_map(needed_of_volume).collect();
        let (env, env_from) = variables(spec, name);
        let env: Vec<EnvVar> = env.iter().filter(|it| is_needed(it)).cloned().collect();
        let env_from: Vec<EnvFromSource> =
            env_from.iter().filter(|it| is_needed_whole(it)).cloned().collect();
        if volumes.is_empty() && env.is_empty() && env_from.is_empty() {
            return None;
        }
        let container = Container {
            name: name.to_owned(),
            env: Some(env),
            env_from: Some(env_from),
            ..Container::default()
        };
        let namespace = pod.metadata.namespace.clone();
        let metadata = ObjectMeta { namespace, ..ObjectMeta::default() };
        let (containers, volumes) = (vec![container], Some(volumes));
        let spec = PodSpec { containers, volumes, ..PodSpec::default() };
        Some(Self { pod: Pod { metadata, spec: Some(spec), status: None } })
    }

    /// The objects that it is in.
    pub(super) fn references(&self) -> References {
        References::of(&self.pod)
    }

    /// Whether the volumes of the Pod can be set up.
    pub(super) fn volumes(&self, objects: &Objects) -> Result<(), StartError> {
        let planned = volumes::plan(&volumes::Inputs {
            pod: &self.pod,
            directory: Path::new(""),
            objects,
            tokens: &Tokens::new(),
            allocatable: &BTreeMap::new(),
            persistent: &HashMap::new(),
        });
        for (name, planned) in planned {
            planned.map_err(|error| StartError::Volumes(failed(&name, &error)))?;
        }
        Ok(())
    }

    /// Whether the container can be told its variables.
    pub(super) fn environment(&self, objects: &Objects) -> Result<(), StartError> {
        let container = self.pod.spec.as_ref().and_then(|spec| spec.containers.first());
        let Some(container) = container else { return Ok(()) };
        let told = environment(&environment::Inputs {
            pod: &self.pod,
            container,
            objects,
            services: &[],
            addresses: Addresses::default(),
            defaults: Defaults { allocatable: &BTreeMap::new(), pod_limits: false },
            files: &|_, _| None,
        });
        told.map(drop).map_err(|error| StartError::Config(error.to_string()))
    }
}

/// The variables of the container of this name, whichever list it is in.
fn variables<'a>(spec: &'a PodSpec, name: &str) -> (&'a [EnvVar], &'a [EnvFromSource]) {
    let mut own = spec.init_containers.iter().flatten().chain(&spec.containers);
    let own = own.find(|it| it.name == name).map(|it| (&it.env, &it.env_from));
    let mut added = spec.ephemeral_containers.iter().flatten();
    let found = own.or_else(|| added.find(|it| it.name == name).map(|it| (&it.env, &it.env_from)));
    let lists = found.map(|(env, from)| (env.as_deref(), from.as_deref())).unwrap_or_default();
    (lists.0.unwrap_or_default(), lists.1.unwrap_or_default())
}

/// Whether a variable is made of a key that must be there.
fn is_needed(variable: &EnvVar) -> bool {
    let Some(from) = &variable.value_from else { return false };
    let config_map = from.config_map_key_ref.as_ref().map(|it| it.optional);
    let secret = from.secret_key_ref.as_ref().map(|it| it.optional);
    config_map.or(secret).is_some_and(must_be)
}

/// Whether all of an object becomes variables that must be there.
fn is_needed_whole(source: &EnvFromSource) -> bool {
    let config_map = source.config_map_ref.as_ref().map(|it| it.optional);
    let secret = source.secret_ref.as_ref().map(|it| it.optional);
    config_map.or(secret).is_some_and(must_be)
}

fn must_be(optional: Option<bool>) -> bool {
    optional != Some(true)
}

/// A volume with nothing but objects that must be there, if it is made of any.
fn needed_of_volume(volume: &Volume) -> Option<Volume> {
    let config_map = volume.config_map.as_ref().map(|it| it.optional);
    let secret = volume.secret.as_ref().map(|it| it.optional);
    if let Some(optional) = config_map.or(secret) {
        return must_be(optional).then(|| volume.clone());
    }
    let projected = volume.projected.as_ref()?;
    let reaches_api = volume.name.starts_with(API_ACCESS);
    let is_needed = |source: &&VolumeProjection| {
        let config_map = source.config_map.as_ref();
        let config_map = config_map.filter(|it| !(reaches_api && it.name == ROOT_CA));
        let secret = source.secret.as_ref().map(|it| it.optional);
        config_map.map(|it| it.optional).or(secret).is_some_and(must_be)
    };
    let sources = projected.sources.iter().flatten().filter(is_needed);
    let sources: Vec<VolumeProjection> = sources.cloned().collect();
    if sources.is_empty() {
        return None;
    }
    let projected = ProjectedVolumeSource { sources: Some(sources), ..projected.clone() };
    let name = volume.name.clone();
    Some(Volume { name, projected: Some(projected), ..Volume::default() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: &Value) -> Pod {
        let metadata = json!({"namespace": "default", "name": "web"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn of_variables(list: &str, container: &Value) -> Pod {
        let mut container = container.clone();
        container["name"] = "c".into();
        let mut spec = json!({"containers": []});
        spec[list] = json!([container]);
        pod(&spec)
    }

    fn of_volume(source: &Value) -> Pod {
        let mut volume = source.clone();
        volume["name"] = "v".into();
        pod(&json!({"containers": [{"name": "c"}], "volumes": [volume]}))
    }

    /// What there is: a `ConfigMap` and a Secret of the name `there`, both with the key `k`.
    fn objects() -> Objects {
        let mut objects = Objects::default();
        let map = serde_json::from_value(json!({"data": {"k": "v"}})).unwrap();
        objects.config_maps.insert("there".into(), Ok(Arc::new(map)));
        let secret = serde_json::from_value(json!({"data": {"k": "dg=="}})).unwrap();
        objects.secrets.insert("there".into(), Ok(Arc::new(secret)));
        objects
    }

    /// What a container lacks: nothing is needed, nothing is missing, or what.
    fn lacks(pod: &Pod) -> String {
        let Some(needs) = Needs::of(pod, "c") else { return "needs nothing".into() };
        let checked = needs.volumes(&objects()).and_then(|()| needs.environment(&objects()));
        checked.map_or_else(|error| error.to_string(), |()| "has all".into())
    }

    #[test]
    fn variables_need_what_is_not_optional() {
        let map = |name: &str| json!({"envFrom": [{"configMapRef": {"name": name}}]});
        let key = |kind: &str, name: &str, key: &str| {
            let mut from = json!({});
            from[kind] = json!({"name": name, "key": key});
            json!({"env": [{"name": "A", "valueFrom": from}]})
        };
        let optional = json!({
            "envFrom": [{"secretRef": {"name": "gone", "optional": true}}],
            "env": [{"name": "A", "valueFrom": {
                "configMapKeyRef": {"name": "gone", "key": "k", "optional": true},
            }}],
        });
        let elsewhere = json!({"env": [
            {"name": "A", "value": "a"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ]});
        for (container, expected) in [
            (json!({}), "needs nothing"),
            (optional, "needs nothing"),
            (elsewhere, "needs nothing"),
            (map("there"), "has all"),
            (map("typo"), "configmap \"typo\" not found"),
            (key("secretKeyRef", "there", "k"), "has all"),
            (key("secretKeyRef", "typo", "k"), "secret \"typo\" not found"),
            (
                key("configMapKeyRef", "there", "x"),
                "couldn't find key x in ConfigMap default/there",
            ),
        ] {
            for list in ["containers", "initContainers", "ephemeralContainers"] {
                assert_eq!(lacks(&of_variables(list, &container)), expected, "{list}: {container}");
            }
        }
        let other = json!({"containers": [{"name": "c"}, {"name": "d", "envFrom": [
            {"configMapRef": {"name": "typo"}},
        ]}]});
        assert_eq!(lacks(&pod(&other)), "needs nothing", "another container does");
    }

    #[test]
    fn volumes_need_what_is_not_optional_and_not_what_every_pod_has() {
        let failed = |why: &str| format!("MountVolume.SetUp failed for volume \"v\" : {why}");
        let projected = |sources: Value| json!({"projected": {"sources": sources}});
        let gone = json!({"name": "gone", "optional": true});
        for (source, expected) in [
            (json!({"emptyDir": {}}), "needs nothing".to_owned()),
            (json!({"configMap": gone}), "needs nothing".into()),
            (json!({"secret": {"secretName": "gone", "optional": true}}), "needs nothing".into()),
            (json!({"configMap": {"name": "there"}}), "has all".into()),
            (json!({"configMap": {"name": "typo"}}), failed("configmap \"typo\" not found")),
            (json!({"secret": {"secretName": "typo"}}), failed("secret \"typo\" not found")),
            (
                json!({"secret": {"secretName": "there", "items": [{"key": "x", "path": "x"}]}}),
                failed("references non-existent secret key: x"),
            ),
            (projected(json!([{"configMap": gone}])), "needs nothing".into()),
            (
                projected(
                    json!([{"serviceAccountToken": {"path": "t"}}, {"secret": {"name": "typo"}}]),
                ),
                failed("secret \"typo\" not found"),
            ),
        ] {
            assert_eq!(lacks(&of_volume(&source)), expected, "{source}");
        }
        let access = json!([
            {"serviceAccountToken": {"path": "token"}},
            {"configMap": {"name": ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        ]);
        let mut own = of_volume(&projected(access));
        assert_eq!(lacks(&own), failed("configmap \"kube-root-ca.crt\" not found"));
        own.spec.as_mut().unwrap().volumes.as_mut().unwrap()[0].name = "kube-api-access-x".into();
        assert_eq!(lacks(&own), "needs nothing");
    }
}

//! The files of volumes that are made of objects: configMap, secret, downwardAPI and projected.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, ProjectedVolumeSource, Secret,
    ServiceAccountTokenProjection, VolumeProjection,
};

use super::token::{TokenKey, Tokens};
use crate::downward::{Defaults, FieldError, ResourceError, metadata_field, resource};
use crate::objects::{Objects, Unavailable};

/// The mode of a file whose volume does not say.
pub(super) const MODE: i32 = 0o644;

/// What only its owner reads: a token where the Pod says who owns its files.
const PRIVATE: i32 = 0o600;

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) data: Vec<u8>,
    pub(crate) mode: u32,
    /// To whom it is given.
    pub(crate) owner: Option<u32>,
}

/// Files by their paths in the volume. Where two sources have the same path, the later one wins.
pub(crate) type Payload = BTreeMap<String, File>;

/// Why a volume has no files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PayloadError {
    #[error(transparent)]
    Object(#[from] Unavailable),
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error(transparent)]
    Resource(#[from] ResourceError),
    #[error("configmap references non-existent config key: {0}")]
    ConfigKey(String),
    #[error("references non-existent secret key: {0}")]
    SecretKey(String),
    #[error("failed to fetch token: {0}")]
    Token(String),
    #[error("{0} projection is not supported by this node")]
    Unsupported(&'static str),
    /// Several of them.
    #[error("[{}]", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Many(Vec<PayloadError>),
}

/// What all kinds of files are made of.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) pod: &'a Pod,
    pub(super) objects: &'a Objects,
    pub(super) tokens: &'a Tokens,
    pub(super) defaults: Defaults<'a>,
    /// To whom tokens are given.
    pub(super) owner: Option<u32>,
    pub(super) has_group: bool,
}

/// The keys of an object that become files.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    pub(super) items: Option<&'a [KeyToPath]>,
    pub(super) mode: i32,
    pub(super) optional: Option<bool>,
}

impl Sources<'_> {
    pub(super) fn config_map(&self, name: &str, keys: Keys<'_>) -> Result<Payload, PayloadError> {
        let found = match self.objects.config_map(name) {
            Err(error) if !(error.is_not_found() && keys.optional == Some(true)) => {
                return Err(error.into());
            }
            found => found.ok(),
        };
        let texts = |it: &ConfigMap| it.data.clone().unwrap_or_default();
        let bytes = |it: &ConfigMap| it.binary_data.clone().unwrap_or_default();
        let mut data: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        data.extend(found.map(bytes).unwrap_or_default().into_iter().map(|(k, v)| (k, v.0)));
        let texts = found.map(texts).unwrap_or_default().into_iter();
        data.extend(texts.map(|(key, text)| (key, text.into_bytes())));
        chosen(data, keys, PayloadError::ConfigKey)
    }

    pub(super) fn secret(&self, name: &str, keys: Keys<'_>) -> Result<Payload, PayloadError> {
        let found = match self.objects.secret(name) {
            Err(error) if !(error.is_not_found() && keys.optional == Some(true)) => {
                return Err(error.into());
            }
            found => found.ok(),
        };
        let data = found.and_then(|secret: &Secret| secret.data.clone()).unwrap_or_default();
        let data = data.into_iter().map(|(key, ByteString(bytes))| (key, bytes)).collect();
        chosen(data, keys, PayloadError::SecretKey)
    }

    pub(super) fn downward(
        &self,
        items: Option<&[DownwardAPIVolumeFile]>,
        mode: i32,
    ) -> Result<Payload, PayloadError> {
        let mut problems = Vec::new();
        let mut payload = Payload::new();
        for item in items.into_iter().flatten() {
            match self.told(item) {
                Ok(text) => {
                    let file = file(text.into_bytes(), item.mode.unwrap_or(mode));
                    payload.insert(item.path.clone(), file);
                }
                Err(problem) => problems.push(problem),
            }
        }
        all_or(payload, problems)
    }

    fn told(&self, item: &DownwardAPIVolumeFile) -> Result<String, PayloadError> {
        if let Some(selector) = &item.field_ref {
            Ok(metadata_field(&selector.field_path, self.pod)?)
        } else if let Some(selector) = &item.resource_field_ref {
            Ok(resource(selector, self.pod, None, self.defaults)?)
        } else {
            Ok(String::new())
        }
    }

    pub(super) fn projected(
        &self,
        projected: &ProjectedVolumeSource,
    ) -> Result<Payload, PayloadError> {
        let mode = projected.default_mode.unwrap_or(MODE);
        let mut problems = Vec::new();
        let mut payload = Payload::new();
        for source in projected.sources.iter().flatten() {
            match self.projection(source, mode) {
                Ok(files) => payload.extend(files),
                Err(problem) => problems.push(problem),
            }
        }
        all_or(payload, problems)
    }

    fn projection(&self, source: &VolumeProjection, mode: i32) -> Result<Payload, PayloadError> {
        if let Some(secret) = &source.secret {
            let items = secret.items.as_deref();
            return self.secret(&secret.name, Keys { items, mode, optional: secret.optional });
        }
        if let Some(config) = &source.config_map {
            let items = config.items.as_deref();
            return self.config_map(&config.name, Keys { items, mode, optional: config.optional });
        }
        if let Some(downward) = &source.downward_api {
            return self.downward(downward.items.as_deref(), mode);
        }
        if let Some(token) = &source.service_account_token {
            return self.token(token, mode);
        }
        if source.cluster_trust_bundle.is_some() {
            return Err(PayloadError::Unsupported("ClusterTrustBundle"));
        }
        if source.pod_certificate.is_some() {
            return Err(PayloadError::Unsupported("PodCertificate"));
        }
        Ok(Payload::new())
    }

    fn token(
        &self,
        source: &ServiceAccountTokenProjection,
        mode: i32,
    ) -> Result<Payload, PayloadError> {
        let token = match self.tokens.get(&TokenKey::of(source)) {
            Some(Ok(token)) => token,
            Some(Err(why)) => return Err(PayloadError::Token(why.clone())),
            None => return Err(PayloadError::Token("it was not asked for".into())),
        };
        // With a group, ownership of the volume opens it to the group.
        let mode = if self.owner.is_some() || self.has_group { PRIVATE } else { mode };
        let file = File { owner: self.owner, ..file(token.value.clone().into_bytes(), mode) };
        Ok(Payload::from([(source.path.clone(), file)]))
    }
}

/// The keys that are asked for, or all of them.
fn chosen(
    data: BTreeMap<String, Vec<u8>>,
    keys: Keys<'_>,
    missing: impl Fn(String) -> PayloadError,
) -> Result<Payload, PayloadError> {
    let items = keys.items.unwrap_or_default();
    if items.is_empty() {
        return Ok(data.into_iter().map(|(key, data)| (key, file(data, keys.mode))).collect());
    }
    let mut payload = Payload::new();
    for KeyToPath { key, mode, path } in items {
        match data.get(key) {
            Some(data) => {
                payload.insert(path.clone(), file(data.clone(), mode.unwrap_or(keys.mode)));
            }
            None if keys.optional == Some(true) => {}
            None => return Err(missing(key.clone())),
        }
    }
    Ok(payload)
}

fn file(data: Vec<u8>, mode: i32) -> File {
    File { data, mode: u32::try_from(mode).unwrap_or_default(), owner: None }
}

fn all_or(payload: Payload, mut problems: Vec<PayloadError>) -> Result<Payload, PayloadError> {
    match problems.len() {
        0 => Ok(payload),
        1 => Err(problems.remove(0)),
        _ => Err(PayloadError::Many(problems)),
    }
}

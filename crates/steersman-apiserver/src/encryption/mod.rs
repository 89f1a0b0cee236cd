//! `EncryptionConfiguration` of `apiserver.config.k8s.io`: read, checked with Kubernetes' words, and
//! made into rules for the store.
//!
//! Of the providers, `identity` and `aesgcm` are known. What the cluster keeps for itself, the keys
//! that its certificates and tokens are signed with, is encrypted as Secrets are.

mod scope;

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use steersman_rules::field::FieldError;
pub use steersman_store::encryption::Encryption;
use steersman_store::encryption::{Provider, Rule, is_encrypted};
use steersman_store::{Expected, RangeRequest, Store, StoreError, WriteRequest};

use self::scope::Scope;
use crate::authentication::together;
use crate::identity;

const VERSION: &str = "apiserver.config.k8s.io/v1";
const KIND: &str = "EncryptionConfiguration";

/// Entries that are looked at at once.
const PAGE: usize = 1024;

/// The lengths of AES' keys in Kubernetes, as it tells them.
const KEY_LENGTHS: &str = "[16 24 32]";

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EncryptionError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It is not a document of the kind.
    #[error("not an {KIND}: {0}")]
    Malformed(String),
    /// It says what it may not say.
    #[error("invalid encryption configuration: {0}")]
    Invalid(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    api_version: String,
    kind: String,
    #[serde(default)]
    resources: Vec<Resources>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Resources {
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    providers: Vec<ProviderDocument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProviderDocument {
    aesgcm: Option<Keys>,
    aescbc: Option<Keys>,
    secretbox: Option<Keys>,
    identity: Option<Nothing>,
    kms: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default)]
    keys: Vec<Key>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    #[serde(default)]
    name: String,
    #[serde(default)]
    secret: String,
}

/// Reads an `EncryptionConfiguration`, as `--encryption-provider-config` of kube-apiserver.
pub fn read(path: &Path) -> Result<Encryption, EncryptionError> {
    let text = fs::read_to_string(path).map_err(|error| EncryptionError::Read {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    parse(&text)
}

/// Takes an `EncryptionConfiguration` in YAML or JSON.
pub fn parse(text: &str) -> Result<Encryption, EncryptionError> {
    let malformed = EncryptionError::Malformed;
    let document: Document =
        serde_saphyr::from_str(text).map_err(|error| malformed(error.to_string()))?;
    if document.kind != KIND || document.api_version != VERSION {
        let found = format!("it is {:?}, {:?}", document.api_version, document.kind);
        return Err(malformed(format!("{found}; known is {VERSION}, {KIND}")));
    }
    let mut errors = Vec::new();
    let rules = rules(&document, &mut errors);
    match errors.as_slice() {
        [] => Ok(Encryption::new(rules)),
        errors => Err(EncryptionError::Invalid(together(errors))),
    }
}

/// Whether anything that a store holds is encrypted.
pub async fn is_any(store: &dyn Store) -> Result<bool, StoreError> {
    let mut request = RangeRequest { limit: PAGE, ..RangeRequest::default() };
    loop {
        let page = store.range(request.clone()).await?;
        if page.entries.iter().any(|entry| is_encrypted(&entry.value)) {
            return Ok(true);
        }
        let Some(last) = page.entries.last().filter(|_| page.more) else { return Ok(false) };
        request.start = Some(format!("{}\0", last.key));
    }
}

/// Writes the cluster's own secrets again if they are encrypted with a key that is to go, or not
/// at all: no client can do that, as for Secrets.
pub async fn renew(store: &dyn Store) -> Result<(), StoreError> {
    for key in [identity::KEY, identity::FRONT_PROXY_KEY] {
        if !store.is_stale(key).await? {
            continue;
        }
        let Some(found) = store.get(key).await? else { continue };
        let expected = Expected::Modified(found.modified);
        match store.write(WriteRequest::put(key, found.value, expected)).await {
            // Another server did.
            Ok(_) | Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The rules of a document, each thing once: what a resource is listed with again comes after what
/// it was listed with first.
fn rules(document: &Document, errors: &mut Vec<FieldError>) -> Vec<Rule> {
    if document.resources.is_empty() {
        errors.push(FieldError::required("resources", "at least one resources is required"));
    }
    let mut rules: Vec<(Scope, Rule)> = Vec::new();
    for (place, block) in document.resources.iter().enumerate() {
        let path = format!("resources[{place}]");
        let providers = providers(&block.providers, &format!("{path}.providers"), errors);
        for scope in scope::of(&block.resources, &format!("{path}.resources"), errors) {
            if let Some((_, rule)) = rules.iter_mut().find(|(known, _)| *known == scope) {
                rule.providers.extend(providers.clone());
                continue;
            }
            if let Some((earlier, _)) = rules.iter().find(|(known, _)| known.masks(&scope)) {
                let why = format!("resource {scope:?} is masked by earlier rule {earlier:?}");
                errors.push(FieldError::forbidden(format!("{path}.resources"), &why));
            }
            let prefixes = scope.prefixes();
            rules.push((scope, Rule { prefixes, providers: providers.clone() }));
        }
    }
    rules.into_iter().map(|(_, rule)| rule).collect()
}

fn providers(
    documents: &[ProviderDocument],
    path: &str,
    errors: &mut Vec<FieldError>,
) -> Vec<Provider> {
    if documents.is_empty() {
        errors.push(FieldError::required(path, &format!("at least one {path} is required")));
    }
    let mut providers = Vec::new();
    for (place, document) in documents.iter().enumerate() {
        let path = format!("{path}[{place}]");
        let ProviderDocument { aesgcm, aescbc, secretbox, identity, kms } = document;
        let unknown = [
            ("aescbc", aescbc.is_some()),
            ("secretbox", secretbox.is_some()),
            ("kms", kms.is_some()),
        ];
        let found = usize::from(aesgcm.is_some())
            + usize::from(identity.is_some())
            + unknown.iter().filter(|(_, is_there)| *is_there).count();
        if found != 1 {
            errors.push(FieldError::invalid(path, &"{}".into(), wrong_number(found)));
            continue;
        }
        if let Some((name, _)) = unknown.iter().find(|(_, is_there)| *is_there) {
            let why = "this server does not know the provider; it knows aesgcm and identity";
            errors.push(FieldError::forbidden(format!("{path}.{name}"), why));
        }
        if identity.is_some() {
            providers.push(Provider::IDENTITY);
        }
        if let Some(Keys { keys }) = aesgcm {
            providers.extend(aes_gcm(keys, &format!("{path}.aesgcm.keys"), errors));
        }
    }
    providers
}

fn wrong_number(found: usize) -> &'static str {
    match found {
        0 => {
            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, \
             Secretbox, Identity"
        }
        _ => {
            "more than one provider specified in a single element, should split into different \
             list elements"
        }
    }
}

fn aes_gcm(keys: &[Key], path: &str, errors: &mut Vec<FieldError>) -> Vec<Provider> {
    if keys.is_empty() {
        errors.push(FieldError::required(path, "at least one keys is required"));
    }
    let mut providers = Vec::new();
    for (place, Key { name, secret }) in keys.iter().enumerate() {
        let path = format!("{path}[{place}]");
        if name.is_empty() {
            let why = "name is a mandatory field for a key";
            errors.push(FieldError::required(format!("{path}.name"), why));
        }
        let path = format!("{path}.secret");
        if secret.is_empty() {
            errors.push(FieldError::required(path, "secret is a mandatory field for a key"));
            continue;
        }
        match secret_of(name, secret) {
            Ok(provider) => providers.push(provider),
            Err(why) => errors.push(FieldError::invalid(path, &"REDACTED".into(), &why)),
        }
    }
    providers
}

fn secret_of(name: &str, secret: &str) -> Result<Provider, String> {
    let secret = STANDARD.decode(secret).map_err(|_| "secrets must be base64 encoded")?;
    Provider::aes_gcm(name, &secret).map_err(|invalid| match invalid.bytes {
        24 => "this server knows keys of 16 and of 32 bytes, not of 24".to_owned(),
        bytes => format!(
            "secret is not of the expected length, got {bytes}, expected one of {KEY_LENGTHS}"
        ),
    })
}

#[cfg(test)]
mod tests;

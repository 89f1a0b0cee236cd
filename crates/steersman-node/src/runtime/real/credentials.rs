//! What registries want to see: the entries of Docker's files in the Secrets that a Pod names.
//!
//! An entry is for a registry or for a part of one. All that fit an image are [found](Keyring::lookup),
//! the most exact first, as a
//! [kubelet](https://kubernetes.io/docs/concepts/containers/images/#config-json) finds them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use k8s_openapi::api::core::v1::Secret;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Deserializer, Serialize};

use crate::cri::wire::image::AuthConfig;

/// What entries call the registry of images that name none.
const DEFAULT_REGISTRY: &str = "index.docker.io";

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    username: String,
    password: String,
    origin: Origin,
}

/// The Secret that something is from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Origin {
    namespace: String,
    name: String,
    uid: String,
}

/// The entries of several Secrets, by what they are for.
#[derive(Default)]
pub(super) struct Keyring {
    entries: BTreeMap<String, Vec<Credentials>>,
}

/// Why a Secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum CredentialsError {
    /// What is in it is not what its type says.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// What is in an entry is not encoded.
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    /// What is encoded there is no name with a password.
    #[error("unable to parse auth field, must be formatted as base64(username:password)")]
    Auth,
}

/// A file of Docker's.
#[derive(Deserialize)]
struct File {
    auths: Option<Entries>,
}

/// One that is null has nothing in it.
type Entries = BTreeMap<String, Option<Entry>>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    #[serde(deserialize_with = "text_or_null")]
    username: String,
    #[serde(deserialize_with = "text_or_null")]
    password: String,
    /// Both at once, encoded. Counts before them.
    #[serde(deserialize_with = "text_or_null")]
    auth: String,
}

/// What is null is not there.
fn text_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(from).map(Option::unwrap_or_default)
}

impl Keyring {
    pub(super) fn of(secrets: &[Secret]) -> Result<Self, CredentialsError> {
        let mut keyring = Self::default();
        for secret in secrets {
            let origin = Origin::of(secret);
            for (place, entry) in entries(secret)? {
                let (username, password) = entry.unwrap_or_default().opened()?;
                let found = Credentials { username, password, origin: origin.clone() };
                keyring.entries.entry(key(&place)).or_default().push(found);
            }
        }
        Ok(keyring)
    }

    /// What may open a repository, the most exact first.
    pub(super) fn lookup(&self, repository: &str) -> Vec<Credentials> {
        let fitting = self.entries.iter().rev().filter(|(place, _)| fits(place, repository));
        let found: Vec<Credentials> = fitting.flat_map(|(_, all)| all.iter().cloned()).collect();
        match self.entries.get(DEFAULT_REGISTRY) {
            Some(of_default) if found.is_empty() && is_default(repository) => of_default.clone(),
            _ => found,
        }
    }
}

impl Credentials {
    /// As a runtime is told of them.
    pub(super) fn told(&self) -> AuthConfig {
        AuthConfig {
            username: self.username.clone(),
            password: self.password.clone(),
            ..AuthConfig::default()
        }
    }

    /// The Secret that they are from.
    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// By what they are known again where they themselves must not be kept.
    pub(super) fn hash(&self) -> String {
        let both = format!("{}:{}", self.username, self.password);
        hash(both.as_bytes())
    }
}

impl Origin {
    fn of(secret: &Secret) -> Self {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let of = &secret.metadata;
        Self { namespace: text(&of.namespace), name: text(&of.name), uid: text(&of.uid) }
    }
}

/// The hash of something, in hexadecimal digits.
pub(super) fn hash(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Entry {
    /// The name and the password.
    fn opened(self) -> Result<(String, String), CredentialsError> {
        let Self { username, password, auth } = self;
        if auth.is_empty() {
            return Ok((username, password));
        }
        let both = STANDARD_NO_PAD.decode(auth.trim().trim_end_matches('='))?;
        let both = String::from_utf8(both).map_err(|_| CredentialsError::Auth)?;
        let (username, password) = both.split_once(':').ok_or(CredentialsError::Auth)?;
        Ok((username.to_owned(), password.to_owned()))
    }
}

/// The entries of a Secret, if it is one that has some.
fn entries(secret: &Secret) -> Result<Entries, CredentialsError> {
    let found = match secret.type_.as_deref() {
        Some("kubernetes.io/dockerconfigjson") => match text(secret, ".dockerconfigjson") {
            Some(text) => serde_json::from_slice::<Option<File>>(text)?.and_then(|file| file.auths),
            None => None,
        },
        Some("kubernetes.io/dockercfg") => match text(secret, ".dockercfg") {
            Some(text) => serde_json::from_slice(text)?,
            None => None,
        },
        _ => None,
    };
    Ok(found.unwrap_or_default())
}

fn text<'a>(secret: &'a Secret, key: &str) -> Option<&'a [u8]> {
    let text = secret.data.as_ref()?.get(key)?.0.as_slice();
    (!text.is_empty()).then_some(text)
}

/// What an entry is for: a host, or a host with a path.
fn key(place: &str) -> String {
    let bare = place.strip_prefix("https://").or_else(|| place.strip_prefix("http://"));
    let bare = bare.unwrap_or(place).split(['?', '#']).next().unwrap_or_default();
    let (host, path) = with_path(bare);
    // Versions of the interface that old files name.
    let versioned = path.starts_with("/v1/") || path.starts_with("/v2/");
    let path = if versioned { &path[3..] } else { path };
    if path == "/" { host.to_owned() } else { format!("{host}{path}") }
}

/// A host, and the path on it with the slash that it begins with.
fn with_path(place: &str) -> (&str, &str) {
    place.split_at(place.find('/').unwrap_or(place.len()))
}

/// Whether an entry for a place is for a repository: each part of the host's name may have stars.
fn fits(place: &str, repository: &str) -> bool {
    let ((host, path), (of_image, below)) = (with_path(place), with_path(repository));
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let (name_of_image, port_of_image) = of_image.rsplit_once(':').unwrap_or((of_image, ""));
    let (parts, parts_of_image) = (name.split('.'), name_of_image.split('.'));
    port == port_of_image
        && below.starts_with(path)
        && parts.clone().count() == parts_of_image.clone().count()
        && parts.zip(parts_of_image).all(|(pattern, part)| matches(pattern, part))
}

/// Whether a text is like a pattern, in which a star stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether a repository is one of the registry that images mean which name none.
fn is_default(repository: &str) -> bool {
    let registry = repository.split('/').next().unwrap_or_default();
    registry == "docker.io" || !registry.contains(['.', ':'])
}

/// A password from the Secret with this uid.
#[cfg(test)]
pub(super) fn of_secret(uid: &str, password: &str) -> Credentials {
    let origin = Origin { uid: uid.to_owned(), ..Origin::default() };
    Credentials { username: String::new(), password: password.to_owned(), origin }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use serde_json::{Value, json};

    use super::*;

    fn secret(type_: &str, file: &str, content: &Value) -> Secret {
        let data = [(file.to_owned(), ByteString(content.to_string().into_bytes()))].into();
        Secret {
            type_: Some(format!("kubernetes.io/{type_}")),
            data: Some(data),
            ..Secret::default()
        }
    }

    /// A Secret whose entries have the names of what they are for.
    fn for_places(places: &[&str]) -> Secret {
        let auths: Value =
            places.iter().map(|place| (*place, json!({"username": place}))).collect();
        secret("dockerconfigjson", ".dockerconfigjson", &json!({"auths": auths}))
    }

    fn names(keyring: &Keyring, repository: &str) -> Vec<String> {
        keyring.lookup(repository).into_iter().map(|found| found.username).collect()
    }

    #[test]
    fn what_fits_an_image_is_found_the_most_exact_first() {
        let all = for_places(&[
            "https://index.docker.io/v1/",
            "ghcr.io",
            "ghcr.io/team/web",
            "http://ghcr.io/team",
            "*.azurecr.io",
            "local*ry:5000",
        ]);
        let keyring = Keyring::of(&[all]).unwrap();
        for (repository, expected) in [
            ("docker.io/library/nginx", vec!["https://index.docker.io/v1/"]),
            ("ghcr.io/team/web", vec!["ghcr.io/team/web", "http://ghcr.io/team", "ghcr.io"]),
            ("ghcr.io/team/api", vec!["http://ghcr.io/team", "ghcr.io"]),
            ("ghcr.io/other/web", vec!["ghcr.io"]),
            ("us.azurecr.io/web", vec!["*.azurecr.io"]),
            ("a.us.azurecr.io/web", vec![]),
            ("us.azurecr.io:443/web", vec![]),
            ("localregistry:5000/web", vec!["local*ry:5000"]),
            ("localregistry:5001/web", vec![]),
            ("quay.io/team/web", vec![]),
        ] {
            assert_eq!(names(&keyring, repository), expected, "{repository}");
        }
    }

    #[test]
    fn what_is_for_the_same_is_tried_in_the_order_of_the_secrets() {
        let old = secret("dockercfg", ".dockercfg", &json!({"quay.io": {"username": "old"}}));
        let auths = json!({"auths": {"quay.io/v2/": {"auth": "bmV3OnBhc3M6d29yZA=="}}});
        let new = secret("dockerconfigjson", ".dockerconfigjson", &auths);
        let opaque = secret("opaque", ".dockercfg", &json!({"quay.io": {"username": "nobody"}}));
        let found = Keyring::of(&[opaque, old, new]).unwrap().lookup("quay.io/web");
        let found: Vec<_> = found.iter().map(Credentials::told).collect();
        let told = found.iter().map(|one| (one.username.as_str(), one.password.as_str()));
        assert_eq!(told.collect::<Vec<_>>(), [("old", ""), ("new", "pass:word")]);
    }

    #[test]
    fn what_is_null_is_not_there() {
        let named = json!({"auth": null, "username": "me", "password": null});
        for (entries, expected) in [
            (json!({"quay.io": named}), vec!["me"]),
            (json!({"quay.io": {"username": null}}), vec![""]),
            (json!({"quay.io": null}), vec![""]),
            (json!(null), vec![]),
        ] {
            let old = secret("dockercfg", ".dockercfg", &entries);
            let new = json!({"auths": entries});
            let new = secret("dockerconfigjson", ".dockerconfigjson", &new);
            for secret in [old, new] {
                let keyring = Keyring::of(&[secret]).unwrap();
                assert_eq!(names(&keyring, "quay.io/web"), expected, "{entries}");
            }
        }
        let nothing = secret("dockerconfigjson", ".dockerconfigjson", &json!(null));
        assert!(Keyring::of(&[nothing]).unwrap().entries.is_empty());
    }

    #[test]
    fn a_secret_that_cannot_be_read_is_said_to_be_so() {
        for (auth, expected) in [
            ("bm8=", "unable to parse auth field, must be formatted as base64(username:password)"),
            ("!", "Invalid"),
        ] {
            let broken = secret("dockercfg", ".dockercfg", &json!({"quay.io": {"auth": auth}}));
            let Err(why) = Keyring::of(&[broken]) else { panic!("{auth} is read") };
            assert!(why.to_string().contains(expected), "{why}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, fits) in [
            ("*", "us", true),
            ("u*", "us", true),
            ("*s*", "us", true),
            ("a*b*b", "ab", false),
            ("a*b*b", "axbyb", true),
            ("us", "usa", false),
            ("us", "us", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}

//! Images: whether one is there, and pulling it if not, one after the other.
//!
//! A pull may take minutes, so nobody waits for it: the Pod is woken when it is over, and its worker
//! starts the container again, which then finds the image or why there is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{Pod, Secret};
use serde_json::Value;
use steersman::{Client, ObjectKey};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Shared, image_name, key_of, locked, uid_of};
use crate::cri::CriError;
use crate::cri::wire::image::{AuthConfig, Image};
use crate::cri::wire::sandbox::PodSandboxConfig;
use crate::runtime::{Pulled, StartError};

/// The pulls of all Pods.
pub(super) struct Pulls {
    pulls: Mutex<HashMap<Key, Pull>>,
    /// As a kubelet, one at a time.
    turn: Semaphore,
}

impl Default for Pulls {
    fn default() -> Self {
        Self { pulls: Mutex::default(), turn: Semaphore::new(1) }
    }
}

/// For whom an image is pulled.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The Pod's.
    uid: String,
    container: String,
    /// As the Pod names it.
    image: String,
}

/// An image that a container needs: its own, or one that it mounts.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) container: &'a str,
    pub(super) image: &'a str,
    pub(super) policy: &'a str,
}

/// The policy of those that say nothing.
pub(super) const IF_NOT_PRESENT: &str = "IfNotPresent";

enum Pull {
    UnderWay,
    Done(Result<Pulled, StartError>),
}

/// What there is of an image.
pub(super) enum Found {
    Here(Image, Option<Pulled>),
    /// It is being pulled from now on.
    Pulling,
    Failed(StartError),
}

impl Pulls {
    /// The containers of a Pod whose images are being pulled.
    pub(super) fn under_way(&self, uid: &str) -> Vec<String> {
        let pulls = locked(&self.pulls);
        let own =
            pulls.iter().filter(|(key, pull)| key.uid == uid && matches!(pull, Pull::UnderWay));
        own.map(|(key, _)| key.container.clone()).collect()
    }

    /// Forgets what was pulled for a Pod that is gone.
    pub(super) fn forget(&self, uid: &str) {
        locked(&self.pulls).retain(|key, _| key.uid != uid);
    }

    /// Forgets what was pulled for a container that has all its images.
    pub(super) fn used(&self, uid: &str, container: &str) {
        locked(&self.pulls).retain(|key, _| key.uid != uid || key.container != container);
    }

    /// What came of a pull. Failures are told once; the rest stays until it is [used](Self::used), so
    /// that an image is not pulled again because others had to be waited for.
    fn done(&self, key: &Key) -> Option<Result<Pulled, StartError>> {
        let mut pulls = locked(&self.pulls);
        match pulls.get(key)? {
            Pull::UnderWay => None,
            Pull::Done(Ok(pulled)) => Some(Ok(*pulled)),
            Pull::Done(Err(_)) => match pulls.remove(key)? {
                Pull::Done(failed) => Some(failed),
                Pull::UnderWay => None,
            },
        }
    }
}

/// An image for a container, by its policy: there, or being pulled from now on.
pub(super) async fn image(
    shared: &Arc<Shared>,
    pod: &Pod,
    Wanted { container, image, policy }: Wanted<'_>,
    sandbox: &PodSandboxConfig,
    client: &Client,
) -> Result<Found, CriError> {
    let asked = image.to_owned();
    let name = match image_name::with_tag(&asked) {
        Ok(name) => name,
        Err(why) => return Ok(Found::Failed(StartError::ImageName { image: asked, why })),
    };
    let (uid, container) = (uid_of(pod).to_owned(), container.to_owned());
    let key = Key { uid, container, image: asked.clone() };
    let pulled = match shared.pulls.done(&key) {
        Some(Ok(pulled)) => Some(pulled),
        Some(Err(why)) => return Ok(Found::Failed(why)),
        None => None,
    };
    if policy != "Always" || pulled.is_some() {
        match shared.cri.image(&name).await? {
            Some(image) => return Ok(Found::Here(image, pulled)),
            None if policy == "Never" => {
                return Ok(Found::Failed(StartError::ImageNeverPull { image: asked }));
            }
            None => {}
        }
    }
    let auth = credentials(pod, &name, client).await;
    locked(&shared.pulls.pulls).insert(key.clone(), Pull::UnderWay);
    let pulling = Pulling { asked, name, auth, sandbox: sandbox.clone(), key, pod: key_of(pod) };
    tokio::spawn(pulling.run(Arc::clone(shared)));
    Ok(Found::Pulling)
}

/// One pull.
struct Pulling {
    /// As the Pod names the image.
    asked: String,
    name: String,
    auth: Option<AuthConfig>,
    sandbox: PodSandboxConfig,
    key: Key,
    pod: ObjectKey,
}

impl Pulling {
    async fn run(self, shared: Arc<Shared>) {
        let asked = Instant::now();
        let turn = shared.pulls.turn.acquire().await;
        let begun = Instant::now();
        let pulled = shared.cri.pull_image(&self.name, self.auth, self.sandbox).await;
        drop(turn);
        let done = match pulled {
            Ok(_) => {
                let size = shared.cri.image(&self.name).await.ok().flatten();
                let bytes = size.map_or(0, |image| image.size);
                Ok(Pulled { took: begun.elapsed(), waited: begun - asked, bytes })
            }
            Err(error) => Err(StartError::ImagePull { image: self.asked, why: error.to_string() }),
        };
        // The Pod may be gone by now, and with it the interest.
        if let Some(pull) = locked(&shared.pulls.pulls).get_mut(&self.key) {
            *pull = Pull::Done(done);
        }
        shared.wake(self.pod).await;
    }
}

/// What the registry of an image wants to see, from the Secrets that the Pod names for this.
async fn credentials(pod: &Pod, image: &str, client: &Client) -> Option<AuthConfig> {
    let secrets = pod.spec.as_ref().and_then(|spec| spec.image_pull_secrets.as_ref());
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    for reference in secrets.into_iter().flatten() {
        let key = ObjectKey::namespaced(namespace.as_str(), reference.name.as_str());
        match client.get::<Secret>(key).await {
            Ok(Some(secret)) => {
                if let Some(found) = credentials_in(&secret, image_name::registry(image)) {
                    return Some(found);
                }
            }
            Ok(None) => {
                tracing::warn!(secret = reference.name, "an image pull secret does not exist");
            }
            Err(error) => {
                tracing::warn!(%error, secret = reference.name, "cannot read an image pull secret");
            }
        }
    }
    None
}

/// The entry for a registry in a Secret of Docker's.
fn credentials_in(secret: &Secret, registry: &str) -> Option<AuthConfig> {
    let data = secret.data.as_ref()?;
    let (text, nested) = match (data.get(".dockerconfigjson"), data.get(".dockercfg")) {
        (Some(new), _) => (new, true),
        (None, old) => (old?, false),
    };
    let config: Value = serde_json::from_slice(&text.0).ok()?;
    let entries = if nested { config.get("auths")? } else { &config };
    let host = |key: &str| {
        let bare = key.trim_start_matches("https://").trim_start_matches("http://");
        bare.split('/').next().unwrap_or(bare).replace("index.docker.io", "docker.io")
    };
    let (_, entry) = entries.as_object()?.iter().find(|(key, _)| host(key) == registry)?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(AuthConfig {
        username: text("username"),
        password: text("password"),
        auth: text("auth"),
        server_address: String::new(),
        identity_token: text("identitytoken"),
        registry_token: text("registrytoken"),
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_are_those_of_the_registry() {
        let auths = json!({"auths": {
            "https://index.docker.io/v1/": {"auth": "ZG9ja2VyOnB3"},
            "ghcr.io": {"username": "me", "password": "pw"},
        }});
        let data = ByteString(auths.to_string().into_bytes());
        let data = [(".dockerconfigjson".to_owned(), data)].into();
        let secret = Secret { data: Some(data), ..Secret::default() };
        let of = |registry| credentials_in(&secret, registry);
        assert_eq!(of("docker.io").unwrap().auth, "ZG9ja2VyOnB3");
        assert_eq!(of("ghcr.io").unwrap().username, "me");
        assert!(of("quay.io").is_none());
    }
}

//! Images: whether one is there, and pulling it if not, one after the other.
//!
//! A pull may take minutes, so nobody waits for it: the Pod is woken when it is over, and its worker
//! starts the container again, which then finds the image or why there is none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{Pod, Secret};
use steersman::{Client, Error, ObjectKey};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::credentials::{Credentials, Keyring};
use super::{Shared, key_of, locked, uid_of};
use crate::cri::CriError;
use crate::cri::wire::image::Image;
use crate::cri::wire::sandbox::PodSandboxConfig;
use crate::runtime::{Pulled, StartError, image_name, pull_secrets};

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

/// The Secrets with which a Pod's images can be pulled. Without those that it cannot have they may be
/// as well; for those that only cannot be read now somebody has to ask again.
pub(super) async fn secrets(
    shared: &Shared,
    pod: &Pod,
    client: &Client,
) -> Result<Vec<Secret>, Error> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for name in pull_secrets::named(pod) {
        match client.get::<Secret>(ObjectKey::namespaced(namespace, name)).await {
            Ok(Some(secret)) => found.push(secret),
            Ok(None) => failed.push(name),
            Err(error) if passes(&error) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, secret = name, "cannot read an image pull secret");
                failed.push(name);
            }
        }
    }
    if !failed.is_empty() {
        shared.recorder.event(pod, pull_secrets::missing(&failed));
    }
    Ok(found)
}

/// Whether the same request may be answered soon: the server is away or has too much to do.
fn passes(error: &Error) -> bool {
    match error.status().map(|status| status.code) {
        Some(code) => matches!(code, 408 | 429) || code >= 500,
        None => true,
    }
}

/// An image for a container, by its policy: there, or being pulled from now on.
pub(super) async fn image(
    shared: &Arc<Shared>,
    pod: &Pod,
    Wanted { container, image, policy }: Wanted<'_>,
    sandbox: &PodSandboxConfig,
    secrets: &[Secret],
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
    let credentials = || -> Result<Vec<Credentials>, String> {
        let keyring = Keyring::of(secrets).map_err(|error| error.to_string())?;
        Ok(keyring.lookup(&image_name::repository(&name)))
    };
    let unread = |why: String| Found::Failed(StartError::ImagePull { image: asked.clone(), why });
    if policy != "Always" || pulled.is_some() {
        if let Some(image) = shared.cri.image(&name).await? {
            let admits = match pulled {
                Some(_) => Ok(true),
                None => shared.permits.admits(&name, &image, credentials),
            };
            match admits {
                Ok(true) => return Ok(Found::Here(image, pulled)),
                Ok(false) => {}
                Err(why) => return Ok(unread(why)),
            }
        }
        // Who may not use an image is not told that it is there.
        if policy == "Never" {
            return Ok(Found::Failed(StartError::ImageNeverPull { image: asked }));
        }
    }
    let credentials = match credentials() {
        Ok(credentials) => credentials,
        Err(why) => return Ok(unread(why)),
    };
    locked(&shared.pulls.pulls).insert(key.clone(), Pull::UnderWay);
    let (sandbox, pod) = (sandbox.clone(), key_of(pod));
    let pulling = Pulling { asked, name, credentials, sandbox, key, pod };
    tokio::spawn(pulling.run(Arc::clone(shared)));
    Ok(Found::Pulling)
}

/// One pull.
struct Pulling {
    /// As the Pod names the image.
    asked: String,
    name: String,
    /// What may open its repository.
    credentials: Vec<Credentials>,
    sandbox: PodSandboxConfig,
    key: Key,
    pod: ObjectKey,
}

impl Pulling {
    async fn run(self, shared: Arc<Shared>) {
        let asked = Instant::now();
        let turn = shared.pulls.turn.acquire().await;
        let begun = Instant::now();
        let pulled = self.noted(&shared).await;
        drop(turn);
        let done = match pulled {
            Ok(bytes) => Ok(Pulled { took: begun.elapsed(), waited: begun - asked, bytes }),
            Err(why) => Err(StartError::ImagePull { image: self.asked, why }),
        };
        // The Pod may be gone by now, and with it the interest.
        if let Some(pull) = locked(&shared.pulls.pulls).get_mut(&self.key) {
            *pull = Pull::Done(done);
        }
        shared.wake(self.pod).await;
    }

    /// Pulls, notes who may use the image, and tells how large it is.
    async fn noted(&self, shared: &Shared) -> Result<u64, String> {
        let name = &self.name;
        shared.permits.begin(name).map_err(|error| {
            format!(
                "Failed to record image pull intent for container image {:?}: {error}",
                self.asked
            )
        })?;
        match self.pulled(shared).await {
            Ok((id, used)) => {
                let image = shared.cri.image(name).await.ok().flatten();
                let (id, bytes) = image.map_or((id, 0), |image| (image.id, image.size));
                shared.permits.pulled(name, &id, used);
                Ok(bytes)
            }
            Err(why) => {
                shared.permits.not_pulled(name);
                Err(why)
            }
        }
    }

    /// Pulls with each of the credentials, until some are accepted: which, and the image's id.
    async fn pulled(&self, shared: &Shared) -> Result<(String, Option<&Credentials>), String> {
        let known = self.credentials.iter().map(Some);
        let nothing = self.credentials.is_empty().then_some(None);
        let mut problems = Vec::new();
        for used in known.chain(nothing) {
            let auth = used.map(Credentials::told);
            match shared.cri.pull_image(&self.name, auth, self.sandbox.clone()).await {
                Ok(id) => return Ok((id, used)),
                Err(error) => problems.push(error.to_string()),
            }
        }
        Err(aggregate(problems))
    }
}

/// Several problems as a kubelet says them, each once.
fn aggregate(problems: Vec<String>) -> String {
    let mut told: Vec<String> = Vec::new();
    for problem in problems {
        if !told.contains(&problem) {
            told.push(problem);
        }
    }
    match &told[..] {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_read_later_is_asked_for_again() {
        for (code, expected) in [
            (400, false),
            (404, false),
            (422, false),
            (401, false),
            (403, false),
            (408, true),
            (429, true),
            (500, true),
            (503, true),
        ] {
            let status = kube::core::Status::failure("no", "").with_code(code);
            let error = Error::from(kube::Error::Api(status.boxed()));
            assert_eq!(passes(&error), expected, "{code}");
        }
        assert!(passes(&Error::message("the connection is lost")));
    }

    #[test]
    fn several_problems_are_each_told_once() {
        let of = |problems: &[&str]| {
            aggregate(problems.iter().map(|&problem| problem.to_owned()).collect())
        };
        assert_eq!(of(&["denied", "denied"]), "denied");
        assert_eq!(of(&["denied", "expired", "denied"]), "[denied, expired]");
    }
}

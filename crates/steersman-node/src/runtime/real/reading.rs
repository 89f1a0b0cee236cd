//! What of the cluster a Pod's containers are made of: ConfigMaps, Secrets, Services, claims and
//! tokens, read before anything is decided.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
    Volume,
};
use kube::Api;
use kube::api::PostParams;
use steersman::{Client, ListOptions, Object, ObjectKey, Result, clock};

use super::{locked, uid_of};
use crate::objects::{Objects, References};
use crate::volumes::{Token, TokenKey, Tokens};

/// How much earlier than it must a token is fetched anew at most, by the Pod, so that not all are
/// asked for at once.
const JITTER_MAX: i64 = 10;

/// What was read for a Pod.
pub(super) struct Read {
    pub(super) objects: Objects,
    pub(super) tokens: Tokens,
    /// Those of the Pod's namespace and of `default`.
    pub(super) services: Vec<Arc<Service>>,
    /// What is behind the Pod's claims, by the name of the volume, or why there is nothing.
    pub(super) persistent: HashMap<String, std::result::Result<PersistentVolume, String>>,
}

/// The tokens that were fetched, by the uid of the Pod.
#[derive(Default)]
pub(super) struct FetchedTokens {
    pods: Mutex<HashMap<String, HashMap<TokenKey, Token>>>,
}

impl FetchedTokens {
    pub(super) fn forget(&self, uid: &str) {
        locked(&self.pods).remove(uid);
    }

    fn known(&self, uid: &str, key: &TokenKey) -> Option<Token> {
        locked(&self.pods).get(uid)?.get(key).cloned()
    }

    /// A token of the Pod's account, fetched anew when it is time. One that still counts is better
    /// than none.
    async fn token(
        &self,
        pod: &Pod,
        key: &TokenKey,
        client: &Client,
        now: Timestamp,
    ) -> std::result::Result<Token, String> {
        let uid = uid_of(pod);
        let known = self.known(uid, key);
        let jitter = i64::from(uid.bytes().next_back().unwrap_or(0)) % JITTER_MAX;
        let jitter = SignedDuration::from_secs(jitter);
        if let Some(known) = known.as_ref().filter(|token| now < token.refresh_at(jitter)) {
            return Ok(known.clone());
        }
        match fetch(pod, key, client).await {
            Ok(token) => {
                let mut pods = locked(&self.pods);
                pods.entry(uid.to_owned()).or_default().insert(key.clone(), token.clone());
                Ok(token)
            }
            Err(why) => known.filter(|token| !token.is_expired(now)).ok_or(why),
        }
    }
}

async fn fetch(pod: &Pod, key: &TokenKey, client: &Client) -> std::result::Result<Token, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
    let account = account.filter(|name| !name.is_empty()).unwrap_or("default");
    let accounts: Api<ServiceAccount> = Api::namespaced(client.kube().clone(), namespace);
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: key.audience.clone().map(|audience| vec![audience]),
            expiration_seconds: Some(key.expiration_seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".into()),
                kind: Some("Pod".into()),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
            }),
        }),
        ..TokenRequest::default()
    };
    let asked = clock::now();
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let answer = answer.map_err(|error| format!("failed to fetch token: {error}"))?;
    let value = answer.status.and_then(|given| given.token);
    let value = value.ok_or("failed to fetch token: the answer has none")?;
    let lifetime = answer.spec.and_then(|spec| spec.expiration_seconds);
    let lifetime = SignedDuration::from_secs(lifetime.unwrap_or(key.expiration_seconds));
    // By the agent's clock: that of the server may be another, and either may be set meanwhile.
    let expires = asked.checked_add(lifetime).unwrap_or(Timestamp::MAX);
    Ok(Token { value, expires, lifetime })
}

/// Reads everything that a Pod refers to.
pub(super) async fn read(pod: &Pod, fetched: &FetchedTokens, client: &Client) -> Result<Read> {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let references = References::of(pod);
    let mut objects = Objects::default();
    for name in references.config_maps {
        if let Some(found) = one::<ConfigMap>(&namespace, &name, client).await {
            objects.config_maps.insert(name, found);
        }
    }
    for name in references.secrets {
        if let Some(found) = one::<Secret>(&namespace, &name, client).await {
            objects.secrets.insert(name, found);
        }
    }
    let mut tokens = Tokens::new();
    let now = clock::now();
    for key in TokenKey::of_pod(pod) {
        let token = fetched.token(pod, &key, client, now).await;
        tokens.insert(key, token);
    }
    Ok(Read {
        objects,
        tokens,
        services: services(pod, &namespace, client).await?,
        persistent: persistent(pod, &namespace, client).await,
    })
}

/// An object, or why it cannot be read; nothing if there is none.
async fn one<K: Object>(
    namespace: &str,
    name: &str,
    client: &Client,
) -> Option<std::result::Result<Arc<K>, String>> {
    match client.get::<K>(ObjectKey::namespaced(namespace, name)).await {
        Ok(found) => found.map(|found| Ok(Arc::new(found))),
        Err(error) => Some(Err(error.to_string())),
    }
}

async fn services(pod: &Pod, namespace: &str, client: &Client) -> Result<Vec<Arc<Service>>> {
    let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links) != Some(false);
    let mut services = client.list::<Service>(&ListOptions::namespace("default")).await?;
    if links && namespace != "default" {
        services.extend(client.list::<Service>(&ListOptions::namespace(namespace)).await?);
    }
    Ok(services.into_iter().map(Arc::new).collect())
}

/// What is behind the claims of a Pod.
async fn persistent(
    pod: &Pod,
    namespace: &str,
    client: &Client,
) -> HashMap<String, std::result::Result<PersistentVolume, String>> {
    let mut found = HashMap::new();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    for volume in volumes.into_iter().flatten() {
        if let Some(claim) = claim_of(pod, volume) {
            let behind = behind(namespace, &claim, client).await;
            found.insert(volume.name.clone(), behind);
        }
    }
    found
}

/// The name of the claim that a volume is of.
fn claim_of(pod: &Pod, volume: &Volume) -> Option<String> {
    let generic = || {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        volume.ephemeral.as_ref().map(|_| format!("{name}-{}", volume.name))
    };
    let claim = volume.persistent_volume_claim.as_ref().map(|source| source.claim_name.clone());
    claim.or_else(generic)
}

async fn behind(
    namespace: &str,
    claim: &str,
    client: &Client,
) -> std::result::Result<PersistentVolume, String> {
    let key = ObjectKey::namespaced(namespace, claim);
    let found =
        client.get::<PersistentVolumeClaim>(key).await.map_err(|error| error.to_string())?;
    let found = found.ok_or_else(|| format!("persistentvolumeclaim {claim:?} not found"))?;
    let bound = found.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
    let name = found.spec.and_then(|spec| spec.volume_name).filter(|_| bound);
    let name = name.ok_or_else(|| format!("PVC {namespace}/{claim} is not bound"))?;
    let volume = client.get::<PersistentVolume>(name.as_str()).await;
    let volume = volume.map_err(|error| error.to_string())?;
    volume.ok_or_else(|| format!("persistentvolume {name:?} not found"))
}

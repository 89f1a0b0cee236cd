//! The servers that benchmarks need: the one that every system of a comparison works against,
//! our own API server over HTTPS without controllers; and [`bare`], no API at all.
//!
//! The objects go straight into its store: so they keep the uids, times and managed fields that
//! they were made with, and fifty thousand of them are there in a second. This crate knows the
//! API server and its store and, as everywhere, no client of theirs.

pub mod bare;
mod mark;
pub mod pods;
pub mod widgets;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;
use steersman_apiserver::pki::Pki;
use steersman_apiserver::{ApiServer, Clock, Config, document, listen};
use steersman_store::memory::MemoryStore;
use steersman_store::{Expected, Key, Store, WriteRequest};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::Service;

use pods::Pods;

pub use mark::WRITTEN;

/// What all runs have in common: the same Pods.
pub const SEED: u64 = 2026;

const GRACE: Duration = Duration::from_millis(100);

/// What a server has.
#[derive(Clone, Copy, Debug)]
pub enum Objects {
    /// So many [Pods](pods).
    Pods(usize),
    /// So many [Widgets](widgets).
    Widgets(usize),
}

/// A running server; it stops when dropped.
pub struct Server {
    store: MemoryStore,
    keys: Vec<Key>,
    _shutdown: DropGuard,
}

/// Writes that are ready to be made.
pub struct Writes(Vec<(Key, Bytes)>);

impl Server {
    /// Serves objects on any port; how to reach it is written to `kubeconfig`.
    pub async fn start(clock: Clock, objects: Objects, kubeconfig: &Path) -> Result<Self, String> {
        let store = MemoryStore::new();
        let api = ApiServer::start(Config::new(Arc::new(store.clone()), clock)).await;
        let api = api.map_err(|error| error.to_string())?;
        if matches!(objects, Objects::Widgets(_)) {
            define(&api, &widgets::definition()).await?;
        }
        let keys = load(&store, objects).await?;
        let shutdown = serve(&api, kubeconfig).await?.drop_guard();
        Ok(Self { store, keys, _shutdown: shutdown })
    }

    /// Prepares to write the first so many objects with this mark.
    pub async fn prepare(&self, count: usize, mark: &str) -> Result<Writes, String> {
        let mut writes = Vec::new();
        for key in self.keys.iter().take(count) {
            let entry = self.store.get(key).await.map_err(|error| error.to_string())?;
            let entry = entry.ok_or_else(|| format!("{key} is gone"))?;
            let object = serde_json::from_slice(&entry.value);
            let mut object: Value = object.map_err(|error| error.to_string())?;
            object["metadata"]["annotations"][WRITTEN] = mark.into();
            writes.push((Arc::clone(key), encode(&object)?));
        }
        Ok(Writes(writes))
    }

    /// Makes the writes as fast as the store takes them.
    pub async fn write(&self, writes: Writes) -> Result<(), String> {
        for (key, value) in writes.0 {
            put(&self.store, key, value).await?;
        }
        Ok(())
    }
}

async fn serve(api: &ApiServer, kubeconfig: &Path) -> Result<CancellationToken, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
    let tls = identity(&listener, kubeconfig)?.server_tls().map_err(|error| error.to_string())?;
    let shutdown = CancellationToken::new();
    tokio::spawn(listen::serve(api.clone(), listener, tls, shutdown.clone(), GRACE));
    Ok(shutdown)
}

/// What a listener shows its clients; the kubeconfig trusts it.
fn identity(listener: &TcpListener, kubeconfig: &Path) -> Result<Pki, String> {
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let pki = Pki::new(&[address.ip().to_string()]).map_err(|error| error.to_string())?;
    std::fs::write(kubeconfig, pki.kubeconfig(&format!("https://{address}")))
        .map_err(|error| format!("{}: {error}", kubeconfig.display()))?;
    Ok(pki)
}

/// A private and its public key for the tokens of a server that needs them, in PEM.
pub fn signing_keys() -> Result<[String; 2], String> {
    let key = rcgen::KeyPair::generate().map_err(|error| error.to_string())?;
    Ok([key.serialize_pem(), key.public_key_pem()])
}

/// Makes the server know a kind.
async fn define(api: &ApiServer, definition: &Value) -> Result<(), String> {
    let request = Request::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(definition.to_string())))
        .map_err(|error| error.to_string())?;
    let Ok(response) = api.clone().call(request).await;
    let status = response.status();
    if status.is_success() { Ok(()) } else { Err(format!("the definition is refused: {status}")) }
}

/// Puts the objects into the store; gives their keys.
async fn load(store: &MemoryStore, objects: Objects) -> Result<Vec<Key>, String> {
    let (prefix, objects): (_, Box<dyn Iterator<Item = Value> + Send>) = match objects {
        Objects::Pods(count) => {
            let mut pods = Pods::new(SEED, count);
            ("pods", Box::new((0..count).map(move |_| pods.next_pod())))
        }
        Objects::Widgets(count) => {
            ("bench.steersman.dev/widgets", Box::new((0..count).map(widgets::widget)))
        }
    };
    let mut keys = Vec::new();
    for object in objects {
        let key: Key = store_key(prefix, &object).into();
        put(store, Arc::clone(&key), encode(&object)?).await?;
        keys.push(key);
    }
    Ok(keys)
}

async fn put(store: &MemoryStore, key: Key, value: Bytes) -> Result<(), String> {
    let request = WriteRequest::put(key, value, Expected::Any);
    store.write(request).await.map(drop).map_err(|error| error.to_string())
}

fn encode(object: &Value) -> Result<Bytes, String> {
    document::encode(object).map_err(|error| error.to_string())
}

/// Where the API server keeps an object.
fn store_key(prefix: &str, object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("/registry/{prefix}/{}/{}", text("namespace"), text("name"))
}

//! The servers that benchmarks need: the one that every system of the informer benchmark reads
//! from, our own API server over HTTPS without controllers; and [`bare`], no API at all.
//!
//! The Pods go straight into its store: so they keep the uids, times and managed fields that
//! they were made with, and fifty thousand of them are there in a second. This crate knows the
//! API server and its store and, as everywhere, no client of theirs.

pub mod bare;
pub mod pods;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::ServerConfig;
use serde_json::Value;
use steersman_apiserver::pki::Pki;
use steersman_apiserver::{ApiServer, Clock, Config, document, listen};
use steersman_store::memory::MemoryStore;
use steersman_store::{Expected, Key, Store, WriteRequest};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use pods::Pods;

/// The annotation of a Pod that says when it was last written.
pub const WRITTEN: &str = "bench.steersman.dev/written";
/// What all runs have in common: the same Pods.
pub const SEED: u64 = 2026;

const GRACE: Duration = Duration::from_millis(100);

/// A running server; it stops when dropped.
pub struct Server {
    store: MemoryStore,
    keys: Vec<Key>,
    _shutdown: DropGuard,
}

/// Writes that are ready to be made.
pub struct Writes(Vec<(Key, Bytes)>);

impl Server {
    /// Serves so many Pods on any port; how to reach it is written to `kubeconfig`.
    pub async fn start(clock: Clock, pods: usize, kubeconfig: &Path) -> Result<Self, String> {
        let store = MemoryStore::new();
        let api = ApiServer::start(Config::new(Arc::new(store.clone()), clock)).await;
        let api = api.map_err(|error| error.to_string())?;
        let keys = load(&store, pods).await?;
        let shutdown = serve(&api, kubeconfig).await?.drop_guard();
        Ok(Self { store, keys, _shutdown: shutdown })
    }

    /// Prepares to write the first so many Pods with this mark.
    pub async fn prepare(&self, count: usize, mark: &str) -> Result<Writes, String> {
        let mut writes = Vec::new();
        for key in self.keys.iter().take(count) {
            let entry = self.store.get(key).await.map_err(|error| error.to_string())?;
            let entry = entry.ok_or_else(|| format!("{key} is gone"))?;
            let pod = serde_json::from_slice(&entry.value);
            let mut pod: Value = pod.map_err(|error| error.to_string())?;
            pod["metadata"]["annotations"][WRITTEN] = mark.into();
            writes.push((Arc::clone(key), encode(&pod)?));
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
    let tls = identity(&listener, kubeconfig)?;
    let shutdown = CancellationToken::new();
    tokio::spawn(listen::serve(api.clone(), listener, tls, shutdown.clone(), GRACE));
    Ok(shutdown)
}

/// What a listener shows its clients, and a kubeconfig that trusts it.
fn identity(listener: &TcpListener, kubeconfig: &Path) -> Result<ServerConfig, String> {
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let pki = Pki::new(&[address.ip().to_string()]).map_err(|error| error.to_string())?;
    std::fs::write(kubeconfig, pki.kubeconfig(&format!("https://{address}")))
        .map_err(|error| format!("{}: {error}", kubeconfig.display()))?;
    pki.server_config().map_err(|error| error.to_string())
}

/// A private and its public key for the tokens of a server that needs them, in PEM.
pub fn signing_keys() -> Result<[String; 2], String> {
    let key = rcgen::KeyPair::generate().map_err(|error| error.to_string())?;
    Ok([key.serialize_pem(), key.public_key_pem()])
}

/// Puts the Pods into the store; gives their keys.
async fn load(store: &MemoryStore, count: usize) -> Result<Vec<Key>, String> {
    let mut pods = Pods::new(SEED, count);
    let mut keys = Vec::with_capacity(count);
    for _ in 0..count {
        let pod = pods.next_pod();
        let key: Key = store_key(&pod).into();
        put(store, Arc::clone(&key), encode(&pod)?).await?;
        keys.push(key);
    }
    Ok(keys)
}

async fn put(store: &MemoryStore, key: Key, value: Bytes) -> Result<(), String> {
    let request = WriteRequest { key, value: Some(value), expected: Expected::Any };
    store.write(request).await.map(drop).map_err(|error| error.to_string())
}

fn encode(pod: &Value) -> Result<Bytes, String> {
    document::encode(pod).map_err(|error| error.to_string())
}

/// Where the API server keeps a Pod.
fn store_key(pod: &Value) -> String {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    format!("/registry/pods/{}/{}", text("namespace"), text("name"))
}

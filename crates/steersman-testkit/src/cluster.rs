//! The cluster that a test holds.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use steersman::controller::ReconcileRecord;
use steersman::informer::{Event, Informer};
use steersman::manager::{Manager, Running};
use steersman::reflector::Selection;
use steersman::{Client, Controller, Error, Object, ObjectKey, Result};
use tokio::sync::{broadcast, watch};

use crate::run::Settings;

/// How much virtual time [`Cluster::eventually`] gives.
const PATIENCE: Duration = Duration::from_secs(600);

/// A whole cluster, and the controllers under test.
pub struct Cluster {
    inner: steersman_cluster::Cluster,
    client: Client,
    controllers: Mutex<Running>,
}

impl Cluster {
    /// Starts a cluster.
    pub(crate) async fn start(settings: Settings) -> Result<Self> {
        let builder = steersman_cluster::Cluster::builder().nodes(settings.nodes);
        let inner = builder.seed(settings.seed).start().await?;
        let client = Client::new(inner.client(), "test");
        let controllers = Mutex::new(Manager::new(inner.client()).start());
        Ok(Self { inner, client, controllers })
    }

    /// Reads and writes objects as a user would.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The cluster underneath.
    pub fn inner(&self) -> &steersman_cluster::Cluster {
        &self.inner
    }

    /// Installs the custom resource definition of a kind.
    pub async fn install<K: CustomResourceExt>(&self) -> Result<()> {
        let definition: CustomResourceDefinition = K::crd();
        self.client.apply(&definition).await?;
        Ok(())
    }

    /// Runs a controller until the test ends.
    pub fn run(&self, controller: Controller) {
        self.controllers.lock().unwrap_or_else(PoisonError::into_inner).add(controller);
    }

    /// Hears of every reconcile of the controllers under test from now on.
    pub fn reconciles(&self) -> broadcast::Receiver<std::sync::Arc<ReconcileRecord>> {
        self.controllers.lock().unwrap_or_else(PoisonError::into_inner).reconciles()
    }

    /// Lets virtual time pass; everything that is due meanwhile happens.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Waits until the object of that name is as wanted. Fails after ten virtual minutes,
    /// and then shows the object as it was last seen.
    pub async fn eventually<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        wanted: impl Fn(&K) -> bool,
    ) -> Result<()> {
        self.wait_for(key.into(), |object| object.is_some_and(&wanted), "as wanted").await
    }

    /// Waits until there is no object of that name.
    pub async fn gone<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<()> {
        self.wait_for(key.into(), |object: Option<&K>| object.is_none(), "gone").await
    }

    async fn wait_for<K: Object>(
        &self,
        mut key: ObjectKey,
        fits: impl Fn(Option<&K>) -> bool,
        what: &str,
    ) -> Result<()> {
        if K::NAMESPACED && key.namespace.is_none() {
            key.namespace = Some(self.client.kube().default_namespace().into());
        }
        let selection = Selection {
            namespace: key.namespace.as_deref().map(str::to_owned),
            fields: Some(format!("metadata.name={}", key.name)),
            ..Selection::default()
        };
        let informer = Informer::<K>::start(self.client.kube().clone(), &(), selection);
        let (changed, mut changes) = watch::channel(());
        let seen = async {
            informer.add_handler(move |_: &Event<K>| _ = changed.send(())).await;
            while !fits(informer.cache().get(&key).as_deref()) {
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        if tokio::time::timeout(PATIENCE, seen).await.is_ok() {
            return Ok(());
        }
        let last = informer.cache().get(&key);
        let last = last
            .as_deref()
            .map_or_else(|| Ok("absent".into()), |object| serde_json::to_string_pretty(object))?;
        let kind = K::kind(&());
        Err(Error::message(format!(
            "{kind} {key} is not {what} after {} virtual seconds; it was last seen as {last}",
            PATIENCE.as_secs()
        )))
    }
}

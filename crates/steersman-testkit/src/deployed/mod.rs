//! Controllers that run as they are deployed: under a service account, and under exactly the
//! permissions that their [`Manifests`] grant.
//!
//! [`Cluster::deploy`] writes the manifests as an administrator would and gives the identity; what
//! the API server then [refuses](crate::permissions) fails the test when it ends.

mod identity;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Namespace;
use steersman::manager::{Manager, Running};
use steersman::manifests::Manifests;
use steersman::{Controller, Result};

use crate::cluster::Cluster;
use crate::faults::Faults;
use crate::link::Link;
use crate::permissions::{MissingRule, Program};
use identity::Identity;

/// A program that was [deployed](Cluster::deploy): what runs here runs as its service account.
pub struct Deployed {
    identity: Identity,
    /// Runs the controllers that share its caches.
    controllers: Arc<Running>,
    refusals: Arc<Program>,
}

impl Cluster {
    /// Deploys a program: writes its manifests into the cluster, as an administrator and with the
    /// namespaces that they name, and lets its controllers run as its service account.
    ///
    /// What they ask for beyond the permissions in the manifests is refused, as it would be on any
    /// cluster, and fails the test at its end with the rules that are missing. Refusals for other
    /// reasons, such as those by a webhook, do not.
    ///
    /// On a cluster that existed before the test, the program has a token of its service account,
    /// and what was written stays there.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use steersman::manifests::Manifests;
    /// use steersman::prelude::*;
    /// use steersman_testkit::Cluster;
    ///
    /// fn maps() -> Controller {
    ///     let reconcile = async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled);
    ///     Controller::of::<ConfigMap>().reconcile(reconcile)
    /// }
    ///
    /// #[steersman::test]
    /// async fn it_may_do_what_it_does(cluster: Cluster) -> Result<()> {
    ///     let manifests = Manifests::new("maps", "operators").controller(&maps());
    ///     cluster.deploy(&manifests).await?.run(maps());
    ///     cluster.settle().await;
    ///     Ok(())
    /// }
    /// ```
    pub async fn deploy(&self, manifests: &Manifests) -> Result<Deployed> {
        self.deployed(manifests).await
    }

    /// Deploys a controller under the permissions that follow from what it declared, and runs it.
    /// Its kind must be [installed](Self::install) if it is a custom one.
    pub async fn run_as_deployed(&self, controller: Controller) -> Result<()> {
        let name = controller.name().to_lowercase();
        let manifests = Manifests::new(name, self.namespace()).controller(&controller);
        self.deploy(&manifests).await?.run(controller);
        Ok(())
    }

    /// Boxed, so that it is compiled here and not in each crate that calls it.
    fn deployed<'a>(&'a self, manifests: &'a Manifests) -> BoxFuture<'a, Result<Deployed>> {
        Box::pin(async move {
            self.create_namespaces(manifests).await?;
            manifests.apply(self.client().kube()).await?;
            let identity = Identity::of(self, manifests.account()).await?;
            let refusals = self.refusals().of_program(manifests);
            let manager = Manager::new(identity.client(&refusals)?);
            let manager = if self.is_ours() {
                manager.namespaces(manifests.namespaces().iter().map(String::as_str))
            } else {
                manager.namespaces([self.namespace()]) // others work on that cluster, too
            };
            let controllers = self.start_manager(manager);
            Ok(Deployed { identity, controllers, refusals })
        })
    }

    /// Creates the namespaces that manifests name and the cluster does not have.
    async fn create_namespaces(&self, manifests: &Manifests) -> Result<()> {
        let objects = manifests.objects();
        let named = objects.iter().filter_map(|object| object["metadata"]["namespace"].as_str());
        for name in named.collect::<BTreeSet<_>>() {
            let mut namespace = Namespace::default();
            namespace.metadata.name = Some(name.to_owned());
            match self.client().create(&namespace).await {
                Err(error) if !error.is_already_exists() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Deployed {
    /// Runs a controller until the test ends.
    ///
    /// # Panics
    ///
    /// If a controller of that name runs already.
    pub fn run(&self, controller: Controller) {
        let added = self.controllers.add(controller);
        added.expect("the controllers of a program have names of their own");
    }

    /// The client of the program, for a [`Manager`] of its own: leader election, webhooks and
    /// whatever else a program has go through it, too.
    pub fn client(&self) -> kube::Client {
        let client = self.identity.client(&self.refusals);
        client.expect("a client like it was made when the program was deployed")
    }

    /// The same, through these faults.
    ///
    /// # Panics
    ///
    /// If the test runs on a cluster that existed before it.
    pub fn client_with(&self, faults: &Faults) -> kube::Client {
        let api = faults.around(self.identity.service(&self.refusals));
        kube::Client::new(api, self.identity.namespace())
    }

    /// The same, over this link.
    ///
    /// # Panics
    ///
    /// If the test runs on a cluster that existed before it.
    pub fn client_over(&self, link: &Link) -> kube::Client {
        let api = link.around(self.identity.service(&self.refusals));
        kube::Client::new(api, self.identity.namespace())
    }

    /// What the program was refused until now because its manifests do not allow it. These
    /// refusals do not fail the test any more.
    pub fn missing(&self) -> Vec<MissingRule> {
        self.refusals.take()
    }
}

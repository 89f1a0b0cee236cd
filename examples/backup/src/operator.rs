//! The program: everything that runs, and what a cluster must have before.

use k8s_openapi::api::core::v1::Pod;
use kube::CustomResourceExt;
use steersman::election::LeaderElection;
use steersman::manifests::Manifests;
use steersman::prelude::*;
use steersman::webhook::{ClientConfig, SharedCa, WebhookServer};

use crate::pod::LABEL;
use crate::webhooks::webhooks;
use crate::{Backup, Folders, Store, backups};

/// The name of the program: of its account, its Lease, and the Service in front of its webhooks.
pub const NAME: &str = "backup-operator";
/// Where it runs.
pub const NAMESPACE: &str = "backup-system";

/// What each replica runs; one of them at a time reconciles.
pub fn operator(manager: Manager, store: impl Store) -> Manager {
    manager
        .with(backups(store))
        .leader_election(LeaderElection::new(NAMESPACE, NAME))
        .cache::<Pod>(|cache| cache.labels(LABEL))
}

/// The webhooks as each replica serves them behind the Service, with certificates of an authority
/// that the replicas share.
pub fn served() -> Result<WebhookServer> {
    webhooks().shared_ca(SharedCa::for_hosts([format!("{NAME}.{NAMESPACE}.svc")])).build()
}

/// What a cluster must have before. Without the webhooks if nobody serves them: everything that
/// they are to be asked about would be refused.
pub fn manifests(webhooks: Option<&WebhookServer>) -> Manifests {
    let manifests = Manifests::new(NAME, NAMESPACE)
        .definition(Backup::crd())
        .controller(&backups(Folders::new("")))
        .leader_election();
    match webhooks {
        Some(webhooks) => manifests.webhooks(webhooks, &ClientConfig::service(NAMESPACE, NAME)),
        None => manifests,
    }
}

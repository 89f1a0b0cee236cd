//! Runs a test on a cluster that exists, in a namespace of its own, on everybody's clock.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ObjectMeta};
use kube::config::{KubeConfigOptions, Kubeconfig};
use steersman::{Client, Result};

use crate::cluster::{Cluster, Leftovers};
use crate::test::Test;

/// Names the kubeconfig of the cluster on which tests marked `anywhere` run.
const KUBECONFIG: &str = "STEERSMAN_TEST_KUBECONFIG";
/// How long a test may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// The kubeconfig of the cluster to run on, if there is one.
pub(crate) fn kubeconfig() -> Option<String> {
    std::env::var(KUBECONFIG).ok().filter(|path| !path.is_empty())
}

/// Runs a test in a new namespace, which is deleted after it, however it ends.
pub(crate) fn run(kubeconfig: &str, test: Test<'_>) {
    let runtime = tokio::runtime::Runtime::new().expect("the machine has threads to give");
    runtime.block_on(async {
        let (client, config) =
            connect(kubeconfig).await.expect("the cluster of the kubeconfig answers");
        let namespace = client.default_namespace().to_owned();
        let leftovers = Leftovers::default();
        let cluster = Cluster::existing(client.clone(), config, Arc::clone(&leftovers));
        let refusals = cluster.refusals().clone();
        let test = AssertUnwindSafe(test(cluster)).catch_unwind();
        let ended = tokio::time::timeout(PATIENCE, test).await;
        let cleaned = clean_up(&leftovers).await;
        let client = Client::new(client, "test");
        let deleted = client.delete::<Namespace>(&*namespace, &DeleteParams::background()).await;
        refusals.fail_if_any();
        match ended.expect("the test has not ended in ten minutes") {
            Ok(()) => {
                cleaned.expect("what the test has left can be cleaned up");
                deleted.expect("the namespace of the test can be deleted");
            }
            Err(panic) => resume_unwind(panic),
        }
    });
}

/// Does all that is left to do, whether or not some of it fails.
async fn clean_up(leftovers: &Leftovers) -> Result<()> {
    let mut outcome = Ok(());
    loop {
        let last = leftovers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(last) = last else { return outcome };
        outcome = outcome.and(last.await);
    }
}

/// A client whose default namespace is new, and how others like it are made.
async fn connect(path: &str) -> Result<(kube::Client, kube::Config)> {
    let kubeconfig = Kubeconfig::read_from(path)?;
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    config.default_retry = false; // as the manager's client
    let client = Client::new(kube::Client::try_from(config.clone())?, "test");
    let metadata =
        ObjectMeta { generate_name: Some("steersman-test-".into()), ..ObjectMeta::default() };
    let namespace = client.create(&Namespace { metadata, ..Namespace::default() }).await?;
    config.default_namespace = namespace.metadata.name.unwrap_or_default();
    Ok((kube::Client::try_from(config.clone())?, config))
}

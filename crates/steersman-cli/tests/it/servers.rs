//! Several programs on one etcd: all serve, one runs the controllers.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, CustomResourceExt};
use serde_json::json;
use steersman::informer::Informer;
use steersman_examples::app_service::AppService;
use tokio::time::Instant;

use crate::etcd_process::Etcd;
use crate::load::{self, Load};
use crate::program::{LEASE_SECONDS, Program};
use crate::workload::{assert_equal, deploy, eventually, pods, roll, rolled_out};

/// Who runs the controllers, if somebody does.
async fn leader(client: &kube::Client) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    leases.get_opt("steersman").await.unwrap()?.spec?.holder_identity
}

/// Two programs on one etcd, of which the first runs the controllers.
async fn two(etcd: &Etcd) -> (Program, Program) {
    let first = Program::up_on_etcd(&etcd.endpoints(), &[]);
    let client = first.kube().await;
    eventually("somebody leads", || async { leader(&client).await.is_some() }).await;
    (first, Program::up_on_etcd(&etcd.endpoints(), &[]))
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_and_rollouts_finish_when_the_leader_is_killed_under_load() {
    let etcd = Etcd::start().await;
    let (mut leads, mut follows) = two(&etcd).await;
    for (n, program) in [&leads, &follows].into_iter().enumerate() {
        deploy(&program.kube().await, &format!("web-{n}"), 3).await;
    }
    let mut acknowledged = BTreeSet::new();
    for round in 0..2 {
        let clients = [leads.kube().await, follows.kube().await];
        let survivor = &clients[1];
        let cache = Informer::<ConfigMap>::builder(survivor.clone()).start();
        let before = leader(survivor).await;
        let mut load = Load::start(&clients, 4, &format!("round-{round}"));
        load.passes(100).await;
        let replicas = 5 + round;
        for (n, client) in clients.iter().enumerate() {
            roll(client, &format!("web-{n}"), replicas, &format!("nginx:{round}")).await;
        }
        leads.kill();
        load.passes(100).await; // the other one takes writes without a pause
        for n in 0..2 {
            rolled_out(survivor, &format!("web-{n}"), replicas).await;
        }
        assert_ne!(leader(survivor).await, before, "another leads now");
        acknowledged.append(&mut load.end());
        load::assert_kept(survivor, &acknowledged).await;
        assert_equal(&cache, survivor).await;

        let said = leads.start_again();
        assert!(said.contains("etcd at http") && said.contains("by election"), "{said}");
        load::assert_kept(&leads.kube().await, &acknowledged).await;
        std::mem::swap(&mut leads, &mut follows);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_stopped_hands_over_at_once() {
    let etcd = Etcd::start().await;
    let (mut leads, follows) = two(&etcd).await;
    let client = follows.kube().await;
    deploy(&client, "web", 3).await;
    rolled_out(&client, "web", 3).await;
    let (before, running) = (leader(&client).await, pods(&client).await);
    leads.stop();
    let stopped = Instant::now();
    eventually("the one that is left leads", || async {
        let now = leader(&client).await;
        now.is_some() && now != before
    })
    .await;
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(LEASE_SECONDS) * 2 / 3, "it took {took:?}");
    roll(&client, "web", 4, "nginx:1").await;
    rolled_out(&client, "web", 4).await;
    let after = pods(&client).await;
    assert!(
        running.iter().all(|(name, uid)| after.get(name) == Some(uid)),
        "{running:?} {after:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_defined_through_one_server_holds_on_the_other() {
    let etcd = Etcd::start().await;
    let (a, b) = two(&etcd).await;
    let (a, b) = (a.kube().await, b.kube().await);

    let definitions: Api<CustomResourceDefinition> = Api::all(a.clone());
    definitions.create(&PostParams::default(), &AppService::crd()).await.unwrap();
    let kind = GroupVersionKind::gvk("demo.steersman.dev", "v1alpha1", "AppService");
    let resource = ApiResource::from_gvk(&kind);
    let apps: Api<DynamicObject> = Api::default_namespaced_with(b.clone(), &resource);
    let shop = DynamicObject::new("shop", &resource)
        .data(json!({"spec": {"deploymentName": "shop", "replicas": 1}}));
    eventually("the other one serves the kind", || async {
        apps.create(&PostParams::default(), &shop).await.is_ok()
    })
    .await;
    let seen: Api<DynamicObject> = Api::default_namespaced_with(a.clone(), &resource);
    assert_eq!(seen.list(&ListParams::default()).await.unwrap().items.len(), 1);
    definitions.delete("appservices.demo.steersman.dev", &Default::default()).await.unwrap();
    eventually("the other one serves it no longer", || async {
        apps.list(&ListParams::default()).await.is_err()
    })
    .await;

    let webhook = json!({
        "metadata": {"name": "nobody-passes"},
        "webhooks": [{
            "name": "nobody.passes.test", "sideEffects": "None", "timeoutSeconds": 1,
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                       "resources": ["configmaps"]}],
        }],
    });
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(b.clone());
    let webhook = serde_json::from_value(webhook).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(a.clone());
    let mut map = ConfigMap::default();
    map.metadata.generate_name = Some("a-".into());
    maps.create(&PostParams::default(), &map).await.unwrap();
    webhooks.create(&PostParams::default(), &webhook).await.unwrap();
    eventually("the other one asks the webhook", || async {
        let refused = maps.create(&PostParams::default(), &map).await.err();
        refused.is_some_and(|error| error.to_string().contains("nobody.passes.test"))
    })
    .await;
}

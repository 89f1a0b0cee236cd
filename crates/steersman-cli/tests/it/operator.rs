//! An operator on `steersman up`, as it is deployed: what it prints is applied by kubectl, and it runs
//! with a token of its service account, over HTTPS.

use kube::Api;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use steersman::Manager;
use steersman_examples::app_service::{AppService, app_services, manifests};

use crate::program::Program;
use crate::workload::eventually;

const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/manifests/shop.yaml");

/// How to reach the program with this token and nothing else.
async fn bearing(program: &Program, token: &str) -> kube::Config {
    let kubeconfig = Kubeconfig::read_from(program.directory.join("kubeconfig")).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.auth_info = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn under_what_it_prints_nothing_is_refused() {
    let program = Program::up(&[]);
    let created = ["app-services created", "appservices.demo.steersman.dev created"];
    program.says_to(&manifests().to_string(), "apply -f -", &created);
    let token = program.says("create token app-services", &[]);
    let manager = Manager::from_config(bearing(&program, token.trim()).await).unwrap();
    let metrics = manager.metrics().clone();
    let operator = manager.with(app_services()).start();
    operator.ready().await.unwrap();
    program.says(&format!("apply -f {SHOP}"), &["appservice.demo.steersman.dev/shop created"]);
    let apps: Api<AppService> = Api::default_namespaced(program.kube().await);
    eventually("the shop is available", || async {
        apps.get("shop").await.is_ok_and(|shop| shop.available() == shop.spec.replicas)
    })
    .await;
    operator.stop().await;
    let counted = metrics.render();
    assert!(counted.contains("rest_client_requests_total{code=\"200\""), "{counted}");
    assert!(!counted.contains("code=\"403\""), "{counted}");

    // The token is good for that and no more.
    let bearing = program.bearing(&token);
    program.says(&format!("{bearing} get appservices"), &["shop"]);
    let user =
        "User \"system:serviceaccount:default:app-services\" cannot list resource \"secrets\"";
    program.refuses(&format!("{bearing} get secrets"), &[user]);
}

//! Programs under the permissions of their manifests, and how a test tells what is missing there.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Secret};
use kube::api::DeleteParams;
use steersman::election::LeaderElection;
use steersman::informer::Informer;
use steersman::manifests::{Manifests, rule};
use steersman::{Client, Context, Controller, Manager, Next, ObjectKey, Result};
use steersman_testkit::{Cluster, Fault, Faults, Settings, run_with};

use super::config_map;

fn secret(name: &str) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.into());
    secret
}

/// Makes a Secret for each ConfigMap `map`, past what it declares, and does not mind if it cannot.
async fn make_secret(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Next> {
    let mut wanted = secret("made");
    wanted.metadata.namespace.clone_from(&map.metadata.namespace);
    let key = ObjectKey::of(&wanted);
    if let Ok(None) | Err(_) = ctx.live().get::<Secret>(key).await {
        let _ = ctx.live().create(&wanted).await;
    }
    Ok(Next::Settled)
}

fn maps() -> Controller {
    let ours = |map: &ConfigMap| map.metadata.name.as_deref() == Some("map");
    Controller::of::<ConfigMap>().named("maps").only(ours).reconcile(make_secret)
}

fn manifests() -> Manifests {
    Manifests::new("maps", "operators").controller(&maps())
}

/// What a test fails with that is run on an API server alone.
fn failure(test: impl AsyncFnOnce(Cluster)) -> String {
    let run = || run_with(Settings::bare(1), |cluster| test(cluster));
    let panic: Box<dyn Any + Send> = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    *panic.downcast::<String>().expect("the test fails with a text")
}

#[test]
fn what_is_missing_fails_the_test_and_says_what_to_add() {
    let failure = failure(async |cluster| {
        let deployed = cluster.deploy(&manifests()).await.unwrap();
        deployed.run(maps());
        cluster.client().create(&config_map("map")).await.unwrap();
        cluster.advance(Duration::from_secs(60)).await;
        // The refusals were handled, and the test does not look at them.
    });
    let expected = r#"the manifests of operators/maps do not allow what it asked for:
  - create, get secrets in the namespace default
    add to the manifests: .allow(rule(["create", "get"], "secrets"))
    refused: create (POST /api/v1/namespaces/default/secrets, in the reconcile maps default/map)
    refused: get (GET /api/v1/namespaces/default/secrets/made, in the reconcile maps default/map)"#;
    assert_eq!(failure, expected);
}

#[steersman::test(nodes = 0, controllers = false)]
async fn with_what_it_said_to_add_nothing_is_missing(cluster: Cluster) -> Result<()> {
    let manifests = manifests().allow(rule(["create", "get"], "secrets"));
    let deployed = cluster.deploy(&manifests).await?;
    deployed.run(maps());
    cluster.client().create(&config_map("map")).await?;
    cluster.eventually("made", |_: &Secret| true).await?;
    assert_eq!(deployed.missing(), []);
    Ok(())
}

#[test]
fn what_does_not_come_true_for_want_of_a_rule_says_so() {
    let failure = failure(async |cluster| {
        cluster.run_as_deployed(maps()).await.unwrap();
        cluster.client().create(&config_map("map")).await.unwrap();
        let text = cluster.eventually("made", |_: &Secret| true).await.unwrap_err().to_string();
        assert!(text.contains("Secret default/made is not as wanted"), "{text}");
        let advice = r#"add to the manifests: .allow(rule(["create", "get"], "secrets"))"#;
        assert!(text.contains(advice), "{text}");
        panic!("a test that fails by itself");
    });
    assert!(failure.starts_with("the manifests of default/maps do not allow"), "{failure}");
}

#[steersman::test(nodes = 0, controllers = false)]
async fn whoever_expects_refusals_can_take_them(cluster: Cluster) -> Result<()> {
    let deployed = cluster.deploy(&manifests()).await?;
    let client = Client::new(deployed.client(), "test");
    assert!(client.get::<Secret>("a/x").await.is_err());
    assert!(client.get::<Secret>("b/x").await.is_err());
    let [missing] = deployed.missing().try_into().unwrap();
    assert_eq!((&*missing.verbs.join(","), &*missing.resource), ("get", "secrets"));
    assert_eq!(missing.scope, "in the namespace a and in the namespace b");
    let text = missing.to_string();
    assert!(text.contains("GET /api/v1/namespaces/a/secrets/x, in no reconcile"), "{text}");
    assert_eq!(deployed.missing(), []);
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false)]
async fn refusals_for_other_reasons_do_not_count(cluster: Cluster) -> Result<()> {
    let manifests = manifests().allow(rule(["create", "get"], "secrets"));
    let deployed = cluster.deploy(&manifests).await?;
    let mut going = Namespace::default();
    going.metadata.name = Some("going".into());
    cluster.client().create(&going).await?;
    cluster.client().delete::<Namespace>("going", &DeleteParams::default()).await?;
    let client = Client::new(deployed.client(), "test");
    let mut late = secret("late");
    late.metadata.namespace = Some("going".into());
    let refused = client.create(&late).await.unwrap_err();
    assert!(refused.to_string().contains("being terminated"), "{refused}");
    let faults = Faults::seeded(1).with(Fault::Forbidden, 1.0);
    let client = Client::new(deployed.client_with(&faults), "test");
    assert_eq!(client.get::<Secret>("x").await.unwrap_err().status().unwrap().code, 403);
    assert_eq!(deployed.missing(), []);
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false)]
async fn a_program_of_some_namespaces_is_told_where_rules_go(cluster: Cluster) -> Result<()> {
    let manifests = manifests().in_namespaces(["a", "b"]);
    let deployed = cluster.deploy(&manifests).await?;
    deployed.run(maps());
    let mut map = config_map("map");
    map.metadata.namespace = Some("b".into());
    cluster.client().create(&map).await?;
    cluster.client().create(&config_map("map")).await?; // elsewhere: none of its business
    cluster.settle().await;
    let client = Client::new(deployed.client(), "test");
    assert!(client.get::<ConfigMap>("c/x").await.is_err());
    assert!(client.get::<Node>("x").await.is_err());
    let missing: Vec<String> = deployed.missing().iter().map(ToString::to_string).collect();
    let advice = |text: &String| {
        let (_, advice) = text.split_once("add to the manifests: ").unwrap();
        advice.lines().next().unwrap().to_owned()
    };
    let expected = [
        r#".allow(rule(["create", "get"], "secrets"))"#,
        r#".allow_everywhere(rule(["get"], "nodes"))"#,
        r#".allow_in("c", rule(["get"], "configmaps"))"#,
    ];
    assert_eq!(missing.iter().map(advice).collect::<Vec<_>>(), expected);

    // So said, so done.
    let manifests = manifests
        .allow(rule(["create", "get"], "secrets"))
        .allow_everywhere(rule(["get"], "nodes"))
        .allow_in("c", rule(["get"], "configmaps"));
    let deployed = cluster.deploy(&manifests).await?;
    let client = Client::new(deployed.client(), "test");
    client.get::<ConfigMap>("c/x").await?;
    client.get::<Node>("x").await?;
    client.get::<Secret>("a/x").await?;
    assert!(client.get::<ConfigMap>("default/x").await.is_err());
    assert_eq!(deployed.missing().len(), 1);
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false)]
async fn what_else_a_program_needs_is_called_by_its_name(cluster: Cluster) -> Result<()> {
    let deployed = cluster.deploy(&manifests()).await?;
    let election = LeaderElection::new("operators", "maps");
    let running = Manager::new(deployed.client()).with(maps()).leader_election(election).start();
    let nodes = Informer::<Node>::builder(deployed.client()).start();
    cluster.advance(Duration::from_secs(10)).await;
    assert!(!running.is_leader() && nodes.cache().synced().now_or_never().is_none());
    let missing = deployed.missing();
    let resources: Vec<_> = missing.iter().map(|missing| &*missing.resource).collect();
    assert_eq!(resources, ["leases.coordination.k8s.io", "nodes"]);
    let text = missing[0].to_string();
    assert!(text.contains("add to the manifests: .leader_election(), or .allow("), "{text}");
    drop((running, nodes));
    assert_eq!(missing[1].verbs.last().map(String::as_str), Some("watch"));
    assert_eq!(missing[1].scope, "at the cluster scope");

    let deployed = cluster.deploy(&manifests().leader_election()).await?;
    let election = LeaderElection::new("operators", "maps");
    let running = Manager::new(deployed.client()).with(maps()).leader_election(election).start();
    running.elected().await;
    Ok(())
}

/// As a token says it, see the API server's tests of those.
#[steersman::test(nodes = 0, controllers = false, anywhere)]
async fn a_program_is_its_service_account(cluster: Cluster) -> Result<()> {
    let manifests = Manifests::new("nobody", cluster.namespace());
    let deployed = cluster.deploy(&manifests).await?;
    let reviews = kube::Api::all(deployed.client());
    let review = reviews.create(&Default::default(), &SelfSubjectReview::default()).await?;
    let user = review.status.unwrap().user_info.unwrap();
    let namespace = cluster.namespace();
    assert_eq!(user.username, Some(format!("system:serviceaccount:{namespace}:nobody")));
    let expected = [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated".to_owned(),
    ];
    assert_eq!(user.groups.unwrap(), expected);
    assert_eq!(deployed.client().default_namespace(), namespace);
    Ok(())
}

//! What the manager serves: health, metrics, the debug page, and who may read them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::PostParams;
use serde_json::{Value, json};
use steersman::health::Liveness;
use steersman::manager::{Running, Site};
use steersman::manifests::Manifests;
use steersman::webhook::WebhookServer;
use steersman::{Context, Controller, Error, Manager, Next, Result};
use steersman_testkit::Cluster;

use crate::reconcile::{config_map, of_the_test};

const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);
const PUBLIC: ([u8; 4], u16) = ([0, 0, 0, 0], 0);

fn manager(cluster: &Cluster) -> Manager {
    Manager::new(cluster.client().kube().clone())
}

/// The code and the text of an answer, without a socket.
async fn get(
    running: &Running,
    site: &Site,
    path: &str,
    headers: &[(&str, &str)],
) -> (u16, String) {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = running.handler(site)(request.body(Bytes::new()).unwrap()).await;
    let text = String::from_utf8(response.body().to_vec()).unwrap();
    (response.status().as_u16(), text)
}

fn fails(message: &'static str) -> Controller {
    Controller::of::<ConfigMap>().only(of_the_test).named("stubborn").reconcile(
        move |_: Arc<ConfigMap>, _: Context<ConfigMap>| async move {
            Err::<Next, _>(Error::message(message))
        },
    )
}

#[steersman::test]
async fn the_manager_is_ready_once_its_caches_are(cluster: Cluster) -> Result<()> {
    let running = manager(&cluster)
        .with(fails("no"))
        .ready_check("license", async || Err(Error::message("expired")))
        .start();
    let site = Site::health(PUBLIC);
    let (code, text) = get(&running, &site, "/readyz", &[]).await;
    assert!(code == 500 && text.contains("[-]caches failed: reason withheld\n"), "{text}");
    running.ready().await?;
    let (code, text) = get(&running, &site, "/readyz?verbose", &[]).await;
    assert!(code == 500 && text.contains("[+]caches ok\n[+]shutdown ok\n"), "{text}");
    assert!(text.contains("[-]license failed: reason withheld\n"), "{text}");
    assert_eq!(get(&running, &site, "/readyz?exclude=license", &[]).await.0, 200);
    assert_eq!(get(&running, &site, "/healthz", &[]).await, (200, "ok".into()));
    let handler = running.handler(&site);
    running.stop().await;
    let request = Request::get("/readyz/shutdown").body(Bytes::new()).unwrap();
    assert_eq!(handler(request).await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    Ok(())
}

#[steersman::test]
async fn webhooks_are_part_of_what_is_ready(cluster: Cluster) -> Result<()> {
    let server = WebhookServer::builder("shop").in_process().build()?;
    let running = manager(&cluster).webhooks(server).start();
    let site = Site::health(PUBLIC);
    assert_eq!(get(&running, &site, "/readyz/webhooks", &[]).await.0, 500);
    running.ready().await?;
    assert_eq!(get(&running, &site, "/readyz/webhooks", &[]).await.0, 200);
    Ok(())
}

#[steersman::test]
async fn a_worker_that_is_stuck_is_not_alive(cluster: Cluster) -> Result<()> {
    let stuck = Controller::of::<ConfigMap>()
        .only(of_the_test)
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| std::future::pending().await);
    let liveness = Liveness { reconcile_max: Duration::from_secs(600), ..Liveness::default() };
    let running = manager(&cluster).with(stuck).liveness(liveness).start();
    let site = Site::health(PUBLIC);
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(590)).await;
    assert_eq!(get(&running, &site, "/healthz", &[]).await, (200, "ok".into()));
    cluster.advance(Duration::from_secs(20)).await;
    let (code, text) = get(&running, &site, "/healthz", &[]).await;
    assert!(code == 500 && text.contains("[+]watches ok\n[-]workers failed"), "{text}");
    Ok(())
}

#[steersman::test]
async fn metrics_come_in_the_format_that_the_reader_prefers(cluster: Cluster) -> Result<()> {
    let running = manager(&cluster).with(fails("no")).start();
    running.ready().await?;
    let site = Site::metrics(PUBLIC);
    let (code, older) = get(&running, &site, "/metrics", &[]).await;
    assert_eq!(code, 200);
    assert!(older.contains("# TYPE workqueue_adds_total counter\n"), "{older}");
    assert!(!older.contains("# EOF"));
    let of_process = older.contains("\nprocess_cpu_seconds_total ");
    assert_eq!(of_process, cfg!(target_os = "linux"), "{older}");
    let accept = [("accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")];
    let (_, newer) = get(&running, &site, "/metrics", &accept).await;
    assert!(newer.contains("# TYPE workqueue_adds counter\n") && newer.ends_with("# EOF\n"));
    assert_eq!(get(&running, &site, "/healthz", &[]).await.0, 404);
    Ok(())
}

#[steersman::test]
async fn metrics_ask_the_cluster_who_may_read_them(cluster: Cluster) -> Result<()> {
    let manifests = Manifests::new("program", "operators").authenticated_metrics();
    let running = Manager::new(cluster.deploy(&manifests).await?.client()).start();
    let site = Site::all(PUBLIC).authenticated();
    assert_eq!(get(&running, &site, "/metrics", &[]).await, (401, "Unauthorized\n".into()));
    let wrong = [("authorization", "Bearer nonsense")];
    assert_eq!(get(&running, &site, "/metrics", &wrong).await.0, 401);
    assert_eq!(get(&running, &site, "/healthz", &[]).await.0, 200, "probes have no token");
    cluster.eventually("default/default", |_: &ServiceAccount| true).await?;
    let accounts = kube::Api::<ServiceAccount>::default_namespaced(cluster.client().kube().clone());
    let request =
        TokenRequest { spec: Some(TokenRequestSpec::default()), ..TokenRequest::default() };
    let token = accounts.create_token_request("default", &PostParams::default(), &request).await?;
    let bearer = format!("Bearer {}", token.status.unwrap().token.unwrap());
    let (code, text) = get(&running, &site, "/metrics", &[("authorization", &bearer)]).await;
    assert_eq!(code, 403, "{text}");
    let scraper: ClusterRole = serde_json::from_value(json!({"metadata": {"name": "scraper"},
        "rules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]}))?;
    cluster.client().create(&scraper).await?;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "scraper"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scraper"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]}))?;
    cluster.client().create(&binding).await?;
    cluster.advance(Duration::from_secs(60)).await; // decisions are remembered for a while
    let (code, text) = get(&running, &site, "/metrics", &[("authorization", &bearer)]).await;
    assert_eq!(code, 200, "{text}");
    Ok(())
}

#[steersman::test]
async fn the_debug_page_tells_what_fails_and_why(cluster: Cluster) -> Result<()> {
    let running = manager(&cluster).with(fails("<b>no</b>")).start();
    running.caches().informer::<ConfigMap>().cache().synced().await;
    for name in ["a", "b"] {
        cluster.client().create(&config_map(name)).await?;
    }
    cluster.advance(Duration::from_secs(60)).await;
    let site = Site::all(LOCAL);
    let (code, text) = get(&running, &site, "/debug", &[]).await;
    assert_eq!(code, 200);
    let page: Value = serde_json::from_str(&text)?;
    assert_eq!(page["controllers"], json!([{"name": "stubborn", "phase": "working"}]));
    assert_eq!(page["caches"][0]["kind"], "ConfigMap");
    assert_eq!(page["caches"][0]["synced"], true);
    assert!(page["caches"][0]["bytes"].as_u64() > Some(100), "{page}");
    assert_eq!(page["queues"][0]["counts"], json!({"backingOff": 2}));
    let (_, text) = get(&running, &site, "/debug/json?key=default%2Fb", &[]).await;
    let page: Value = serde_json::from_str(&text)?;
    assert_eq!(page["queues"][0]["keys"].as_array().map(Vec::len), Some(1));
    assert_eq!(page["queues"][0]["keys"][0]["key"], "default/b");
    let history = &page["history"][0];
    assert_eq!(history["failing"][0]["outcome"], "failed: <b>no</b>");
    let reconciles = history["recent"].as_array().unwrap();
    assert!(reconciles.iter().all(|record| record["key"] == "default/b"), "{history}");
    let browser = [("accept", "text/html,application/xhtml+xml")];
    let (_, html) = get(&running, &site, "/debug", &browser).await;
    assert!(html.starts_with("<!doctype html>") && html.contains("default/a"), "{html}");
    assert!(html.contains("failed: &lt;b&gt;no") && !html.contains("<b>no"), "{html}");
    assert!(html.contains("ConfigMap default/a created"), "why it was reconciled: {html}");
    Ok(())
}

#[steersman::test]
async fn the_debug_page_is_not_open_to_everybody(cluster: Cluster) {
    let running = manager(&cluster).start();
    let code = async |site: Site| get(&running, &site, "/debug", &[]).await.0;
    assert_eq!(code(Site::all(PUBLIC)).await, 404);
    assert_eq!(code(Site::all(PUBLIC).debug(true)).await, 200);
    assert_eq!(code(Site::all(PUBLIC).authenticated()).await, 401);
    assert_eq!(code(Site::all(LOCAL)).await, 200);
    assert_eq!(code(Site::all(LOCAL).debug(false)).await, 404);
    assert_eq!(code(Site::health(LOCAL)).await, 404);
}

#[steersman::test]
async fn a_site_serves_what_else_it_is_told_to(cluster: Cluster) {
    let running = manager(&cluster).start();
    let greets = steersman::serve::handler(async |request: Request<Bytes>| {
        steersman::serve::text(StatusCode::OK, format!("hello from {}", request.uri().path()))
    });
    let site = Site::metrics(PUBLIC).route("/hello/", greets);
    let answer = get(&running, &site, "/hello/you", &[]).await;
    assert_eq!(answer, (200, "hello from /hello/you".into()));
    assert_eq!(get(&running, &site, "/hellos", &[]).await.0, 404);
    assert_eq!(get(&running, &site, "/", &[]).await.0, 404);
}

/// On real time and a real socket.
#[tokio::test]
async fn health_is_served_at_the_address_that_the_manager_tells() -> Result<()> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let cluster = steersman_cluster::Cluster::builder().nodes(0).controllers(false).start().await?;
    let manager = Manager::new(cluster.client()).serve(Site::all(LOCAL)).serve(Site::health(LOCAL));
    let running = manager.start();
    running.ready().await?;
    let addresses = running.addresses();
    assert_eq!(addresses.len(), 2);
    let mut stream = tokio::net::TcpStream::connect(addresses[1]).await?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nok"), "{answer}");
    running.stop().await;
    assert!(tokio::net::TcpStream::connect(addresses[1]).await.is_err(), "still listens");
    Ok(())
}

#[tokio::test]
async fn an_address_in_use_stops_the_manager_with_a_clear_error() -> Result<()> {
    let cluster = steersman_cluster::Cluster::builder().nodes(0).controllers(false).start().await?;
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let site = Site::health(taken.local_addr()?);
    let ended = Manager::new(cluster.client()).serve(site).run_until(std::future::pending()).await;
    let error = ended.unwrap_err().to_string();
    assert!(error.starts_with("server at 127.0.0.1:") && error.contains("in use"), "{error}");
    Ok(())
}

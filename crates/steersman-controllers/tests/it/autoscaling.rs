//! Autoscalers follow the load of their targets.
//!
//! What Pods use is a rule for simulated Pods, which the cluster's metrics server tells; other metrics
//! are set. Where the cluster has no metrics server, the API is a definition here, whose objects say
//! what is measured.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use steersman::{Result, clock};
use steersman_testkit::{Cluster, Restarts};

use crate::events::told;
use crate::objects::{all_become, counted, deployment, is_ready, object};
use crate::restarts::{built_in, small};

const SECOND: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_secs(15);

/// What the kind of a metric is called.
#[derive(Clone, Copy)]
struct Names {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
}

const POD_METRICS: Names =
    Names { group: "metrics.k8s.io", version: "v1beta1", kind: "PodMetrics", plural: "pods" };
const BOATS: Names = Names { group: "example.com", version: "v1", kind: "Boat", plural: "boats" };

/// Serves a kind whose objects may have any fields.
async fn serve(names: Names, subresources: &Value, cluster: &Cluster) -> Result<()> {
    let Names { group, version, kind, plural } = names;
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition: CustomResourceDefinition = object(json!({
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "https://example.com/approved"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    }));
    cluster.define(&definition).await
}

fn api(names: Names, cluster: &Cluster) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(names.group, names.version, names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, names.plural);
    Api::namespaced_with(cluster.client().kube().clone(), "default", &resource)
}

/// Says what is measured now, of an object with these labels.
async fn measured(
    names: Names,
    name: &str,
    labels: &Value,
    fields: &Value,
    cluster: &Cluster,
) -> Result<()> {
    let mut metric = json!({
        "apiVersion": format!("{}/{}", names.group, names.version),
        "kind": names.kind,
        "metadata": {"name": name, "labels": labels},
        "timestamp": clock::now_time(),
        "window": "30s",
    });
    for (key, value) in fields.as_object().into_iter().flatten() {
        metric[key] = value.clone();
    }
    let force = PatchParams::apply("test").force();
    api(names, cluster).patch(name, &force, &Patch::Apply(metric)).await?;
    Ok(())
}

/// Lets every Pod of the Deployment use this much CPU time from now on.
fn load(cluster: &Cluster, cpu: &str) {
    cluster.pods().labelled("app", "web").uses(cpu, "64Mi");
}

/// A Deployment whose Pods ask for a tenth of a CPU, once they run for a minute.
async fn run(cluster: &Cluster, replicas: i32) -> Result<()> {
    let mut web = deployment("web", replicas, "nginx");
    let pod = web.spec.as_mut().and_then(|spec| spec.template.spec.as_mut());
    let pod = pod.expect("a Deployment has Pods");
    pod.containers[0].resources = Some(object(json!({"requests": {"cpu": "100m"}})));
    cluster.client().create(&web).await?;
    runs(cluster, replicas).await?;
    cluster.advance(60 * SECOND).await;
    Ok(())
}

/// Waits until so many Pods run.
async fn runs(cluster: &Cluster, replicas: i32) -> Result<()> {
    let wanted = usize::try_from(replicas)?;
    let run = |pods: &[Pod]| pods.len() == wanted && pods.iter().all(is_ready);
    all_become(cluster, run).await.map(drop)
}

async fn scale(cluster: &Cluster, name: &str, changes: &Value) -> Result<()> {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let mut spec = json!({
        "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10,
        "metrics": [{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
        }}],
    });
    for (key, value) in changes.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let autoscaler: HorizontalPodAutoscaler =
        object(json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}));
    cluster.client().create(&autoscaler).await.map(drop)
}

async fn size(cluster: &Cluster) -> Result<i32> {
    let web: Option<Deployment> = cluster.client().get("web").await?;
    let size = web.and_then(|web| web.spec?.replicas);
    Ok(size.expect("there is a Deployment, with a size"))
}

/// What an autoscaler says of itself: type, status, reason and message of each condition.
async fn conditions(cluster: &Cluster, name: &str) -> Result<Vec<String>> {
    let found: Option<HorizontalPodAutoscaler> = cluster.client().get(name).await?;
    let status = found.and_then(|found| found.status).unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let line = |condition: &Value| {
        let said = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}: {}", said("type"), said("status"), said("reason"), said("message"))
    };
    Ok(conditions.iter().map(|condition| line(&json!(condition))).collect())
}

const SAID: &str = "horizontal-pod-autoscaler";

#[steersman::test]
async fn a_target_grows_with_its_load_and_shrinks_after_five_quiet_minutes(
    cluster: Cluster,
) -> Result<()> {
    run(&cluster, 2).await?;
    load(&cluster, "100m");
    scale(&cluster, "web", &json!({})).await?;
    cluster.advance(PERIOD - SECOND).await;
    assert_eq!(size(&cluster).await?, 2, "it has its turn after one period");
    cluster.advance(2 * SECOND).await;
    runs(&cluster, 4).await?;
    let able = "AbleToScale True";
    let valid = "ScalingActive True ValidMetricFound: the HPA was able to successfully calculate a \
                 replica count from cpu resource utilization (percentage of request)";
    let range = "ScalingLimited False DesiredWithinRange: the desired count is within the \
                 acceptable range";
    let rescaled = format!(
        "{able} SucceededRescale: the HPA controller was able to update the target scale to 4"
    );
    assert_eq!(conditions(&cluster, "web").await?, [&rescaled, valid, range]);

    // Now that there are more of them, each has less to do.
    load(&cluster, "50m");
    cluster.advance(4 * PERIOD).await;
    assert_eq!(size(&cluster).await?, 4);
    let web: HorizontalPodAutoscaler = cluster.client().get("web").await?.unwrap();
    let status = json!(web.status);
    let current = json!({"averageUtilization": 50, "averageValue": "50m"});
    let metric = json!({"type": "Resource", "resource": {"name": "cpu", "current": current}});
    assert_eq!(status["currentMetrics"], json!([metric]));
    assert_eq!((&status["currentReplicas"], &status["desiredReplicas"]), (&json!(4), &json!(4)));
    assert!(status["lastScaleTime"].is_string());

    load(&cluster, "10m");
    cluster.advance(240 * SECOND).await;
    let held = format!(
        "{able} ScaleDownStabilized: recent recommendations were higher than current one, applying \
         the highest recent recommendation"
    );
    assert_eq!(conditions(&cluster, "web").await?[0], held);
    assert_eq!(size(&cluster).await?, 4);
    cluster.advance(90 * SECOND).await;
    runs(&cluster, 1).await?;
    assert_eq!(
        told(&cluster, "HorizontalPodAutoscaler").await?,
        [
            format!(
                "{SAID} Normal SuccessfulRescale: New size: 1; reason: All metrics below target"
            ),
            format!(
                "{SAID} Normal SuccessfulRescale: New size: 4; reason: cpu resource utilization \
                 (percentage of request) above target"
            ),
        ]
    );
    check_metrics(&cluster).await
}

/// What is counted of a target that grew once and shrank once.
async fn check_metrics(cluster: &Cluster) -> Result<()> {
    for (name, count) in [
        (r#"reconciliations_total{action="scale_up",error="none"}"#, 1.0),
        (r#"reconciliation_duration_seconds_count{action="scale_down",error="none"}"#, 1.0),
        ("num_horizontal_pod_autoscalers", 1.0),
        (r#"desired_replicas{namespace="default",hpa_name="web"}"#, 1.0),
    ] {
        let name = format!("horizontal_pod_autoscaler_controller_{name}");
        assert_eq!(counted(cluster, &name).await?, Some(count), "{name}");
    }
    let computed =
        "metric_computation_total{action=\"none\",error=\"none\",metric_type=\"Resource\"}";
    let computed = format!("horizontal_pod_autoscaler_controller_{computed}");
    assert!(counted(cluster, &computed).await? > Some(1.0));
    Ok(())
}

#[steersman::test(which = "*,-metrics-server".parse().unwrap())]
async fn without_metrics_nothing_changes_and_the_autoscaler_says_why(
    cluster: Cluster,
) -> Result<()> {
    run(&cluster, 2).await?;
    scale(&cluster, "web", &json!({})).await?;
    cluster.advance(3 * PERIOD).await;
    let why = "failed to get cpu utilization: unable to get metrics for resource cpu: unable to \
               fetch metrics from resource metrics API: the server could not find the requested \
               resource (get pods.metrics.k8s.io)";
    assert_eq!(
        conditions(&cluster, "web").await?,
        [
            "AbleToScale True SucceededGetScale: the HPA controller was able to get the target's \
             current scale"
                .to_owned(),
            format!(
                "ScalingActive False FailedGetResourceMetric: the HPA was unable to compute the \
                 replica count: {why}"
            ),
        ]
    );
    assert_eq!(
        told(&cluster, "HorizontalPodAutoscaler").await?,
        [
            format!(
                "{SAID} Warning FailedComputeMetricsReplicas: invalid metrics (1 invalid out of \
                 1), first error is: failed to get cpu resource metric value: {why}"
            ),
            format!("{SAID} Warning FailedGetResourceMetric: {why}"),
        ]
    );
    assert_eq!(size(&cluster).await?, 2);
    serve(POD_METRICS, &json!({}), &cluster).await?;
    cluster.advance(2 * PERIOD).await;
    let none = "no metrics returned from resource metrics API";
    let conditions = conditions(&cluster, "web").await?;
    assert!(conditions[1].ends_with(none), "{conditions:#?}");
    Ok(())
}

#[steersman::test(nodes = 0, which = "*,-metrics-server".parse().unwrap())]
async fn what_pods_that_do_not_run_use_does_not_count(cluster: Cluster) -> Result<()> {
    serve(POD_METRICS, &json!({}), &cluster).await?;
    cluster.client().create(&deployment("web", 2, "nginx")).await?;
    for pod in all_become(&cluster, |pods: &[Pod]| pods.len() == 2).await? {
        let usage = json!({"containers": [{"name": "main", "usage": {"cpu": "1"}}]});
        let name = pod.metadata.name.as_deref().expect("every Pod has a name");
        measured(POD_METRICS, name, &json!(pod.metadata.labels), &usage, &cluster).await?;
    }
    scale(&cluster, "web", &json!({})).await?;
    cluster.advance(2 * PERIOD).await;
    let active = conditions(&cluster, "web").await?.remove(1);
    let why = "did not receive metrics for targeted pods (pods might be unready)";
    assert!(active.ends_with(&format!("failed to get cpu utilization: {why}")), "{active}");
    assert_eq!(size(&cluster).await?, 2);
    Ok(())
}

#[steersman::test]
async fn two_autoscalers_of_the_same_pods_do_nothing(cluster: Cluster) -> Result<()> {
    run(&cluster, 2).await?;
    scale(&cluster, "one", &json!({})).await?;
    scale(&cluster, "two", &json!({})).await?;
    // Each knows of the other before there is a reason to scale.
    cluster.advance(PERIOD).await;
    load(&cluster, "100m");
    cluster.advance(3 * PERIOD).await;
    let ambiguous = "ScalingActive False AmbiguousSelector: pods by selector app=web are controlled \
                     by multiple HPAs: [default/one default/two]";
    for name in ["one", "two"] {
        assert_eq!(conditions(&cluster, name).await?[1], ambiguous);
    }
    assert_eq!(size(&cluster).await?, 2);
    cluster.advance(SECOND).await; // not in the moment at which they are looked at
    cluster.client().delete::<HorizontalPodAutoscaler>("two", &DeleteParams::default()).await?;
    let is_scaled =
        |web: &Deployment| web.spec.as_ref().is_some_and(|spec| spec.replicas == Some(4));
    cluster.eventually("web", is_scaled).await?;
    Ok(())
}

#[steersman::test]
async fn a_target_of_any_kind_is_kept_within_bounds_and_needs_a_selector_for_more(
    cluster: Cluster,
) -> Result<()> {
    let paths =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    serve(BOATS, &json!({"scale": paths, "status": {}}), &cluster).await?;
    let mut boat = DynamicObject::new(
        "argo",
        &ApiResource::from_gvk(&GroupVersionKind::gvk(BOATS.group, BOATS.version, BOATS.kind)),
    );
    boat.data = json!({"spec": {"replicas": 7}});
    api(BOATS, &cluster).create(&Default::default(), &boat).await?;
    let target = json!({"apiVersion": "example.com/v1", "kind": "Boat", "name": "argo"});
    scale(&cluster, "fleet", &json!({"scaleTargetRef": target, "maxReplicas": 5})).await?;
    cluster.advance(3 * PERIOD).await;
    let argo = api(BOATS, &cluster).get("argo").await?;
    assert_eq!(argo.data["spec"]["replicas"], 5);
    let active =
        "ScalingActive False InvalidSelector: the HPA target's scale is missing a selector";
    assert_eq!(conditions(&cluster, "fleet").await?[1], active);
    assert_eq!(
        told(&cluster, "HorizontalPodAutoscaler").await?,
        [
            format!(
                "{SAID} Normal SuccessfulRescale: New size: 5; reason: Current number of replicas \
                 above Spec.MaxReplicas"
            ),
            format!("{SAID} Warning FailedComputeMetricsReplicas: selector is required"),
            format!("{SAID} Warning SelectorRequired: selector is required"),
        ]
    );
    Ok(())
}

#[steersman::test]
async fn a_target_that_is_not_there_is_told_of(cluster: Cluster) -> Result<()> {
    let boat = json!({"apiVersion": "example.com/v1", "kind": "Boat", "name": "argo"});
    scale(&cluster, "web", &json!({})).await?;
    scale(&cluster, "boat", &json!({"scaleTargetRef": boat})).await?;
    cluster.advance(2 * PERIOD).await;
    let unable = "AbleToScale False FailedGetScale: the HPA controller was unable to get the \
                  target's current scale";
    let web = [format!("{unable}: deployments.apps \"web\" not found")];
    assert_eq!(conditions(&cluster, "web").await?, web);
    let boat = [format!("{unable}: no matches for kind \"Boat\" in group \"example.com\"")];
    assert_eq!(conditions(&cluster, "boat").await?, boat);
    Ok(())
}

#[steersman::test]
async fn somebody_who_scales_to_zero_switches_the_autoscaler_off(cluster: Cluster) -> Result<()> {
    run(&cluster, 1).await?;
    cluster.client().set_scale::<Deployment>("web", 0).await?;
    scale(&cluster, "web", &json!({})).await?;
    cluster.advance(3 * PERIOD).await;
    let off = "ScalingActive False ScalingDisabled: scaling is disabled since the replica count of \
               the target is zero";
    assert_eq!(conditions(&cluster, "web").await?[1], off);
    assert_eq!(size(&cluster).await?, 0);
    Ok(())
}

#[steersman::test]
async fn an_external_metric_and_policies_decide_how_fast_a_target_grows(
    cluster: Cluster,
) -> Result<()> {
    run(&cluster, 1).await?;
    for queue in ["mail", "post"] {
        let queue = cluster.metrics().external().series("queue", queue);
        queue.set("queue-length", "60").await?;
    }
    let metric = json!({"name": "queue-length", "selector": {"matchLabels": {"queue": "mail"}}});
    let target = json!({"type": "AverageValue", "averageValue": "10"});
    let metrics = json!([{"type": "External", "external": {"metric": metric, "target": target}}]);
    let policies = json!([{"type": "Pods", "value": 2, "periodSeconds": 60}]);
    let behavior = json!({"scaleUp": {"policies": policies}});
    scale(&cluster, "web", &json!({"metrics": metrics, "behavior": behavior})).await?;
    cluster.advance(PERIOD + SECOND).await;
    assert_eq!(size(&cluster).await?, 3);
    cluster.advance(2 * PERIOD).await;
    assert_eq!(size(&cluster).await?, 3, "two in a minute");
    let fast = "ScalingLimited True ScaleUpLimit: the desired replica count is increasing faster \
                than the maximum scale rate";
    assert_eq!(conditions(&cluster, "web").await?[2], fast);
    cluster.advance(2 * PERIOD).await;
    assert_eq!(size(&cluster).await?, 5);
    cluster.advance(4 * PERIOD).await;
    assert_eq!(size(&cluster).await?, 6);
    let told = told(&cluster, "HorizontalPodAutoscaler").await?;
    let selector = "&LabelSelector{MatchLabels:map[string]string{queue: mail,},\
                    MatchExpressions:[]LabelSelectorRequirement{},}";
    let grown = |to: i32| {
        format!(
            "{SAID} Normal SuccessfulRescale: New size: {to}; reason: external metric \
             queue-length({selector}) above target"
        )
    };
    assert_eq!(told, [grown(3), grown(5), grown(6)]);
    Ok(())
}

/// The JSON at a path.
async fn raw(cluster: &Cluster, path: &str) -> Result<Value> {
    let request = http::Request::get(path).body(Vec::new())?;
    Ok(cluster.client().kube().request(request).await?)
}

#[steersman::test]
async fn metrics_of_pods_and_of_objects_decide_once_somebody_measures_them(
    cluster: Cluster,
) -> Result<()> {
    run(&cluster, 2).await?;
    let metric = |name: &str| json!({"name": name});
    let target = |value: &str| json!({"type": "AverageValue", "averageValue": value});
    let pods =
        json!([{"type": "Pods", "pods": {"metric": metric("hits"), "target": target("15")}}]);
    scale(&cluster, "web", &json!({"metrics": pods})).await?;
    cluster.advance(2 * PERIOD + SECOND).await;
    let unable = "the HPA was unable to compute the replica count: unable to get metric";
    let custom = "unable to fetch metrics from custom metrics API";
    let active = |why: &str| format!("ScalingActive False {why}");
    let none = "no custom metrics API (custom.metrics.k8s.io) registered";
    let none = active(&format!("FailedGetPodsMetric: {unable} hits: {custom}: {none}"));
    assert_eq!(conditions(&cluster, "web").await?[1], none);
    assert!(!raw(&cluster, "/apis").await?.to_string().contains("custom.metrics.k8s.io"));

    cluster.metrics().pods().labelled("app", "other").set("hits", "1").await?;
    cluster.advance(PERIOD + SECOND).await;
    let none = format!("{unable} hits: no metrics returned from custom metrics API");
    let none = active(&format!("FailedGetPodsMetric: {none}"));
    assert_eq!(conditions(&cluster, "web").await?[1], none);
    cluster.metrics().pods().labelled("app", "web").set("hits", "30").await?;
    cluster.advance(PERIOD).await;
    assert_eq!(size(&cluster).await?, 4);

    let service = json!({"apiVersion": "v1", "kind": "Service", "name": "web"});
    let of_service = |name: &str| {
        let object =
            json!({"describedObject": service, "metric": metric(name), "target": target("10")});
        Patch::Merge(json!({"spec": {"metrics": [{"type": "Object", "object": object}]}}))
    };
    cluster.client().patch::<HorizontalPodAutoscaler, _>("web", &of_service("load")).await?;
    cluster.advance(PERIOD).await;
    let missing = "the server could not find the metric load for services web";
    let missing = format!("{unable} load: Service on default web/{custom}: {missing}");
    let missing = active(&format!("FailedGetObjectMetric: {missing}"));
    assert_eq!(conditions(&cluster, "web").await?[1], missing);
    let annotated: Service = object(json!({
        "metadata": {"name": "web", "annotations": {"steersman.dev/metric.load": "60"}},
        "spec": {"ports": [{"port": 80}]},
    }));
    cluster.client().create(&annotated).await?;
    cluster.advance(PERIOD).await;
    assert_eq!(size(&cluster).await?, 6);
    cluster.metrics().object("services", "web").set("load", "75").await?;
    cluster.advance(PERIOD).await;
    assert_eq!(size(&cluster).await?, 8, "what is set counts more than an annotation");
    let grown = told(&cluster, "HorizontalPodAutoscaler").await?;
    for reason in [
        "New size: 4; reason: pods metric hits above target",
        "New size: 6; reason: external metric load(nil) above target",
    ] {
        let line = format!("{SAID} Normal SuccessfulRescale: {reason}");
        assert!(grown.contains(&line), "{line}: {grown:#?}");
    }
    Ok(())
}

#[steersman::test(nodes = 0)]
async fn metrics_that_are_set_can_be_read_by_anybody(cluster: Cluster) -> Result<()> {
    cluster.metrics().object("namespaces", "default").set("visitors", "1500m").await?;
    cluster.metrics().external().in_namespace("default").set("tide", "3").await?;
    let now = clock::now_time();
    let custom = "/apis/custom.metrics.k8s.io";
    let resource = json!({
        "name": "namespaces/visitors", "singularName": "", "namespaced": false,
        "kind": "MetricValueList", "verbs": ["get"],
    });
    assert_eq!(raw(&cluster, &format!("{custom}/v1beta2")).await?["resources"], json!([resource]));
    let group = raw(&cluster, custom).await?;
    assert_eq!(group["preferredVersion"]["version"], "v1beta2");
    let described = json!({"kind": "Namespace", "name": "default", "apiVersion": "/v1"});
    let path = "namespaces/default/metrics/visitors";
    assert_eq!(
        raw(&cluster, &format!("{custom}/v1beta2/{path}")).await?,
        json!({
            "kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2", "metadata": {},
            "items": [{
                "describedObject": described, "metric": {"name": "visitors", "selector": null},
                "timestamp": now, "value": "1500m",
            }],
        })
    );
    assert_eq!(
        raw(&cluster, &format!("{custom}/v1beta1/{path}")).await?["items"],
        json!([{
            "describedObject": described, "metricName": "visitors", "timestamp": now,
            "value": "1500m", "selector": null,
        }])
    );
    let tide = "/apis/external.metrics.k8s.io/v1beta1/namespaces";
    assert_eq!(
        raw(&cluster, &format!("{tide}/default/tide")).await?["items"],
        json!([{"metricName": "tide", "metricLabels": {}, "timestamp": now, "value": "3"}])
    );
    assert_eq!(raw(&cluster, &format!("{tide}/kube-system/tide")).await?["items"], json!([]));
    cluster.metrics().external().in_namespace("default").unset("tide");
    assert_eq!(raw(&cluster, &format!("{tide}/default/tide")).await?["items"], json!([]));
    let fork = cluster.fork().await?;
    let unset = raw(&fork, &format!("{custom}/v1beta2/{path}")).await?;
    assert_eq!(unset["items"][0]["value"], "1500m", "a fork measures the same");
    Ok(())
}

#[test]
fn a_target_comes_to_the_same_size_whenever_its_autoscaler_is_restarted() {
    let autoscaler = built_in("horizontal-pod-autoscaler-controller");
    Restarts::of(autoscaler).settings(small()).events(0).check(async |cluster| {
        serve(POD_METRICS, &json!({}), cluster).await?;
        run(cluster, 1).await?;
        load(cluster, "100m");
        scale(cluster, "web", &json!({})).await?;
        runs(cluster, 2).await?;
        cluster.advance(2 * PERIOD).await;
        // When it scaled last is lost with a restart right after it, in Kubernetes as well.
        let gone = DeleteParams::default();
        cluster.client().delete::<HorizontalPodAutoscaler>("web", &gone).await.map(drop)
    });
}

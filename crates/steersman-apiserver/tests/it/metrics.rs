//! What the server counts, as Prometheus reads it.

use std::collections::{BTreeMap, BTreeSet};

use http::header;
use serde_json::json;

use crate::api::{Api, CONFIG_MAPS, pod};
use crate::webhooks::{VALIDATING, allowed, configure, serve_here, webhook};

async fn metrics(api: &Api) -> String {
    let answer = api.get("/metrics").await;
    assert_eq!(answer.headers[header::CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(answer.bytes.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn requests_watches_objects_and_the_process_are_told() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    api.get(&format!("{CONFIG_MAPS}/b")).await.refused(404);
    api.get("/readyz").await;
    let watch = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    let text = metrics(&api).await;
    let labels = |scope: &str, verb: &str| {
        format!(
            "group=\"\",resource=\"configmaps\",scope=\"{scope}\",subresource=\"\",verb=\"{verb}\",version=\"v1\""
        )
    };
    let counted = |code: u16, labels: &str| {
        format!(
            "apiserver_request_total{{code=\"{code}\",component=\"apiserver\",dry_run=\"\",{labels}}} 1\n"
        )
    };
    let watching = |number: u8| {
        let labels = labels("namespace", "WATCH");
        format!("apiserver_longrunning_requests{{component=\"apiserver\",{labels}}} {number}\n")
    };
    for line in [
        counted(201, &labels("resource", "POST")),
        counted(404, &labels("resource", "GET")),
        counted(200, &labels("namespace", "WATCH")),
        watching(1),
        "subresource=\"/readyz\",verb=\"GET\",version=\"\"} 1\n".to_owned(),
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1\n".to_owned(),
        "apiserver_resource_objects{group=\"\",resource=\"configmaps\"} 1\n".to_owned(),
        "apiserver_storage_objects{resource=\"priorityclasses.scheduling.k8s.io\"} 2\n".to_owned(),
        "\nprocess_resident_memory_bytes ".to_owned(),
        "\nprocess_start_time_seconds ".to_owned(),
        "\nprocess_max_fds ".to_owned(),
        "kubernetes_build_info{".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    drop(watch);
    assert!(metrics(&api).await.contains(&watching(0)));
}

#[tokio::test(start_paused = true)]
async fn checks_of_health_are_told_apart() {
    let api = Api::start().await;
    let slis = async || {
        let answer = api.get("/metrics/slis").await;
        assert_eq!(
            answer.headers[header::CONTENT_TYPE],
            "text/plain; version=0.0.4; charset=utf-8"
        );
        String::from_utf8(answer.bytes.to_vec()).unwrap()
    };
    assert!(slis().await.starts_with(
        "# HELP process_start_time_seconds [ALPHA] Start time of the process since unix epoch in \
         seconds.\n# TYPE process_start_time_seconds gauge\n"
    ));
    api.get("/readyz").await;
    api.get("/readyz?verbose&exclude=log").await;
    // One check alone is not counted.
    api.get("/livez/ping").await;
    api.server.stop_soon();
    assert_eq!(api.get("/readyz").await.code, 500);
    let text = slis().await;
    let total = "kubernetes_healthchecks_total";
    for line in [
        "# HELP kubernetes_healthcheck [STABLE] This metric records the result of a single \
         healthcheck.\n# TYPE kubernetes_healthcheck gauge\n"
            .to_owned(),
        "kubernetes_healthcheck{name=\"etcd\",type=\"readyz\"} 1\n".to_owned(),
        "kubernetes_healthcheck{name=\"shutdown\",type=\"readyz\"} 0\n".to_owned(),
        format!("# TYPE {total} counter\n"),
        format!("{total}{{name=\"log\",status=\"success\",type=\"readyz\"}} 2\n"),
        format!("{total}{{name=\"ping\",status=\"success\",type=\"readyz\"}} 3\n"),
        format!("{total}{{name=\"shutdown\",status=\"error\",type=\"readyz\"}} 1\n"),
        format!("{total}{{name=\"shutdown\",status=\"success\",type=\"readyz\"}} 2\n"),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    assert!(!text.contains("livez"), "{text}");
    assert!(!metrics(&api).await.contains("kubernetes_healthcheck"), "told there only");
    api.get("/metrics/others").await.no_page();
    api.get("/metrics/slis/").await.no_page();
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_the_store_is_told_under_the_names_of_kubernetes() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    api.config_map("b", &json!({"x": "y"})).await;
    api.merge(&format!("{CONFIG_MAPS}/b"), &json!({"data": {"x": "z"}})).await.ok();
    api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    api.get(&format!("{CONFIG_MAPS}/b")).await.ok();
    api.get(&format!("{CONFIG_MAPS}?labelSelector=a")).await.ok();
    let text = metrics(&api).await;
    let asked = |operation: &str, number: u8| {
        let labels = format!("group=\"\",operation=\"{operation}\",resource=\"configmaps\"");
        format!("etcd_requests_total{{{labels}}} {number}\n")
    };
    let kind = "{group=\"\",resource=\"configmaps\"}";
    for line in [
        asked("create", 2),
        asked("update", 1),
        asked("delete", 1),
        asked("list", 1),
        "# TYPE etcd_request_duration_seconds histogram\n".to_owned(),
        format!("apiserver_storage_list_total{kind} 1\n"),
        format!("apiserver_storage_list_fetched_objects_total{kind} 1\n"),
        format!("apiserver_storage_list_evaluated_objects_total{kind} 1\n"),
        format!("apiserver_storage_list_returned_objects_total{kind} 0\n"),
        format!("apiserver_resource_size_estimate_bytes{kind} "),
        "# HELP apiserver_flowcontrol_nominal_limit_seats [BETA] ".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    let families: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    assert_eq!(families.len(), families.iter().collect::<BTreeSet<_>>().len(), "each once");
}

/// Requests of every sort.
async fn traffic(api: &Api) {
    serve_here(api, |_| allowed());
    configure(api, VALIDATING, "v", &[webhook("asks")]).await;
    let mut watch = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    api.config_map("a", &json!({"key": "value"})).await;
    watch.next().await.unwrap();
    let one = format!("{CONFIG_MAPS}/a");
    api.get(CONFIG_MAPS).await.ok();
    api.get(&one).await.ok();
    api.merge(&one, &json!({"data": {"key": "2"}})).await.ok();
    let configuration = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "c"}});
    let applied = format!("{one}?fieldManager=me");
    api.patch(&applied, "application/apply-patch+yaml", &configuration).await.ok();
    api.post("/api/v1/namespaces/default/pods?dryRun=All", &pod("p")).await.ok();
    api.get("/api/v1/namespaces/default/pods/none/log").await;
    api.delete(&one).await.ok();
    api.get("/metrics").await;
}

/// Reads a page as `promtool check metrics` does, and gives the samples by name.
fn read(page: &str) -> BTreeMap<String, Vec<(String, f64)>> {
    let mut samples: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
    let mut families = BTreeSet::new();
    let mut family = (String::new(), String::new());
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(!help.is_empty() && families.insert(name.to_owned()), "{name} is there twice");
            let kind = lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")));
            let kind = kind.unwrap_or_else(|| panic!("{name} has no type"));
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
            family = (name.to_owned(), kind.to_owned());
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert!(name.starts_with(&family.0), "{name} stands below {}", family.0);
        let suffix = &name[family.0.len()..];
        let suffixes: &[&str] =
            if family.1 == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "{line}");
        assert!(labels.ends_with('}'), "{line}");
        let pairs: Vec<&str> =
            labels.trim_end_matches('}').split("\",").filter(|pair| !pair.is_empty()).collect();
        let names: Vec<&str> = pairs.iter().map(|pair| pair.split('=').next().unwrap()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{line}");
        let all = samples.entry(name.to_owned()).or_default();
        assert!(all.iter().all(|(known, _)| known != labels), "{line} is there twice");
        all.push((labels.to_owned(), value));
    }
    samples
}

/// The metrics of the API server's dashboard and rules in kubernetes-mixin, of the one for
/// admission, and of what is told beside them.
const OF_DASHBOARDS: &[&str] = &[
    "apiserver_request_total",
    "apiserver_request_duration_seconds_bucket",
    "apiserver_request_sli_duration_seconds_bucket",
    "apiserver_request_sli_duration_seconds_count",
    "apiserver_response_sizes_bucket",
    "apiserver_current_inflight_requests",
    "apiserver_current_inqueue_requests",
    "apiserver_longrunning_requests",
    "apiserver_storage_objects",
    "apiserver_resource_objects",
    "apiserver_watch_events_total",
    "apiserver_watch_events_sizes_sum",
    "apiserver_init_events_total",
    "apiserver_admission_step_admission_duration_seconds_bucket",
    "apiserver_admission_controller_admission_duration_seconds_bucket",
    "apiserver_admission_webhook_admission_duration_seconds_bucket",
    "apiserver_admission_webhook_request_total",
    "apiserver_tls_handshake_errors_total",
    "authentication_attempts",
    "authenticated_user_requests",
    "authorization_attempts_total",
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
    "process_open_fds",
    "kubernetes_build_info",
];

#[tokio::test(start_paused = true)]
async fn the_page_is_sound_and_has_what_dashboards_ask_for() {
    let api = Api::start().await;
    traffic(&api).await;
    let page = metrics(&api).await;
    let samples = read(&page);
    for name in OF_DASHBOARDS {
        assert!(samples.contains_key(*name), "{name}\n{page}");
    }
    // What a family counts in buckets is not less in a larger one, and all of it in the last.
    for (name, buckets) in samples.iter().filter(|(name, _)| name.ends_with("_bucket")) {
        let counts = &samples[&name.replace("_bucket", "_count")];
        for (labels, count) in counts {
            let of_series = |bucket: &str| {
                let own = labels.trim_end_matches('}');
                bucket.starts_with(own)
                    && bucket[own.len()..].trim_start_matches(',').starts_with("le=")
            };
            let mine: Vec<f64> =
                buckets.iter().filter(|(b, _)| of_series(b)).map(|(_, count)| *count).collect();
            assert!(mine.is_sorted(), "{name}{{{labels}");
            assert_eq!(mine.last(), Some(count), "{name}{{{labels}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn verbs_are_told_apart_as_kubernetes_does() {
    let api = Api::start().await;
    traffic(&api).await;
    let samples = read(&metrics(&api).await);
    let verbs = |resource: &str| -> BTreeSet<String> {
        let label = format!("resource=\"{resource}\"");
        let of = samples["apiserver_request_total"].iter().filter(|(l, _)| l.contains(&label));
        let verb = |labels: &str| {
            labels.split("verb=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
        };
        of.map(|(labels, _)| verb(labels)).collect()
    };
    let expected = ["APPLY", "DELETE", "GET", "LIST", "PATCH", "POST", "WATCH"];
    assert_eq!(verbs("configmaps"), expected.map(str::to_owned).into());
    let pods = verbs("pods");
    assert_eq!(pods, ["CONNECT", "POST"].map(str::to_owned).into());
    let dry = samples["apiserver_request_total"].iter().any(|(l, _)| l.contains("dry_run=\"All\""));
    assert!(dry);
}

#[tokio::test(start_paused = true)]
async fn nobody_names_series_at_will() {
    let api = Api::start().await;
    api.get("/api/v1/namespaces").await.ok();
    let before = read(&metrics(&api).await)["apiserver_request_total"].len();
    for n in 0..50 {
        api.get(&format!("/api/v1/namespaces/default/odd{n}")).await;
        api.get(&format!("/odd{n}")).await;
        api.get(&format!("/apis/odd{n}.example.com/v1/things")).await;
    }
    let after = read(&metrics(&api).await)["apiserver_request_total"].len();
    assert!(after <= before + 2, "{before} became {after}");
}

#[tokio::test(start_paused = true)]
async fn metrics_are_for_those_who_may_read_them() {
    let api = Api::start().await;
    api.acting_as("jane", &[]).get("/metrics").await.refused(403);
    let answer = api.acting_as("prometheus", &["system:monitoring"]).get("/metrics").await;
    assert_eq!(answer.code, 200);
}

//! What the server counts, as Prometheus reads it.

use http::header;
use serde_json::json;

use crate::api::{Api, CONFIG_MAPS};

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
        "kubernetes_build_info{".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    drop(watch);
    assert!(metrics(&api).await.contains(&watching(0)));
    for line in text.lines() {
        let sample = line.starts_with('#')
            || line.rsplit_once(' ').is_some_and(|(_, v)| v.parse::<f64>().is_ok());
        assert!(sample, "{line}");
    }
}

//! What controllers make of real Pods.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::machine::{Machine, is_ready, shell, spec};

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_of_three_web_servers_is_rolled_over() {
    let machine = Machine::start("rolling").await;
    let server = |version: &str| {
        let script = format!(
            "mkdir /www; echo {version} > /www/index.html; trap 'exit 0' TERM; httpd -f -p 80 -h /www & wait"
        );
        spec("Always", &json!([shell("main", &script)]))
    };
    let labels = json!({"app": "web"});
    machine
        .create::<Deployment>(json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": server("one")},
            },
        }))
        .await;
    let rolled = async |version: &str| {
        let web = ListParams::default().labels("app=web");
        let pods = machine.pods().list(&web).await.expect("a list").items;
        let right = |pod: &k8s_openapi::api::core::v1::Pod| {
            let command = pod.spec.as_ref().unwrap().containers[0].command.clone().unwrap();
            is_ready(pod) && command[2].contains(version)
        };
        pods.len() == 3 && pods.iter().all(right)
    };
    machine.until_true("three of the first version", async || rolled("echo one").await).await;
    let patch = json!({"spec": {"template": {"spec": server("two")}}});
    let deployments = machine.api::<Deployment>();
    deployments.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    machine.until_true("three of the second version", async || rolled("echo two").await).await;
    let foreground = kube::api::DeleteParams::foreground();
    deployments.delete("web", &foreground).await.unwrap();
    machine
        .until_true("the Deployment is gone", async || {
            deployments.get_opt("web").await.expect("the server answers").is_none()
        })
        .await;
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_complete_when_its_container_is() {
    let machine = Machine::start("jobs").await;
    let template = spec("Never", &json!([shell("main", "echo done")]));
    machine
        .create::<Job>(json!({
            "metadata": {"name": "once"},
            "spec": {"completions": 2, "parallelism": 2, "template": {"spec": template}},
        }))
        .await;
    machine
        .until_true("the Job is complete", async || {
            let job = machine.api::<Job>().get("once").await.expect("the Job");
            job.status.and_then(|status| status.succeeded) == Some(2)
        })
        .await;
    let background = kube::api::DeleteParams::background();
    machine.api::<Job>().delete("once", &background).await.unwrap();
    machine.end().await;
}

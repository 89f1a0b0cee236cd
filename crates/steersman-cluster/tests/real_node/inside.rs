//! What containers find inside: variables, files, tokens, limits; and what probes find out there.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::containerd::images;
use crate::machine::{Machine, is_ready, shell, spec, status};

const SERVE: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

#[tokio::test(flavor = "multi_thread")]
async fn a_container_has_its_variables_and_files_and_sees_them_change() {
    let machine = Machine::start("files").await;
    machine.create::<ConfigMap>(json!({"metadata": {"name": "c"}, "data": {"color": "red"}})).await;
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"password": "pw"}});
    machine.create::<Secret>(secret).await;
    let script = format!(
        "echo color $COLOR password $PASSWORD name $NAME file $(cat /c/color) token $(head -c 2 /token/t) \
         part $(cat /part); echo kept > /kept/x; {SERVE}"
    );
    let mut pod = spec("Always", &json!([shell("main", &script)]));
    pod["containers"][0]["env"] = json!([
        {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "color"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]);
    pod["containers"][0]["volumeMounts"] = json!([
        {"name": "config", "mountPath": "/c"},
        {"name": "config", "mountPath": "/part", "subPath": "color"},
        {"name": "token", "mountPath": "/token"},
        {"name": "memory", "mountPath": "/kept"},
    ]);
    pod["volumes"] = json!([
        {"name": "config", "configMap": {"name": "c"}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ]);
    machine
        .until_true("there is a service account", async || {
            let accounts = machine.api::<k8s_openapi::api::core::v1::ServiceAccount>();
            accounts.get_opt("default").await.expect("the server answers").is_some()
        })
        .await;
    machine.run("reader", pod).await;
    let pod = machine.until("reader", is_ready).await;
    let expected = "color red password pw name reader file red token ey part red";
    machine.until_said(&pod, "main", expected).await;
    let patch = Patch::Merge(json!({"data": {"color": "blue"}}));
    machine.api::<ConfigMap>().patch("c", &PatchParams::default(), &patch).await.unwrap();
    machine
        .until_true("the file has changed", async || {
            machine.exec(&pod, "main", &["cat", "/c/color"]) == "blue"
        })
        .await;
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_a_volume_that_can_only_be_read() {
    let machine = Machine::start("images-as-volumes").await;
    let script = format!(
        "echo whole $(ls /image/bin/busybox) part $(ls /part/busybox); \
         touch /image/x /part/x || echo read-only; \
         /image/bin/busybox echo programs can be run; {SERVE}"
    );
    let mut pod = spec("Always", &json!([shell("main", &script)]));
    let mounts = json!([
        {"name": "image", "mountPath": "/image"},
        {"name": "image", "mountPath": "/part", "subPath": "bin"},
    ]);
    pod["containers"][0]["volumeMounts"] = mounts.clone();
    let volume = |reference: &str, policy: &str| json!([{"name": "image", "image": {"reference": reference, "pullPolicy": policy}}]);
    pod["volumes"] = volume("localhost/busybox:1", "IfNotPresent");
    machine.run("reader", pod.clone()).await;
    let reader = machine.until("reader", is_ready).await;
    // As from Kubernetes 1.36 on.
    let log = machine.until_said(&reader, "main", "programs can be run").await;
    assert!(log.contains("whole /image/bin/busybox part /part/busybox"), "{log}");
    assert!(log.contains("read-only"), "{log}");
    let views = || machine.containerd.ctr(&["snapshots", "ls"]);
    let key = format!("steersman/{}/image", reader.metadata.uid.as_deref().unwrap_or_default());
    assert!(views().contains(&key), "{}", views());

    // Their names alone are longer than the kernel takes.
    machine.containerd.import(&images::layered("localhost/layered:1", 60));
    let mut layered = pod.clone();
    let script = format!("echo $(ls /image | wc -l) last $(cat /image/layer-59); {SERVE}");
    layered["containers"][0] = shell("main", &script);
    layered["containers"][0]["volumeMounts"] = json!([{"name": "image", "mountPath": "/image"}]);
    layered["volumes"] = volume("localhost/layered:1", "Never");
    machine.run("layered", layered).await;
    let reader = machine.until("layered", is_ready).await;
    machine.until_said(&reader, "main", "60 last 59").await;

    pod["volumes"] = volume("localhost/absent:1", "Never");
    machine.run("without", pod.clone()).await;
    let reason = |pod: &Pod| status(pod, "main")?.state.as_ref()?.waiting.as_ref()?.reason.clone();
    let never = |pod: &Pod| reason(pod).as_deref() == Some("ErrImageNeverPull");
    machine.until("without", never).await;

    // What is not in the image cannot be made there.
    pod["volumes"] = volume("localhost/busybox:1", "IfNotPresent");
    pod["containers"][0]["volumeMounts"][1]["subPath"] = json!("absent");
    machine.run("beyond", pod).await;
    let refused = |pod: &Pod| reason(pod).as_deref() == Some("CreateContainerConfigError");
    machine.until("beyond", refused).await;

    let containerd = machine.containerd;
    machine.end().await;
    let views = containerd.ctr(&["snapshots", "ls"]);
    assert!(!views.contains("steersman/"), "{views}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_waited_for_and_said() {
    let machine = Machine::start("missing").await;
    let mut no_key = spec("Never", &json!([shell("main", "echo $X")]));
    let from = json!({"configMapKeyRef": {"name": "later", "key": "k"}});
    no_key["containers"][0]["env"] = json!([{"name": "X", "valueFrom": from}]);
    machine.run("no-key", no_key).await;
    let mut no_volume = spec("Never", &json!([shell("main", "cat /v/k")]));
    no_volume["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    no_volume["volumes"] = json!([{"name": "v", "configMap": {"name": "later"}}]);
    machine.run("no-volume", no_volume).await;
    let reason = |pod: &Pod| status(pod, "main")?.state.as_ref()?.waiting.as_ref()?.reason.clone();
    let waits = |wanted: &'static str| move |pod: &Pod| reason(pod).as_deref() == Some(wanted);
    machine.until("no-key", waits("CreateContainerConfigError")).await;
    machine.until("no-volume", waits("ContainerCreating")).await;
    machine
        .until_true("the missing volume was told of", async || {
            let events = machine.events("no-volume").await;
            events.iter().any(|event| event.starts_with("FailedMount") && event.contains("later"))
        })
        .await;
    machine.create::<ConfigMap>(json!({"metadata": {"name": "later"}, "data": {"k": "v"}})).await;
    machine.until_phase("no-key", "Succeeded").await;
    machine.until_phase("no-volume", "Succeeded").await;
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_a_probe_finds_dead_is_started_again() {
    let machine = Machine::start("probing").await;
    let script = format!("touch /tmp/alive; {SERVE}");
    let mut pod = spec("Always", &json!([shell("main", &script)]));
    let exec = |command: &str| -> Value {
        json!({"exec": {"command": ["sh", "-c", command]}, "periodSeconds": 1, "failureThreshold": 1})
    };
    pod["containers"][0]["livenessProbe"] = exec("cat /tmp/alive");
    pod["containers"][0]["readinessProbe"] = exec("cat /tmp/ready");
    let hook = json!({"exec": {"command": ["sh", "-c", "touch /tmp/ready"]}});
    pod["containers"][0]["lifecycle"] = json!({"postStart": hook});
    machine.run("probed", pod).await;
    let pod = machine.until("probed", is_ready).await;
    machine.exec(&pod, "main", &["rm", "/tmp/alive"]);
    let restarted =
        |pod: &Pod| status(pod, "main").is_some_and(|it| it.restart_count == 1 && it.ready);
    machine.until("probed", restarted).await;
    let events = machine.events("probed").await;
    for text in
        ["Unhealthy: Liveness probe failed", "Killing: Container main failed liveness probe"]
    {
        assert!(events.iter().any(|event| event.starts_with(text)), "{text}: {events:?}");
    }
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_node_cannot_do_is_refused_and_limits_reach_the_kernel() {
    let machine = Machine::start("limits").await;
    let mut refused = spec("Never", &json!([shell("main", "true")]));
    refused["hostUsers"] = json!(false);
    machine.run("refused", refused).await;
    let pod = machine.until_phase("refused", "Failed").await;
    let status_ = pod.status.unwrap();
    assert_eq!(status_.reason.as_deref(), Some("UnexpectedAdmissionError"));
    assert!(status_.message.unwrap().contains("user namespaces"));
    let mut limited = spec("Always", &json!([shell("main", &format!("id; {SERVE}"))]));
    limited["containers"][0]["resources"] =
        json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "200m", "memory": "32Mi"}});
    limited["securityContext"] = json!({"runAsUser": 1000, "runAsGroup": 1001, "fsGroup": 1002});
    machine.run("limited", limited).await;
    let pod = machine.until("limited", is_ready).await;
    machine.until_said(&pod, "main", "uid=1000 gid=1001 groups=1001,1002").await;
    assert_eq!(machine.cgroup(&pod, "memory", "memory.limit_in_bytes", "memory.max"), "33554432");
    machine.end().await;
}

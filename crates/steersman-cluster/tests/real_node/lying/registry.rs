//! A registry that wants to see a password before it gives the runtime an image.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::Scene;

const RIGHT: &str = "open sesame";

/// Makes a Secret with this password for the registry of images that name none.
async fn keep(scene: &Scene, name: &str, password: &str) {
    let auths = json!({"auths": {"docker.io": {"username": "me", "password": password}}});
    let secret = json!({
        "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": auths.to_string()},
    });
    let secret: Secret = serde_json::from_value(secret).expect("a Secret");
    let secrets: Api<Secret> = Api::namespaced(scene.client.clone(), "default");
    secrets.create(&PostParams::default(), &secret).await.expect("it is created");
}

/// Runs a Pod that names these Secrets.
async fn run(scene: &Scene, name: &str, secrets: &[&str]) {
    let secrets: Vec<Value> = secrets.iter().map(|name| json!({"name": name})).collect();
    scene.run_whole(name, json!({"imagePullSecrets": secrets}), json!({})).await;
}

/// Waits until people have heard that a Pod's image cannot be pulled.
async fn refused(scene: &Scene, name: &str) {
    let denied = "Failed: Failed to pull image \"web:1\": rpc error: code = PermissionDenied";
    let said = async || scene.events(name).await.iter().any(|event| event.starts_with(denied));
    scene.until(&format!("{name} is refused"), said).await;
    assert!(!scene.runs(name).await);
}

#[tokio::test(start_paused = true)]
async fn an_image_is_for_those_who_could_have_pulled_it() {
    let mut scene = Scene::start("registry").await;
    scene.liar.guard_image(RIGHT);
    for (name, password) in [("wrong", "guessed"), ("right", RIGHT), ("same", RIGHT)] {
        keep(&scene, name, password).await;
    }
    run(&scene, "stranger", &[]).await;
    refused(&scene, "stranger").await;
    run(&scene, "first", &["absent", "wrong", "right"]).await;
    scene.until("one of them opens it", async || scene.runs("first").await).await;
    let said = "FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets \
                (absent); attempting to pull the image may not succeed.";
    let told = async || scene.events("first").await.iter().any(|event| event == said);
    scene.until("people hear of the one that is not there", told).await;
    // The image is there now, and the next agent knows for whom as well.
    run(&scene, "guesser", &["wrong"]).await;
    refused(&scene, "guesser").await;
    scene.kill_agent();
    scene.start_agent().await;
    run(&scene, "later", &[]).await;
    refused(&scene, "later").await;
    run(&scene, "friend", &["same"]).await;
    scene.until("whoever has the password may use it", async || scene.runs("friend").await).await;
    scene.end().await;
}

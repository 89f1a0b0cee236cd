//! Secrets at rest: what a cluster leaves on disk, and which keys it takes to read it again.

use std::path::Path;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use steersman_cluster::{Cluster, StartError, Storage, encryption};
use steersman_store::{Expected, Store, WriteRequest};

use crate::Scratch;

const KEY_1: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const KEY_2: &str = "c2VjcmV0IGlzIHNlY3VyZQ==";
/// What nobody is to find.
const PASSWORD: &str = "correct horse battery staple";

fn aes_gcm(name: &str, secret: &str) -> Value {
    json!({"aesgcm": {"keys": [{"name": name, "secret": secret}]}})
}

/// A cluster in a directory, whose Secrets these providers read, and the first of them writes.
async fn start(directory: &Path, providers: &[Value]) -> Result<Cluster, StartError> {
    let storage = Storage::Disk { directory: directory.to_owned(), sync: false };
    // Only who listens needs the keys of the cluster.
    let listen = ([127, 0, 0, 1], 0).into();
    let builder = Cluster::builder().storage(storage).listen(listen).nodes(0).controllers(false);
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": providers}],
    });
    match providers {
        [] => builder.start().await,
        _ => {
            let encryption = encryption::parse(&configuration.to_string()).unwrap();
            builder.encryption(encryption).start().await
        }
    }
}

fn secrets(cluster: &Cluster) -> Api<Secret> {
    Api::default_namespaced(cluster.client())
}

async fn create(cluster: &Cluster, name: &str) {
    let secret = json!({"metadata": {"name": name}, "stringData": {"password": PASSWORD}});
    let secret = serde_json::from_value(secret).unwrap();
    secrets(cluster).create(&PostParams::default(), &secret).await.unwrap();
}

async fn password(cluster: &Cluster, name: &str) -> kube::Result<String> {
    let secret = secrets(cluster).get(name).await?;
    Ok(String::from_utf8(secret.data.unwrap()["password"].0.clone()).unwrap())
}

/// Whether any file of the directory holds a text.
fn is_on_disk(directory: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(directory).unwrap();
    let mut contents = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    contents.any(|content| content.windows(text.len()).any(|window| window == text.as_bytes()))
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_the_keys_of_the_cluster_are_not_on_disk_and_are_there_again() {
    let scratch = Scratch::new();
    let cluster = start(&scratch.0, &[aes_gcm("one", KEY_1)]).await.unwrap();
    create(&cluster, "a").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let map = json!({"metadata": {"name": "a"}, "data": {"known": "to everybody"}});
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    assert_eq!(password(&cluster, "a").await.unwrap(), PASSWORD);
    let trusted = cluster.endpoint().unwrap().kubeconfig.clone();
    cluster.stop().await;

    let encoded = "Y29ycmVjdCBob3JzZSBiYXR0ZXJ5IHN0YXBsZQ";
    for text in [PASSWORD, encoded, "PRIVATE KEY", "signingKey"] {
        assert!(!is_on_disk(&scratch.0, text), "{text}");
    }
    assert!(is_on_disk(&scratch.0, "to everybody"), "only Secrets are chosen");
    assert!(is_on_disk(&scratch.0, "k8s:enc:aesgcm:v1:one:"));

    let cluster = start(&scratch.0, &[aes_gcm("one", KEY_1)]).await.unwrap();
    assert_eq!(password(&cluster, "a").await.unwrap(), PASSWORD);
    let authority = |kubeconfig: &str| {
        let line = kubeconfig.lines().find(|line| line.contains("certificate-authority-data"));
        line.unwrap().to_owned()
    };
    assert_eq!(authority(&cluster.endpoint().unwrap().kubeconfig), authority(&trusted));
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_replaced_by_replacing_secrets_with_themselves() {
    let scratch = Scratch::new();
    let cluster = start(&scratch.0, &[]).await.unwrap();
    create(&cluster, "a").await;
    cluster.stop().await;

    let mut before = Vec::new();
    for (name, secret) in [("one", KEY_1), ("two", KEY_2)] {
        before.insert(0, aes_gcm(name, secret));
        let providers = [before.clone(), vec![json!({"identity": {}})]].concat();
        let cluster = start(&scratch.0, &providers).await.unwrap();
        let found = secrets(&cluster).get("a").await.unwrap();
        let replaced = secrets(&cluster).replace("a", &PostParams::default(), &found).await;
        let replaced = replaced.unwrap();
        assert_ne!(replaced.metadata.resource_version, found.metadata.resource_version);
        let again = secrets(&cluster).replace("a", &PostParams::default(), &replaced).await;
        assert_eq!(again.unwrap().metadata.resource_version, replaced.metadata.resource_version);
        cluster.stop().await;
    }

    let cluster = start(&scratch.0, &before[..1]).await.unwrap();
    assert_eq!(password(&cluster, "a").await.unwrap(), PASSWORD);
    assert_eq!(secrets(&cluster).list(&ListParams::default()).await.unwrap().items.len(), 1);
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_key_a_cluster_says_which_one_it_needs() {
    let scratch = Scratch::new();
    start(&scratch.0, &[aes_gcm("one", KEY_1)]).await.unwrap().stop().await;
    for providers in [vec![], vec![json!({"identity": {}})], vec![aes_gcm("two", KEY_2)]] {
        let refused = start(&scratch.0, &providers).await.err().expect("it has no key");
        let StartError::Encryption(why) = &refused else { panic!("{refused:?}") };
        let why = why.to_string();
        assert!(why.contains("/registry/steersman.dev/identity"), "{why}");
        assert!(why.contains("aesgcm with the key \"one\""), "{why}");
    }
    // The name is right and the key is not.
    let refused = start(&scratch.0, &[aes_gcm("one", KEY_2)]).await.err().unwrap();
    let told = format!("{refused:?}");
    assert!(told.contains("message authentication failed"), "{told}");
    start(&scratch.0, &[aes_gcm("one", KEY_1)]).await.unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_secret_that_nobody_reads_fails_lists_of_secrets_and_nothing_else() {
    let scratch = Scratch::new();
    let cluster = start(&scratch.0, &[aes_gcm("one", KEY_1)]).await.unwrap();
    create(&cluster, "a").await;
    create(&cluster, "b").await;
    let begin = secrets(&cluster).list(&ListParams::default()).await.unwrap();
    let begin = begin.metadata.resource_version.unwrap();
    // Somebody who can write to the store gives b the bytes of a.
    let key = |name: &str| format!("/registry/secrets/default/{name}");
    let stolen = cluster.store().get(&key("a")).await.unwrap().unwrap().value;
    let moved = WriteRequest::put(key("b"), stolen, Expected::Any);
    cluster.store().write(moved).await.unwrap();

    let why = "unable to transform key \"/registry/secrets/default/b\": aesgcm, key \"one\": \
               cipher: message authentication failed";
    let listed = secrets(&cluster).list(&ListParams::default()).await.unwrap_err();
    let read = secrets(&cluster).get("b").await.unwrap_err();
    for refused in [listed, read] {
        let kube::Error::Api(status) = refused else { panic!("{refused}") };
        assert_eq!((status.code, status.reason.as_str()), (500, "InternalError"));
        assert_eq!(status.message, format!("Internal error occurred: {why}"));
    }
    assert_eq!(password(&cluster, "a").await.unwrap(), PASSWORD);
    create(&cluster, "c").await;
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    maps.list(&ListParams::default()).await.unwrap();

    // A watch must list again, and is told why it cannot.
    let watched = secrets(&cluster).watch(&WatchParams::default(), &begin).await.unwrap();
    let first = futures::StreamExt::next(&mut Box::pin(watched)).await.unwrap().unwrap();
    let WatchEvent::Error(status) = first else { panic!("{first:?}") };
    assert_eq!(status.code, 410);
    cluster.stop().await;
}

//! What a configuration may say, and how it is told what it may not.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_store::encryption::EncryptedStore;
use steersman_store::memory::MemoryStore;
use steersman_store::{Expected, Store, WriteRequest};

use super::{parse, renew};
use crate::identity::{self, Identity};

const KEY_1: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const KEY_2: &str = "c2VjcmV0IGlzIHNlY3VyZQ==";

fn configuration(resources: &Value) -> String {
    let version = "apiserver.config.k8s.io/v1";
    json!({"apiVersion": version, "kind": "EncryptionConfiguration", "resources": resources})
        .to_string()
}

fn aes_gcm(name: &str, secret: &str) -> Value {
    json!({"aesgcm": {"keys": [{"name": name, "secret": secret}]}})
}

fn block(resources: &[&str], providers: &[Value]) -> Value {
    json!({"resources": resources, "providers": providers})
}

fn refused(resources: &Value) -> String {
    match parse(&configuration(resources)) {
        Ok(_) => panic!("{resources} is taken"),
        Err(error) => error.to_string(),
    }
}

/// What a value is stored as, under each of these keys.
async fn stored(configuration: &str, keys: &[&str]) -> Vec<String> {
    let plain = MemoryStore::new();
    let store = EncryptedStore::new(Arc::new(plain.clone()), parse(configuration).unwrap());
    let mut stored = Vec::new();
    for key in keys {
        store.write(WriteRequest::put(*key, "{}", Expected::Any)).await.unwrap();
        let value = plain.get(key).await.unwrap().unwrap().value;
        let name = value.split(|byte| *byte == b':').nth(4).unwrap_or(b"-");
        stored.push(String::from_utf8_lossy(name).into_owned());
    }
    stored
}

#[tokio::test]
async fn the_first_rule_that_fits_a_resource_counts() {
    let text = "\
kind: EncryptionConfiguration
apiVersion: apiserver.config.k8s.io/v1
resources:
- resources: [events]
  providers:
  - identity: {}
- resources: [secrets, pandas.awesome.bears.example]
  providers:
  - aesgcm:
      keys:
      - name: one
        secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=
      - name: old
        secret: c2VjcmV0IGlzIHNlY3VyZQ==
  - identity: {}
- resources: ['*.*']
  providers:
  - aesgcm:
      keys: [{name: rest, secret: c2VjcmV0IGlzIHNlY3VyZQ==}]
";
    let keys = [
        "/registry/events/default/a",
        "/registry/secrets/default/a",
        "/registry/awesome.bears.example/pandas/default/a",
        "/registry/pods/default/a",
        identity::KEY,
    ];
    assert_eq!(stored(text, &keys).await, ["-", "one", "one", "rest", "one"]);
}

#[tokio::test]
async fn what_is_listed_again_is_read_by_both_and_written_by_the_first() {
    let both = configuration(&json!([
        block(&["secrets"], &[aes_gcm("new", KEY_1)]),
        block(&["secrets"], &[aes_gcm("old", KEY_2)]),
    ]));
    assert_eq!(stored(&both, &["/registry/secrets/default/a"]).await, ["new"]);
    let old = configuration(&json!([block(&["secrets"], &[aes_gcm("old", KEY_2)])]));
    let plain = MemoryStore::new();
    let over = |text: &str| EncryptedStore::new(Arc::new(plain.clone()), parse(text).unwrap());
    let request = WriteRequest::put("/registry/secrets/default/a", "{}", Expected::Any);
    over(&old).write(request).await.unwrap();
    let read = over(&both).get("/registry/secrets/default/a").await.unwrap().unwrap();
    assert_eq!(read.value, "{}");
}

#[tokio::test]
async fn the_keys_of_the_cluster_are_written_again_when_their_encryption_changes() {
    let plain = MemoryStore::new();
    let before = Identity::of(&plain).await.unwrap();
    let providers = [aes_gcm("one", KEY_1), json!({"identity": {}})];
    let encryption = parse(&configuration(&json!([block(&["secrets"], &providers)]))).unwrap();
    let store = EncryptedStore::new(Arc::new(plain.clone()), encryption);
    for _ in 0..2 {
        renew(&store).await.unwrap();
    }
    let found = plain.get(identity::KEY).await.unwrap().unwrap();
    assert!(found.value.starts_with(b"k8s:enc:aesgcm:v1:one:"));
    assert_eq!(found.modified.0, found.created.0 + 1, "once is enough");
    assert_eq!(Identity::of(&store).await.unwrap().token(), before.token());
}

#[test]
fn mistakes_are_told_in_kubernetes_words() {
    let secret = |secret: &str| json!([block(&["secrets"], &[aes_gcm("k", secret)])]);
    let of = |resources: &[&str]| json!([block(resources, &[aes_gcm("k", KEY_1)])]);
    let two = json!({"aesgcm": {"keys": [{"name": "k", "secret": KEY_1}]}, "identity": {}});
    let path = "resources[0].providers[0].aesgcm.keys[0].secret";
    for (configuration, expected) in [
        (json!([]), "resources: Required value: at least one resources is required"),
        (of(&[]), "resources[0].resources: Required value: at least one resources[0].resources"),
        (json!([block(&["secrets"], &[])]), "resources[0].providers: Required value: at least one"),
        (json!([block(&["secrets"], &[json!({})])]), "does not contain any of the expected"),
        (json!([block(&["secrets"], &[two])]), "more than one provider specified"),
        (secret(""), &format!("{path}: Required value: secret is a mandatory field for a key")),
        (secret("?"), &format!("{path}: Invalid value: \"REDACTED\": secrets must be base64")),
        (secret("AAAA"), "secret is not of the expected length, got 3, expected one of [16 24 32]"),
        (secret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"), "keys of 16 and of 32 bytes, not of 24"),
        (of(&["Secrets"]), "resource name should not contain capital letters"),
        (of(&["*"]), "use '*.' to encrypt all the resources from core API group or *.*"),
        (of(&["events.events.k8s.io"]), "Use 'events' instead in the config file"),
        (of(&["ingresses.extensions"]), "'extensions' group has been removed"),
        (of(&["secrets.*"]), "encrypting the same resource across groups is not supported"),
        (of(&["serviceipallocations"]), "resources which do not have REST API/s"),
        (of(&["secrets", "secrets"]), "the same resource cannot be specified multiple times"),
        (of(&["secrets", "*."]), "using overlapping resources such as 'secrets' and '*.'"),
        (
            json!([of(&["*.*"])[0], of(&["secrets"])[0]]),
            "resource \"secrets\" is masked by earlier rule \"*.*\"",
        ),
        (
            json!([block(&["secrets"], &[json!({"kms": {"name": "vault", "apiVersion": "v2"}})])]),
            "resources[0].providers[0].kms: Forbidden: this server does not know the provider",
        ),
        (
            json!([block(&["secrets"], &[json!({"secretbox": {"keys": []}})])]),
            "resources[0].providers[0].secretbox: Forbidden: this server does not know",
        ),
    ] {
        let text = refused(&configuration);
        assert!(text.contains(expected), "{text}\nlacks {expected}");
    }
}

#[test]
fn another_document_is_refused() {
    for text in ["", "kind: Pod\napiVersion: v1", "kind: EncryptionConfiguration\napiVersion: v1"] {
        let refused = parse(text).unwrap_err().to_string();
        assert!(refused.starts_with("not an EncryptionConfiguration: "), "{refused}");
    }
}

//! Values as they are stored, and who reads them.

use std::sync::Arc;

use bytes::Bytes;

use super::{EncryptedStore, Encryption, InvalidKey, Provider, Rule};
use crate::memory::MemoryStore;
use crate::{
    Entry, Expected, RangeRequest, Revision, Store, StoreError, WatchRequest, WriteRequest,
};

const SECRET: &str = "/registry/secrets/default/a";

fn provider(name: &str, byte: u8) -> Provider {
    Provider::aes_gcm(name, &[byte; 32]).unwrap()
}

fn encryption(providers: impl Into<Vec<Provider>>) -> Encryption {
    let prefixes = vec!["/registry/secrets/".to_owned()];
    Encryption::new([Rule { prefixes, providers: providers.into() }])
}

fn over(store: &MemoryStore, providers: impl Into<Vec<Provider>>) -> EncryptedStore {
    EncryptedStore::new(Arc::new(store.clone()), encryption(providers))
}

async fn put(store: &dyn Store, key: &str, value: &'static str) -> Revision {
    store.write(WriteRequest::put(key, value, Expected::Any)).await.unwrap().revision
}

async fn raw(store: &MemoryStore, key: &str) -> Bytes {
    store.get(key).await.unwrap().unwrap().value
}

async fn read(store: &dyn Store, key: &str) -> Result<String, StoreError> {
    let found = store.get(key).await?.unwrap();
    Ok(String::from_utf8(found.value.to_vec()).unwrap())
}

fn entry(key: &str, value: Bytes) -> Entry {
    Entry { key: key.into(), value, created: Revision(2), modified: Revision(2) }
}

/// Written by kube-apiserver's own transformer (k8s.io/apiserver v0.36.4), key `key1` of 32 bytes
/// that count up from zero, for `/registry/secrets/default/a`.
#[test]
fn a_value_of_kube_apiserver_is_read() {
    let key: Vec<u8> = (0..32).collect();
    let encryption = encryption([Provider::aes_gcm("key1", &key).unwrap()]);
    let mut found =
        entry(SECRET, Bytes::from_static(include_bytes!("tests/kube-apiserver.aesgcm")));
    encryption.open(&mut found).unwrap();
    assert_eq!(found.value, r#"{"kind":"Secret","apiVersion":"v1"}"#);
}

#[tokio::test]
async fn only_the_chosen_keys_are_encrypted_and_readers_do_not_notice() {
    let plain = MemoryStore::new();
    let store = over(&plain, [provider("k1", 1)]);
    put(&store, SECRET, "confidential").await;
    put(&store, "/registry/configmaps/default/a", "known").await;

    let sealed = raw(&plain, SECRET).await;
    assert!(sealed.starts_with(b"k8s:enc:aesgcm:v1:k1:"), "{sealed:?}");
    assert!(!sealed.windows(12).any(|window| window == b"confidential"));
    assert_eq!(raw(&plain, "/registry/configmaps/default/a").await, "known");

    assert_eq!(read(&store, SECRET).await.unwrap(), "confidential");
    let all = store.range(RangeRequest::default()).await.unwrap();
    let values: Vec<&Bytes> = all.entries.iter().map(|entry| &entry.value).collect();
    assert_eq!(values, ["known", "confidential"]);
    let written = store.write(WriteRequest::put(SECRET, "new", Expected::Any)).await.unwrap();
    assert_eq!(written.previous.unwrap().value, "confidential");
}

#[tokio::test]
async fn the_same_value_never_looks_the_same_twice() {
    let plain = MemoryStore::new();
    let store = over(&plain, [provider("k1", 1)]);
    put(&store, SECRET, "confidential").await;
    let first = raw(&plain, SECRET).await;
    put(&store, SECRET, "confidential").await;
    assert_ne!(first, raw(&plain, SECRET).await);
}

#[tokio::test]
async fn watches_see_what_was_written_and_what_it_replaced() {
    let store = over(&MemoryStore::new(), [provider("k1", 1)]);
    let begin = put(&store, SECRET, "one").await;
    let request = WatchRequest { prefix: "/registry/secrets/".into(), after: begin };
    let mut watch = store.watch(request).await.unwrap();
    put(&store, SECRET, "two").await;
    store.write(WriteRequest::delete(SECRET, Expected::Any)).await.unwrap();
    let events = watch.next().await.unwrap();
    let told = |entry: &Option<Entry>| entry.as_ref().map(|entry| entry.value.clone());
    let told: Vec<_> =
        events.iter().map(|event| (told(&event.previous), told(&event.current))).collect();
    let (one, two) = (Some("one".into()), Some("two".into()));
    assert_eq!(told, [(one, two.clone()), (two, None)]);
}

#[tokio::test]
async fn a_key_is_replaced_by_writing_everything_again() {
    let plain = MemoryStore::new();
    put(&over(&plain, [Provider::IDENTITY]), SECRET, "confidential").await;

    // Encryption begins: what is there is read, and is to be written again.
    let first = over(&plain, [provider("k1", 1), Provider::IDENTITY]);
    assert!(first.is_stale(SECRET).await.unwrap());
    assert_eq!(read(&first, SECRET).await.unwrap(), "confidential");
    put(&first, SECRET, "confidential").await;
    assert!(!first.is_stale(SECRET).await.unwrap());

    // A new key comes first, and everything is written again.
    let both = over(&plain, [provider("k2", 2), provider("k1", 1)]);
    assert!(both.is_stale(SECRET).await.unwrap());
    assert_eq!(read(&both, SECRET).await.unwrap(), "confidential");
    put(&both, SECRET, "confidential").await;

    // The old one goes.
    let second = over(&plain, [provider("k2", 2)]);
    assert!(!second.is_stale(SECRET).await.unwrap());
    assert_eq!(read(&second, SECRET).await.unwrap(), "confidential");
    let refused = read(&over(&plain, [provider("k1", 1)]), SECRET).await.unwrap_err().to_string();
    for part in [SECRET, "aesgcm", "\"k2\"", "no matching prefix found"] {
        assert!(refused.contains(part), "{refused}");
    }
}

#[tokio::test]
async fn two_keys_of_one_name_are_both_tried() {
    let plain = MemoryStore::new();
    put(&over(&plain, [provider("k", 1)]), SECRET, "confidential").await;
    let both = over(&plain, [provider("k", 2), provider("k", 1)]);
    assert_eq!(read(&both, SECRET).await.unwrap(), "confidential");
}

#[tokio::test]
async fn a_value_that_was_changed_or_moved_is_refused() {
    let plain = MemoryStore::new();
    let store = over(&plain, [provider("k1", 1)]);
    put(&store, SECRET, "confidential").await;
    let sealed = raw(&plain, SECRET).await;

    let other = "/registry/secrets/default/b";
    plain.write(WriteRequest::put(other, sealed.clone(), Expected::Any)).await.unwrap();
    let refused = read(&store, other).await.unwrap_err().to_string();
    let text = "unable to transform key \"/registry/secrets/default/b\": aesgcm, key \"k1\": \
                cipher: message authentication failed";
    assert_eq!(refused, text);

    for place in 0..sealed.len() {
        let mut changed = sealed.to_vec();
        changed[place] ^= 1;
        plain.write(WriteRequest::put(SECRET, changed, Expected::Any)).await.unwrap();
        let refused = read(&store, SECRET).await;
        assert!(matches!(refused, Err(StoreError::Unreadable { .. })), "byte {place}: {refused:?}");
    }
    for length in 0..sealed.len() {
        let cut = sealed.slice(..length);
        plain.write(WriteRequest::put(SECRET, cut, Expected::Any)).await.unwrap();
        assert!(read(&store, SECRET).await.is_err(), "cut to {length}");
    }
}

#[tokio::test]
async fn a_range_with_one_value_that_nobody_reads_fails_and_names_it() {
    let plain = MemoryStore::new();
    put(&over(&plain, [provider("lost", 9)]), SECRET, "confidential").await;
    let store = over(&plain, [provider("k1", 1), Provider::IDENTITY]);
    put(&store, "/registry/secrets/default/b", "fine").await;
    put(&store, "/registry/configmaps/default/b", "fine").await;
    let range = |prefix: &str| {
        store.range(RangeRequest { prefix: prefix.into(), ..RangeRequest::default() })
    };
    let refused = range("/registry/secrets/").await.unwrap_err();
    assert!(matches!(refused, StoreError::Unreadable { key, .. } if *key == *SECRET));
    assert_eq!(range("/registry/configmaps/").await.unwrap().entries.len(), 1);
    // A server without keys must not take it for an object either.
    let without = EncryptedStore::new(Arc::new(plain), Encryption::default());
    assert!(read(&without, SECRET).await.is_err());
    assert_eq!(read(&without, "/registry/configmaps/default/b").await.unwrap(), "fine");
}

#[tokio::test]
async fn a_watch_ends_before_a_change_that_nobody_reads_and_says_so() {
    let plain = MemoryStore::new();
    let old = over(&plain, [provider("old", 9)]);
    let store = over(&plain, [provider("new", 1)]);
    let begin = put(&store, "/registry/secrets/default/b", "fine").await;
    let last = put(&store, "/registry/secrets/default/b", "fine, too").await;
    put(&old, SECRET, "confidential").await;
    let request = WatchRequest { prefix: "/registry/secrets/".into(), after: begin };
    let mut watch = store.watch(request).await.unwrap();
    let events = watch.next().await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].revision, last);
    for _ in 0..2 {
        assert!(matches!(watch.next().await, Err(StoreError::Compacted { .. })));
    }
    assert_eq!(watch.delivered(), last);
}

#[test]
fn keys_have_the_lengths_that_aes_knows() {
    for bytes in [0, 15, 24, 33] {
        let refused = Provider::aes_gcm("k", &vec![0; bytes]).unwrap_err();
        assert_eq!(refused, InvalidKey { bytes });
    }
    assert_eq!(format!("{:?}", provider("k", 1)), "aesgcm(k)", "without the secret");
}

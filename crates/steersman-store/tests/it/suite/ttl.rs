//! Keys that go after a while. Time is real here, so these specifications take seconds.

use std::time::Duration;

use tokio::time::Instant;

use super::*;

/// How much longer than its time to live a key may stay.
const LATE_MAX: Duration = Duration::from_secs(10);

async fn put_expiring(store: &StoreUnderTest, key: &str, ttl: Duration) -> Revision {
    let request = WriteRequest::put(key, key.to_owned(), Expected::Any).expiring(ttl);
    store.write(request).await.unwrap().revision
}

/// Reads a watch until a key is deleted, and gives every key deleted until then, in order.
async fn deleted_until(watch: &mut Box<dyn Watch>, key: &str) -> Vec<String> {
    let mut deleted = Vec::new();
    while !deleted.iter().any(|gone| gone == key) {
        let batch = tokio::time::timeout(LATE_MAX * 2, watch.next()).await;
        let batch = batch.expect("the key goes").unwrap();
        let gone = batch.iter().filter(|event| event.current.is_none());
        deleted.extend(gone.map(|event| event.key.to_string()));
    }
    deleted
}

pub(crate) async fn a_key_goes_no_earlier_than_its_ttl_and_soon_after(store: StoreUnderTest) {
    let ttl = store.ttl_min;
    let mut watch = watch(&store, "/", latest(&store).await).await;
    let begun = Instant::now();
    let written = put_expiring(&store, "/a", ttl).await;
    assert_eq!(read(&mut watch, 1).await[0].revision, written);
    assert_eq!(value(&store, "/a").await.as_deref(), Some("/a"));

    let gone = tokio::time::timeout(ttl + LATE_MAX, read(&mut watch, 1)).await.unwrap();
    assert!(begun.elapsed() >= ttl, "it went after {:?}", begun.elapsed());
    assert_eq!(told(&gone[0]), "/a=- (/a)");
    assert!(gone[0].revision > written);
    assert_eq!(value(&store, "/a").await, None);
    let at_write = list(&store, "/", Some(written)).await;
    assert_eq!(at_write, ["/a=/a"], "history remembers it");
}

pub(crate) async fn a_later_write_decides_whether_a_key_goes(store: StoreUnderTest) {
    let ttl = store.ttl_min;
    let mut watch = watch(&store, "/", latest(&store).await).await;
    for key in ["/kept", "/again", "/goes"] {
        put_expiring(&store, key, ttl).await;
    }
    put(&store, "/kept", "for ever").await;
    delete(&store, "/again").await;
    put(&store, "/again", "for ever").await;
    put_expiring(&store, "/longer", ttl).await;
    put_expiring(&store, "/longer", ttl * 20).await;
    put(&store, "/late", "for ever").await;
    put_expiring(&store, "/late", ttl).await;

    // The last to be written is the last to go: by then the others would have gone.
    let deleted = deleted_until(&mut watch, "/late").await;
    assert!(deleted.contains(&"/goes".to_owned()), "{deleted:?}");
    let left = ["/again=for ever", "/kept=for ever", "/longer=/longer"];
    assert_eq!(list(&store, "/", None).await, left);
}

pub(crate) async fn many_keys_go_at_their_time(store: StoreUnderTest) {
    const KEYS: usize = 100;
    let ttl = store.ttl_min;
    let mut watch = watch(&store, "/", latest(&store).await).await;
    let begun = Instant::now();
    for number in 0..KEYS {
        put_expiring(&store, &format!("/{number:03}"), ttl).await;
    }
    let events = tokio::time::timeout(ttl + LATE_MAX, read(&mut watch, 2 * KEYS)).await.unwrap();
    let puts = events.iter().position(|event| event.current.is_none()).unwrap();
    assert!(begun.elapsed() >= ttl && puts > 0);
    assert_eq!(list(&store, "/", None).await, Vec::<String>::new());
}

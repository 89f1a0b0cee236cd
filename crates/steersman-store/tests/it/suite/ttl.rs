//! Keys that go after a while. Time is real here, so these specifications take seconds.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::*;

/// How long keys stay here: long enough for a busy machine to do something in time, and whole
/// seconds, which is what etcd counts.
const TTL: Duration = Duration::from_secs(2);
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
    // Not a whole number of seconds.
    let ttl = TTL + Duration::from_millis(700);
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
    let mut watch = watch(&store, "/", latest(&store).await).await;
    for key in ["/kept", "/again", "/goes"] {
        put_expiring(&store, key, TTL).await;
    }
    put(&store, "/kept", "for ever").await;
    delete(&store, "/again").await;
    put(&store, "/again", "for ever").await;
    put_expiring(&store, "/longer", TTL).await;
    put_expiring(&store, "/longer", TTL * 20).await;
    put(&store, "/late", "for ever").await;
    put_expiring(&store, "/late", TTL).await;

    // The last to be written is the last to go: by then the others would have gone.
    let deleted = deleted_until(&mut watch, "/late").await;
    assert!(deleted.contains(&"/goes".to_owned()), "{deleted:?}");
    let left = ["/again=for ever", "/kept=for ever", "/longer=/longer"];
    assert_eq!(list(&store, "/", None).await, left);
}

pub(crate) async fn a_key_that_is_written_again_in_time_stays(store: StoreUnderTest) {
    let mut watch = watch(&store, "/", latest(&store).await).await;
    let mut tick = tokio::time::interval(TTL / 4);
    let mut last = Instant::now();
    for _ in 0..6 {
        tick.tick().await;
        last = Instant::now();
        put_expiring(&store, "/heartbeat", TTL).await;
    }
    let events = tokio::time::timeout(TTL + LATE_MAX, read(&mut watch, 7)).await.unwrap();
    assert!(last.elapsed() >= TTL);
    let gone: Vec<bool> = events.iter().map(|event| event.current.is_none()).collect();
    assert_eq!(gone, [false, false, false, false, false, false, true]);
}

pub(crate) async fn many_keys_go_each_at_its_time(store: StoreUnderTest) {
    const KEYS: usize = 100;
    let mut watch = watch(&store, "/", latest(&store).await).await;
    let reader = tokio::spawn(async move {
        let mut gone = HashMap::new();
        while gone.len() < KEYS {
            let batch = watch.next().await.unwrap();
            let deletions = batch.iter().filter(|event| event.current.is_none());
            gone.extend(deletions.map(|event| (event.key.to_string(), Instant::now())));
        }
        gone
    });
    // Over more than a second: those written together may go together, others may not.
    let mut tick = tokio::time::interval(Duration::from_millis(15));
    let mut written = HashMap::new();
    for number in 0..KEYS {
        tick.tick().await;
        let key = format!("/{number:03}");
        written.insert(key.clone(), Instant::now());
        put_expiring(&store, &key, TTL).await;
    }
    let gone = tokio::time::timeout(TTL + LATE_MAX, reader).await.unwrap().unwrap();
    for (key, at) in written {
        let stayed = gone[&key].duration_since(at);
        assert!(stayed >= TTL && stayed < TTL + LATE_MAX, "{key} stayed {stayed:?}");
    }
    assert_eq!(list(&store, "/", None).await, Vec::<String>::new());
}

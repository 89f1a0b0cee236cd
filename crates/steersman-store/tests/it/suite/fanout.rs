//! Many who watch.

use rand::RngExt as _;

use super::*;
use crate::seed;

pub(crate) async fn each_of_many_watches_hears_exactly_its_prefix(store: StoreUnderTest) {
    const WRITES: usize = 600;
    let mut random = seed::random();
    let start = latest(&store).await;
    let numbers = 0..30_usize;
    let mut prefixes: Vec<String> =
        numbers.clone().map(|number| format!("/{number:02}/")).collect();
    prefixes.extend(numbers.map(|number| format!("/{number:02}/{}", number % 4)));
    prefixes.extend(["", "/", "/0", "/1", "/none/"].map(str::to_owned));

    let mut watches = Vec::new();
    for prefix in &prefixes {
        watches.push(watch(&store, prefix, start).await);
    }
    let mut written = Vec::new();
    for _ in 0..WRITES {
        let key = format!("/{:02}/{}", random.random_range(0..30), random.random_range(0..4));
        written.push((put(&store, &key, "1").await, key));
    }
    let end = latest(&store).await;
    for (prefix, mut watch) in prefixes.iter().zip(watches) {
        let expected: Vec<_> =
            written.iter().filter(|(_, key)| key.starts_with(prefix)).cloned().collect();
        let heard = read(&mut watch, expected.len()).await;
        let heard: Vec<_> =
            heard.iter().map(|event| (event.revision, event.key.to_string())).collect();
        assert_eq!(heard, expected, "under {prefix:?}");
        assert!(watch.delivered() >= end);
    }
}

pub(crate) async fn all_who_read_a_value_share_its_memory(store: StoreUnderTest) {
    if store.copies() {
        return;
    }
    let start = latest(&store).await;
    let mut watches = Vec::new();
    for prefix in ["/", "/a", "/a/", ""] {
        watches.push(watch(&store, prefix, start).await);
    }
    put(&store, "/a/b", &"x".repeat(10_000)).await;
    let place = store.get("/a/b").await.unwrap().unwrap().value.as_ptr();
    for watch in &mut watches {
        let event = read(watch, 1).await.remove(0);
        assert_eq!(event.current.as_ref().unwrap().value.as_ptr(), place);
    }
    let request = RangeRequest { prefix: "/a".into(), ..RangeRequest::default() };
    assert_eq!(store.range(request).await.unwrap().entries[0].value.as_ptr(), place);

    let written = try_write(&store, "/a/b", Some("y"), Expected::Any).await.unwrap();
    assert_eq!(written.previous.unwrap().value.len(), 10_000);
    for watch in &mut watches {
        let event = read(watch, 1).await.remove(0);
        assert_eq!(event.previous.as_ref().unwrap().value.as_ptr(), place);
    }
}

//! Large values, and many keys.

use super::*;

pub(crate) async fn a_value_may_be_a_megabyte(store: StoreUnderTest) {
    const SIZE: usize = 1024 * 1024;
    let large = |number: u8| Bytes::from(vec![number; SIZE]);
    let start = latest(&store).await;
    let writers: Vec<_> = (0..6_u8)
        .map(|number| {
            let store = store.clone();
            let request = WriteRequest::put(format!("/{number}"), large(number), Expected::Absent);
            tokio::spawn(async move { store.write(request).await.unwrap() })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let events = read(&mut watch(&store, "/", start).await, 6).await;
    for number in 0..6_u8 {
        let key = format!("/{number}");
        assert!(store.get(&key).await.unwrap().unwrap().value == large(number));
        let event = events.iter().find(|event| *event.key == *key).unwrap();
        assert!(event.current.as_ref().unwrap().value == large(number));
    }
    put(&store, "/empty", "").await;
    assert_eq!(value(&store, "/empty").await.as_deref(), Some(""));
    assert!(store.get("/empty").await.unwrap().is_some(), "empty is not absent");
}

pub(crate) async fn many_keys_are_read_whole_and_by_pages(store: StoreUnderTest) {
    const WRITERS: usize = 16;
    const EACH: usize = 150;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..EACH {
                    put(&store, &format!("/{writer:02}/{number:03}"), "1").await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let whole = list(&store, "/", None).await;
    assert_eq!(whole.len(), WRITERS * EACH);
    assert!(whole.is_sorted());
    let mut paged = 0;
    let mut request =
        RangeRequest { prefix: "/".into(), limit: 500, count: true, ..RangeRequest::default() };
    loop {
        let page = store.range(request.clone()).await.unwrap();
        paged += page.entries.len();
        assert_eq!(page.remaining, Some(WRITERS * EACH - paged));
        if !page.more {
            break;
        }
        request.at = Some(page.revision);
        request.start = page.entries.last().map(|last| format!("{}\0", last.key));
    }
    assert_eq!(paged, WRITERS * EACH);
}

//! What is read at one revision is one moment, while writers go on.
//!
//! Each writer counts up a row of keys, one after the other: at every moment the numbers of a row
//! fall from left to right, by one at most.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const ROWS: usize = 3;
const ROW: usize = 5;

/// Writers that count until they are told to stop.
struct Writers {
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Writers {
    fn start(store: &StoreUnderTest) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = (0..ROWS)
            .map(|row| {
                let (store, stop) = (store.clone(), Arc::clone(&stop));
                tokio::spawn(async move {
                    let mut number = 0;
                    while !stop.load(Ordering::SeqCst) {
                        number += 1;
                        for key in 0..ROW {
                            put(&store, &format!("/{row}/{key}"), &number.to_string()).await;
                        }
                    }
                })
            })
            .collect();
        Self { stop, tasks }
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
    }
}

/// Checks that some entries are what was there at one moment.
fn assert_one_moment(entries: &[String]) {
    for row in 0..ROWS {
        let row = format!("/{row}/");
        let number = |entry: &String| entry.split_once('=').unwrap().1.parse::<u64>().unwrap();
        let mut numbers: Vec<u64> =
            entries.iter().filter(|entry| entry.starts_with(&row)).map(number).collect();
        numbers.resize(ROW, 0);
        assert!(numbers.is_sorted_by(|left, right| left >= right), "{entries:?}");
        assert!(numbers[0] - numbers[ROW - 1] <= 1, "{entries:?}");
    }
}

fn shown(response: &steersman_store::RangeResponse) -> Vec<String> {
    response.entries.iter().map(|entry| format!("{}={}", entry.key, text(&entry.value))).collect()
}

pub(crate) async fn a_range_is_one_moment_however_often_it_is_read(store: StoreUnderTest) {
    let writers = Writers::start(&store);
    let mut read = Vec::new();
    for _ in 0..150 {
        let request = RangeRequest { prefix: "/".into(), ..RangeRequest::default() };
        let response = store.range(request).await.unwrap();
        assert!(response.entries.iter().all(|entry| entry.modified <= response.revision));
        let entries = shown(&response);
        assert_one_moment(&entries);
        read.push((response.revision, entries));
        tokio::task::yield_now().await;
    }
    assert!(read.is_sorted_by_key(|(revision, _)| *revision), "time does not run backwards");
    for (revision, entries) in &read {
        assert_eq!(list(&store, "/", Some(*revision)).await, *entries, "at {revision}");
    }
    writers.stop().await;
}

pub(crate) async fn pages_are_of_one_moment_while_writers_go_on(store: StoreUnderTest) {
    let writers = Writers::start(&store);
    for _ in 0..40 {
        let mut request = RangeRequest { prefix: "/".into(), limit: 4, ..RangeRequest::default() };
        let mut pages = Vec::new();
        loop {
            let page = store.range(request.clone()).await.unwrap();
            pages.extend(shown(&page));
            request.at.get_or_insert(page.revision);
            assert_eq!(request.at, Some(page.revision));
            let Some(last) = page.entries.last().filter(|_| page.more) else { break };
            request.start = Some(format!("{}\0", last.key));
            tokio::task::yield_now().await;
        }
        assert_one_moment(&pages);
        assert_eq!(list(&store, "/", request.at).await, pages);
    }
    writers.stop().await;
}

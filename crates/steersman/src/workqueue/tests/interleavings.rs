//! The queue under many schedules of its threads. Shuttle reports a deadlock when every task
//! waits: that is what a lost wake-up looks like.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

use shuttle::future::{JoinHandle, block_on, spawn};
use shuttle::thread;

use super::simulation::{advance, explore};
use crate::workqueue::{AddOptions, Priority, WorkQueue};

const SECOND: Duration = Duration::from_secs(1);

/// What three keys ask for and what workers have seen of them.
#[derive(Default)]
struct Board {
    asked: [AtomicU32; 3],
    seen: [AtomicU32; 3],
    running: [AtomicU32; 3],
    handled: AtomicUsize,
}

impl Board {
    fn ask(&self, queue: &WorkQueue<usize>, key: usize, options: AddOptions) {
        self.asked[key].fetch_add(1, SeqCst);
        queue.add_with(key, options);
    }

    fn all_seen(&self) {
        for (asked, seen) in self.asked.iter().zip(&self.seen) {
            assert_eq!(asked.load(SeqCst), seen.load(SeqCst), "a change was never worked on");
        }
    }
}

fn worker(queue: &WorkQueue<usize>, board: &Arc<Board>) -> JoinHandle<()> {
    let queue = queue.clone();
    let board = Arc::clone(board);
    spawn(async move {
        while let Some(key) = queue.get().await {
            assert_eq!(board.running[key].fetch_add(1, SeqCst), 0, "two workers had one key");
            thread::yield_now();
            board.seen[key].store(board.asked[key].load(SeqCst), SeqCst);
            board.handled.fetch_add(1, SeqCst);
            thread::yield_now();
            board.running[key].fetch_sub(1, SeqCst);
            queue.done(&key);
        }
    })
}

/// Waits for a key for a moment only; who gets one puts it back.
fn impatient(queue: &WorkQueue<usize>) -> JoinHandle<()> {
    let queue = queue.clone();
    spawn(async move {
        for _ in 0..2 {
            let mut looks = 0;
            let mut get = Box::pin(queue.get());
            let got = std::future::poll_fn(|cx| match get.as_mut().poll(cx) {
                Poll::Ready(key) => Poll::Ready(key),
                Poll::Pending if looks == 2 => Poll::Ready(None),
                Poll::Pending => {
                    looks += 1;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            });
            let got = got.await;
            drop(get);
            if let Some(key) = got {
                queue.add(key);
                queue.done(&key);
            }
        }
    })
}

fn join<T>(tasks: impl IntoIterator<Item = JoinHandle<T>>) {
    for task in tasks {
        block_on(task).unwrap();
    }
}

#[test]
fn every_change_is_seen_and_no_key_is_worked_on_twice_at_once() {
    explore(|| {
        let queue = WorkQueue::default();
        let board = Arc::new(Board::default());
        let workers = [worker(&queue, &board), worker(&queue, &board)];
        let producers = [[0, 1, 0], [1, 2, 0]].map(|keys| {
            let queue = queue.clone();
            let board = Arc::clone(&board);
            thread::spawn(move || {
                for key in keys {
                    let priority = Some(Priority(key as i32));
                    board.ask(&queue, key, AddOptions { priority, ..AddOptions::default() });
                }
            })
        });
        for producer in producers {
            producer.join().unwrap();
        }
        block_on(queue.shut_down_with_drain());
        board.all_seen();
        join(workers);
    });
}

#[test]
fn a_worker_that_goes_away_passes_the_key_on() {
    explore(|| {
        let queue = WorkQueue::default();
        let board = Arc::new(Board::default());
        let leaving = [impatient(&queue), impatient(&queue)];
        let workers = [worker(&queue, &board)];
        for key in [0, 1, 2] {
            board.ask(&queue, key, AddOptions::default());
        }
        join(leaving);
        // Without shutting down: nobody but the queue itself wakes the worker.
        while board.handled.load(SeqCst) < 3 {
            thread::yield_now();
        }
        block_on(queue.shut_down_with_drain());
        board.all_seen();
        join(workers);
    });
}

#[test]
fn delayed_keys_come_although_timekeepers_come_and_go() {
    explore(|| {
        let queue = WorkQueue::default();
        let board = Arc::new(Board::default());
        let leaving = [impatient(&queue), impatient(&queue)];
        let workers = [worker(&queue, &board), worker(&queue, &board)];
        let later = |seconds| AddOptions { after: seconds * SECOND, ..AddOptions::default() };
        let producer = thread::spawn({
            let queue = queue.clone();
            let board = Arc::clone(&board);
            move || {
                for (key, seconds) in [(0, 5), (1, 3), (0, 2), (2, 0)] {
                    board.ask(&queue, key, later(seconds));
                }
            }
        });
        for _ in 0..3 {
            advance(SECOND);
            thread::yield_now();
        }
        producer.join().unwrap();
        join(leaving);
        advance(10 * SECOND);
        // If no worker keeps the time, this never ends, which shuttle reports.
        block_on(async {
            while board.handled.load(SeqCst) < 3 {
                shuttle::future::yield_now().await;
            }
        });
        queue.shut_down();
        join(workers);
        board.all_seen();
    });
}

#[test]
fn the_last_sleeping_worker_hears_of_an_earlier_time() {
    explore(|| {
        let queue = WorkQueue::default();
        let taken = [0, 1].map(|_| {
            let queue = queue.clone();
            spawn(async move { queue.get().await })
        });
        queue.add_after(1, 10 * SECOND);
        queue.add_after(2, SECOND);
        advance(SECOND);
        let [first, second] = taken;
        let late = spawn({
            let queue = queue.clone();
            async move {
                // Only now that the first has come does the time of the second come.
                while queue.dump().keys.iter().all(|key| key.seconds.is_none()) {
                    shuttle::future::yield_now().await;
                }
                advance(10 * SECOND);
            }
        });
        let mut keys = [first, second].map(|task| block_on(task).unwrap());
        keys.sort_unstable();
        assert_eq!(keys, [Some(1), Some(2)]);
        block_on(late).unwrap();
    });
}

#[test]
fn shutting_down_ends_every_worker_whatever_it_is_doing() {
    explore(|| {
        let queue = WorkQueue::default();
        let board = Arc::new(Board::default());
        let workers = [worker(&queue, &board), worker(&queue, &board)];
        let leaving = [impatient(&queue)];
        let producer = thread::spawn({
            let queue = queue.clone();
            let board = Arc::clone(&board);
            move || {
                for key in [0, 1, 2] {
                    board.ask(&queue, key, AddOptions::default());
                }
            }
        });
        queue.shut_down();
        join(workers);
        join(leaving);
        producer.join().unwrap();
        assert!(queue.is_empty());
        block_on(queue.shut_down_with_drain());
    });
}

#[test]
fn draining_ends_for_all_who_wait_for_it_also_if_one_gives_up() {
    explore(|| {
        let queue = WorkQueue::default();
        let board = Arc::new(Board::default());
        for key in [0, 1, 2] {
            board.ask(&queue, key, AddOptions::default());
        }
        let workers = [worker(&queue, &board), worker(&queue, &board)];
        let drains = [0, 1].map(|_| {
            let queue = queue.clone();
            spawn(async move { queue.shut_down_with_drain().await })
        });
        block_on(async {
            let mut given_up = pin!(queue.shut_down_with_drain());
            std::future::poll_fn(|cx| {
                let _ = given_up.as_mut().poll(cx);
                Poll::Ready(())
            })
            .await;
        });
        join(drains);
        board.all_seen();
        join(workers);
    });
}

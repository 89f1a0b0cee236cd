use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn waits<T>(limiter: &impl RateLimiter<T>, key: &T, times: usize) -> Vec<Duration> {
    (0..times).map(|_| limiter.failed(key)).collect()
}

#[test]
fn exponential_waits_double_with_jitter_up_to_the_limit() {
    let limiter = ExponentialBackoff::default();
    for (failures, wait) in waits(&limiter, &"a", 40).into_iter().enumerate() {
        let exact = Duration::from_millis(5).saturating_mul(1 << failures.min(31));
        let exact = exact.min(1000 * SECOND);
        assert!((exact..=exact.mul_f64(1.1)).contains(&wait), "{failures}: {wait:?}");
    }
    assert_eq!((limiter.failures(&"a"), limiter.failures(&"b")), (40, 0));
    limiter.forget(&"a");
    assert_eq!(limiter.failures(&"a"), 0);
    assert!(limiter.failed(&"a") < Duration::from_millis(6));
}

#[test]
fn keys_that_fail_together_are_not_retried_together() {
    let limiter = ExponentialBackoff::new(SECOND, SECOND);
    let mut waits: Vec<_> = (0..100).map(|key| limiter.failed(&key)).collect();
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 90, "{}", waits.len());
}

#[tokio::test(start_paused = true)]
async fn a_bucket_lets_a_burst_pass_and_then_so_many_a_second() {
    let limiter = TokenBucket::new(10, 3);
    let tenth = SECOND / 10;
    assert_eq!(waits(&limiter, &(), 5), [0, 0, 0, 1, 2].map(|n| n * tenth));
    tokio::time::advance(4 * tenth).await;
    assert_eq!(waits(&limiter, &(), 3), [0, 0, 1].map(|n| n * tenth), "two had fallen");
    tokio::time::advance(3600 * SECOND).await;
    assert_eq!(waits(&limiter, &(), 4), [0, 0, 0, 1].map(|n| n * tenth), "no more than three fit");
}

#[test]
fn fast_retries_are_followed_by_slow_ones_until_the_key_is_forgotten() {
    let limiter = FastSlow::new(SECOND, 60 * SECOND).fast_attempts(2);
    assert_eq!(waits(&limiter, &"a", 4), [1, 1, 60, 60].map(|n| n * SECOND));
    limiter.forget(&"a");
    assert_eq!((limiter.failures(&"a"), limiter.failed(&"a")), (0, SECOND));
}

#[test]
fn the_strictest_of_several_limiters_counts_and_all_of_them_learn() {
    let limiter = MaxOf::new()
        .and(FastSlow::new(SECOND, 60 * SECOND).fast_attempts(1))
        .and(FastSlow::new(5 * SECOND, 10 * SECOND).fast_attempts(1));
    assert_eq!(waits(&limiter, &"a", 2), [5 * SECOND, 60 * SECOND]);
    assert_eq!(limiter.failures(&"a"), 2);
    limiter.forget(&"a");
    assert_eq!((limiter.failures(&"a"), limiter.failed(&"a")), (0, 5 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn the_default_for_controllers_slows_down_floods_of_different_keys() {
    let limiter = MaxOf::default();
    let waits: Vec<_> = (0..200).map(|key| limiter.failed(&key)).collect();
    assert_eq!(waits[199], 10 * SECOND);
}

#[test]
fn no_wait_is_longer_than_the_longest_allowed() {
    let limiter = WithMaxWait::new(ExponentialBackoff::default(), SECOND);
    assert!(waits(&limiter, &"a", 40).into_iter().all(|wait| wait <= SECOND));
    assert_eq!(limiter.failures(&"a"), 40);
}

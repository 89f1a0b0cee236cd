use std::net::Ipv4Addr;

use super::*;

/// 16 for strangers, 8 of them for one address.
fn places() -> Arc<Places> {
    Places::new(Limits::of(128))
}

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn enter(places: &Arc<Places>, from: u8) -> Arc<Place> {
    let place = places.enter(address(from)).expect("there is a place");
    place.shook_hands();
    place
}

fn goes(place: &Place) -> bool {
    place.leave.is_cancelled()
}

#[tokio::test(start_paused = true)]
async fn who_comes_takes_the_place_of_the_stranger_who_has_been_idle_longest() {
    let places = places();
    let early: Vec<_> = (0..8).map(|_| enter(&places, 1)).collect();
    drop(early[0].asked());
    let other = enter(&places, 2);
    for _ in 0..100 {
        enter(&places, 1);
        assert!(places.len() <= 9);
    }
    assert!(early.iter().all(|place| goes(place)));
    assert!(!goes(&other), "another address has places of its own");
    // Who went gives nothing back a second time.
    early.iter().for_each(|place| place.left());
    assert_eq!(places.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn the_one_who_asked_last_stays_longest() {
    let places = places();
    let early: Vec<_> = (0..8).map(|_| enter(&places, 1)).collect();
    drop(enter(&places, 2).asked());
    drop(early[0].asked());
    enter(&places, 1);
    assert!(!goes(&early[0]) && goes(&early[1]));
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_strangers_leaves_users_alone() {
    let places = places();
    let user = enter(&places, 1);
    user.know("jane");
    for from in 0..=255 {
        enter(&places, from);
    }
    assert!(!goes(&user));
    assert_eq!(places.len(), 17);
    user.left();
    assert_eq!(places.len(), 16);
}

#[tokio::test(start_paused = true)]
async fn who_is_shaking_hands_is_not_disturbed_at_first() {
    let places = places();
    let slow: Vec<_> = (0..8).map(|_| places.enter(address(1)).unwrap()).collect();
    assert!(places.enter(address(1)).is_none(), "all are busy, so this one is turned away");
    tokio::time::advance(UNDISTURBED).await;
    assert!(places.enter(address(1)).is_some());
    assert!(goes(&slow[0]) && !goes(&slow[1]));
}

#[tokio::test(start_paused = true)]
async fn an_idle_user_makes_way_and_a_busy_one_does_not() {
    let places = places();
    let users: Vec<_> = (0..120)
        .map(|n| {
            let place = enter(&places, 1);
            place.know(if n % 2 == 0 { "jane" } else { "joe" });
            place
        })
        .collect();
    assert_eq!(places.len(), 120);
    let watches: Vec<_> = users[1..].iter().map(|place| place.asked().lasting()).collect();
    let next = enter(&places, 1);
    next.know("jack");
    assert!(goes(&users[0]), "its user waits for nothing");
    assert!(!goes(&next));
    let another = enter(&places, 1);
    another.know("jack");
    assert!(goes(&next), "idle as well");
    let _busy = another.asked();
    let last = enter(&places, 1);
    last.know("jack");
    assert!(goes(&last), "nobody else can");
    assert!(users[1..].iter().all(|place| !goes(place)));
    drop(watches);
}

#[tokio::test(start_paused = true)]
async fn no_user_has_more_than_half() {
    let places = places();
    let mut busy = Vec::new();
    for n in 0..80 {
        let place = enter(&places, 1);
        place.know("jane");
        assert_eq!(goes(&place), n >= 64, "{n}");
        busy.push(place.asked());
    }
    let joe = enter(&places, 1);
    joe.know("joe");
    assert!(!goes(&joe));
}

#[tokio::test(start_paused = true)]
async fn idle_time_is_shorter_for_strangers_than_for_users() {
    for (known, expected) in [(false, STRANGER_IDLE), (true, USER_IDLE)] {
        let places = places();
        let place = enter(&places, 1);
        if known {
            place.know("jane");
        }
        let start = Instant::now();
        place.over().await;
        assert_eq!(start.elapsed(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_may_be_idle_for_the_same_time_after_every_answer() {
    let places = places();
    let place = enter(&places, 1);
    place.know("jane");
    let asks = {
        let place = Arc::clone(&place);
        async move {
            for seconds in [50, 89, 200] {
                let request = place.asked();
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                drop(request);
                tokio::time::sleep(USER_IDLE - Duration::from_millis(2)).await;
                assert!(!place.idle_left().is_zero());
            }
            drop(place.asked());
            Instant::now()
        }
    };
    let ((), last) = futures::join!(place.over(), asks);
    let idle = last.elapsed();
    assert!(idle.abs_diff(USER_IDLE) <= Duration::from_millis(2), "{idle:?}");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_answer_is_not_idle_but_a_stranger_who_does_not_take_it_is() {
    let places = places();
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    let user = enter(&places, 1);
    user.know("jane");
    let request = user.asked();
    assert!(tokio::time::timeout(week, user.over()).await.is_err());
    drop(request);
    assert!(tokio::time::timeout(week, user.over()).await.is_ok());
    let stranger = enter(&places, 1);
    let watch = stranger.asked().lasting();
    assert!(tokio::time::timeout(week, stranger.over()).await.is_err());
    let unread = stranger.asked();
    drop(watch);
    assert!(tokio::time::timeout(week, stranger.over()).await.is_ok());
    drop(unread);
}

#[tokio::test(start_paused = true)]
async fn a_stranger_who_asks_for_too_much_at_once_goes() {
    let places = places();
    let place = enter(&places, 1);
    let watches: Vec<_> = (0..100).map(|_| place.asked().lasting()).collect();
    let requests: Vec<_> = (0..STRANGERS_REQUESTS_MAX).map(|_| place.asked()).collect();
    place.asked_by_nobody();
    assert!(!goes(&place));
    let _more = place.asked();
    place.asked_by_nobody();
    assert!(goes(&place));
    let user = enter(&places, 1);
    let _requests: Vec<_> = (0..200).map(|_| user.asked()).collect();
    user.know("jane");
    user.asked_by_nobody();
    assert!(!goes(&user));
    drop((watches, requests));
}

#[tokio::test(start_paused = true)]
async fn who_goes_on_to_speak_something_else_keeps_the_place() {
    let places = places();
    let place = enter(&places, 1);
    place.know("jane");
    let request = place.asked();
    let stay = place.stay();
    drop(request);
    place.left();
    assert_eq!((places.len(), place.rank()), (1, None), "it is there, and busy");
    drop(stay);
    assert_eq!(places.len(), 0);
    // Who was not taken at the word leaves as any other.
    let other = enter(&places, 1);
    drop(other.stay());
    assert_eq!(places.len(), 1);
    other.left();
    assert_eq!(places.len(), 0);
}

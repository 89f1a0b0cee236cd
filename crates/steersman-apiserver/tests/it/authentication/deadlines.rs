//! Nobody can make the server wait for ever, or ask the store more than it must, by what they show.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{HeaderMap, header};
use steersman_apiserver::{ApiServer, Authentication, Config};
use tokio::time::Instant;

use crate::api::{Api, clock};
use crate::faulty::Faulty;

async fn start(store: &Faulty) -> Api {
    let authentication = Authentication { bootstrap_tokens: true, ..Authentication::default() };
    let config = Config { authentication, ..Config::new(Arc::new(store.clone()), clock()) };
    let server = ApiServer::start(config).await.unwrap();
    Api { server, store: Arc::new(store.clone()) }
}

fn bearer(token: &str) -> HeaderMap {
    let value = format!("Bearer {token}").parse().unwrap();
    HeaderMap::from_iter([(header::AUTHORIZATION, value)])
}

#[tokio::test(start_paused = true)]
async fn a_guess_at_a_bootstrap_token_asks_nobody_but_this_server() {
    let store = Faulty::new();
    let api = start(&store).await;
    store.counts();
    for guess in ["abcdef.0123456789abcdef", "aaaaaa.0123456789abcdef"] {
        let refused = api.server.authenticate(&bearer(guess), None).await.unwrap_err();
        assert_eq!(refused.code, 401);
    }
    let [reads, stale, _] = store.counts();
    assert_eq!((reads, stale), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn who_it_is_is_found_out_in_half_a_minute_or_not_at_all() {
    let store = Faulty::new();
    let api = start(&store).await;
    store.silent.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    let headers = bearer("abcdef.0123456789abcdef");
    let late = api.server.authenticate(&headers, None).await.unwrap_err();
    assert_eq!((late.code, begin.elapsed().as_secs()), (504, 30));
}

#[tokio::test(start_paused = true)]
async fn what_is_related_to_a_node_is_waited_for_ten_seconds() {
    let store = Faulty::new();
    let api = start(&store).await;
    let node = api.acting_as("system:node:a", &["system:nodes"]);
    store.silent.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    node.get("/api/v1/namespaces/default/secrets/s").await.refused(503);
    assert_eq!(begin.elapsed().as_secs(), 10);
}

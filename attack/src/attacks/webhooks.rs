//! Webhooks that call back, call each other, or do not stop to talk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};

use crate::caller::{Ask, Caller, Who};
use crate::field::{Field, config_map, config_maps, storm};
use crate::seen::Seen;
use crate::webhook::{CONFIGURATIONS, Webhook, allowed, configuration};

/// How the names of the objects begin that webhooks are asked about first.
const FIRST: &str = "first-";

/// A webhook that answers once the server has taken another object, about which it asks the same
/// webhook.
pub(super) async fn recursion(field: Field) -> Result<Seen, String> {
    let calls = Arc::<AtomicUsize>::default();
    let most = field.size(3_000, 100);
    let attacker = field.caller(Who::Attacker)?;
    let (caller, counted) = (attacker.clone(), Arc::clone(&calls));
    let webhook = Webhook::serve(move |review| {
        let (caller, calls) = (caller.clone(), Arc::clone(&counted));
        Box::pin(async move {
            let number = calls.fetch_add(1, Ordering::Relaxed);
            if number < most {
                let next = Ask::post(config_maps(), &config_map(&format!("next-{number}"), "x"));
                let _ = caller.ask(&next).await;
            }
            allowed(&review, &json!([]))
        })
    });
    let client = webhook.await?.client_config();
    let mut seen = flood(&field, &attacker, &[("again", client)]).await?;
    seen.note(format!("{} calls", calls.load(Ordering::Relaxed)));
    Ok(seen)
}

/// The server as its own webhook.
pub(super) async fn to_itself(field: Field) -> Result<Seen, String> {
    let attacker = field.caller(Who::Attacker)?;
    let url = format!("https://{}{}", field.address(), config_maps());
    let client = json!({"url": url, "caBundle": field.authority()?});
    flood(&field, &attacker, &[("itself", client)]).await
}

/// Two webhooks that undo what the other did and want to be asked again.
pub(super) async fn reinvocation(field: Field) -> Result<Seen, String> {
    let attacker = field.caller(Who::Attacker)?;
    let calls = Arc::<AtomicUsize>::default();
    let mut clients = Vec::new();
    for name in ["left", "right"] {
        let counted = Arc::clone(&calls);
        let webhook = Webhook::serve(move |review| {
            // The cluster makes ConfigMaps of its own in a new namespace.
            let mine = review["request"]["name"].as_str().is_some_and(|n| n.starts_with(FIRST));
            let number = counted.fetch_add(usize::from(mine), Ordering::Relaxed);
            let data = json!({"turn": format!("{name} {number}")});
            let patch = json!([{"op": "add", "path": "/data", "value": data}]);
            Box::pin(async move { allowed(&review, &patch) })
        });
        clients.push((name, webhook.await?.client_config()));
    }
    let mut seen = flood(&field, &attacker, &clients).await?;
    let calls = calls.load(Ordering::Relaxed) as u64;
    let objects: u64 = seen.answers.values().sum();
    seen.note(format!("{calls} calls for {objects} objects"));
    seen.fault_if(calls > objects * 4, "webhooks are asked more than twice each");
    Ok(seen)
}

/// A webhook whose answer has no end.
pub(super) async fn endless(field: Field) -> Result<Seen, String> {
    const CHUNK: &[u8] = &[b' '; 64 * 1024];
    let chunks = field.size(1 << 30, 300 << 20) / CHUNK.len();
    let attacker = field.caller(Who::Attacker)?;
    let webhook = Webhook::serve(move |_| {
        let chunks = stream::iter(0..chunks).map(|_| Ok(Frame::data(Bytes::from_static(CHUNK))));
        Box::pin(async move { StreamBody::new(chunks).boxed_unsync() })
    });
    let client = webhook.await?.client_config();
    flood(&field, &attacker, &[("endless", client)]).await
}

/// Asks the server to ask these webhooks, about many objects at once.
async fn flood(
    field: &Field,
    attacker: &Caller,
    webhooks: &[(&str, Value)],
) -> Result<Seen, String> {
    attacker.ask(&Ask::post(CONFIGURATIONS, &configuration(webhooks))).await?.good()?;
    field.begin().await;
    let asks = (0..field.size(100, 4))
        .map(|number| Ask::post(config_maps(), &config_map(&format!("{FIRST}{number}"), "x")));
    let seen = storm(attacker, 10, field.seconds(30, 6), asks).await;
    let removed = attacker.ask(&Ask::delete(format!("{CONFIGURATIONS}/hostile"))).await;
    removed.and_then(crate::caller::Answer::good)?;
    Ok(seen)
}

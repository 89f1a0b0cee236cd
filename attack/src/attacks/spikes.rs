//! Spikes: what stays in memory once they are over.

use std::sync::Arc;

use crate::caller::{Ask, Who};
use crate::field::{Field, config_map, config_maps, storm};
use crate::seen::Seen;

const OBJECTS: usize = 100;

/// Large objects at once, then a long time of smaller updates, then everything is deleted.
pub(super) async fn run(field: Field) -> Result<Seen, String> {
    let attacker = field.caller(Who::Attacker)?;
    let large: Arc<str> = "x".repeat(900_000).into();
    let creates = (0..field.size(400, 30)).map(move |number| {
        Ask::post(config_maps(), &config_map(&format!("spike-{number}"), &large))
    });
    let creates: Vec<Ask> = creates.collect();
    let small: Arc<str> = "x".repeat(20_000).into();
    let updates = (0usize..).map(move |turn| {
        let name = format!("spike-{}", turn % OBJECTS);
        let object = config_map(&name, &format!("{turn}{small}"));
        Ask::put(format!("{}/{name}", config_maps()), &object)
    });
    field.begin().await;
    let mut seen = storm(&attacker, 40, field.seconds(20, 3), creates.into_iter()).await;
    seen.merge(storm(&attacker, 16, field.seconds(30, 1), updates).await);
    let deletes = std::iter::once(Ask::delete(config_maps()));
    seen.merge(storm(&attacker, 1, field.seconds(20, 5), deletes).await);
    Ok(seen)
}

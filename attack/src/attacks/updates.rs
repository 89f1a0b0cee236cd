//! Large updates of the same objects: what is kept of the past is what is attacked.

use std::sync::Arc;

use crate::caller::{Ask, Who};
use crate::field::{Field, config_map, config_maps, storm};
use crate::seen::Seen;

const OBJECTS: usize = 16;

/// Updates of a hundred kilobytes, for seconds.
pub(super) async fn run(field: Field) -> Result<Seen, String> {
    let attacker = field.caller(Who::Attacker)?;
    for number in 0..OBJECTS {
        let created = Ask::post(config_maps(), &config_map(&format!("large-{number}"), ""));
        attacker.ask(&created).await?.good()?;
    }
    let value: Arc<str> = "x".repeat(100_000).into();
    let asks = (0usize..).map(move |turn| {
        let name = format!("large-{}", turn % OBJECTS);
        let object = config_map(&name, &format!("{turn}{value}"));
        Ask::put(format!("{}/{name}", config_maps()), &object)
    });
    field.begin().await;
    let seen = storm(&attacker, OBJECTS, field.seconds(10, 2), asks).await;
    Ok(seen)
}

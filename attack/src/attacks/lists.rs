//! Lists of everything, at once.

use crate::caller::{Ask, Who};
use crate::field::{Field, config_map, config_maps, storm};
use crate::seen::Seen;

/// Twenty who list fifty thousand objects.
pub(super) async fn run(field: Field) -> Result<Seen, String> {
    let objects = field.size(50_000, 1_500);
    // By whom fairness does not slow down: this is not the attack.
    let admin = field.caller(Who::Admin)?;
    let creates = (0..objects)
        .map(|number| Ask::post(config_maps(), &config_map(&format!("listed-{number}"), "x")));
    let prepared = storm(&admin, 16, field.seconds(150, 20), creates).await;
    let created = prepared.good();
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let lists = std::iter::repeat_n(Ask::get(config_maps()), field.size(60, 20));
    let mut seen = storm(&attacker, 20, field.seconds(60, 5), lists).await;
    seen.note(format!("{created} objects"));
    seen.fault_if(seen.good() == 0, "nobody who may list is answered");
    Ok(seen)
}

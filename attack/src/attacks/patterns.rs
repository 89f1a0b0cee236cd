//! Patterns that are large once they are compiled.

use serde_json::{Map, Value, json};

use crate::caller::{Ask, Who};
use crate::field::{Field, object, objects, storm};
use crate::seen::Seen;

/// Three definitions of thousands of patterns, one of as many as a definition may have, and objects
/// that are held against them.
pub(super) async fn run(field: Field) -> Result<Seen, String> {
    let (too_many, some) = (field.size(3_000, 150), field.size(80, 20));
    let times = field.size(3, 1);
    field.begin().await;
    let mut seen = Seen::default();
    for turn in 0..=times {
        let patterns = if turn == times { some } else { too_many };
        let plural = format!("patterns{turn}");
        let mut properties = Map::new();
        let mut spec = Map::new();
        for number in 0..patterns {
            // All different, and each close to what one pattern may take.
            let pattern = format!("^[\\pL\\pN]{{1,{}}}x{turn}{number}$", 20 + number % 5);
            properties.insert(format!("p{number}"), json!({"type": "string", "pattern": pattern}));
            spec.insert(format!("p{number}"), json!("a"));
        }
        let schema = json!({"type": "object", "properties": properties});
        let defined = field.define(&plural, schema).await;
        let took = std::time::Duration::ZERO;
        let good = matches!(&defined, Ok(answer) if answer.is_good());
        seen.count(&defined, took);
        if good {
            let document = object(&plural, "one", Value::Object(spec));
            let ask = Ask::post(objects(&plural), &document);
            let attacker = field.caller(Who::Attacker)?;
            let time = field.seconds(20, 5);
            seen.merge(storm(&attacker, 2, time, std::iter::repeat_n(ask, 4)).await);
        }
    }
    Ok(seen)
}

//! Server-side apply: the live object with its `managedFields`, `---`, a configuration.

use serde_json::Value;
use steersman_rules::apply::{Apply, Sole, Track, apply, check_configuration, track};
use steersman_rules::schema::Schema;

use crate::text::{object, parts, schema_of};

const NOW: &str = "2026-01-01T00:00:00Z";

/// Applies to nothing and to the live object, as one manager and as another; each of it a second
/// time changes nothing. Then the same as updates.
pub(crate) fn run(bytes: &[u8]) {
    let Some([live, applied]) = parts(bytes) else { return };
    let (Some(live), Some(applied)) = (object(live), object(applied)) else { return };
    let schema = schema_of(&applied);
    let live = stored(&schema, live);
    let version = applied["apiVersion"].as_str().unwrap_or_default().to_owned();
    let mut updated = applied.clone();
    track(Track {
        live: Some(&live),
        new: &mut updated,
        manager: "updater",
        subresource: "",
        api_version: &version,
        now: NOW,
        schema: &schema,
        versions: &Sole,
        resets: &[],
    });
    let updated = stored(&schema, updated);
    if check_configuration(&schema, &version, &applied).is_err() {
        return;
    }
    let configuration = Configuration { applied: &applied, schema: &schema, version: &version };
    for live in [None, Some(&live), Some(&updated)] {
        for manager in ["first", "updater"] {
            let Ok(once) = configuration.apply(live, manager) else { continue };
            let once = stored(&schema, once);
            let twice = configuration.apply(Some(&once), manager);
            let twice = twice.map(|twice| stored(&schema, twice));
            assert_eq!(twice.as_ref(), Ok(&once), "applied twice is applied once");
        }
    }
}

/// An object as a store has it: nothing in it is unknown, and nothing stands for "not set".
fn stored(schema: &Schema, mut object: Value) -> Value {
    schema.prune(&mut object);
    let _ = schema.apply_defaults(&mut object);
    object
}

#[derive(Clone, Copy)]
struct Configuration<'a> {
    applied: &'a Value,
    schema: &'a Schema,
    version: &'a str,
}

impl Configuration<'_> {
    fn apply(self, live: Option<&Value>, manager: &str) -> Result<Value, String> {
        let applied = apply(Apply {
            live,
            applied: self.applied,
            manager,
            force: true,
            subresource: "",
            api_version: self.version,
            now: NOW,
            schema: self.schema,
            versions: &Sole,
            resets: &[],
        });
        applied.map_err(|error| error.to_string())
    }
}

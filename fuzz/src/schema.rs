//! Schemas of definitions: the schema, `---`, an object.

use steersman_rules::schema::Schema;

use crate::text::{object, parts};

/// Prunes, fills in and validates an object; what was done is not done again.
pub(crate) fn run(bytes: &[u8]) {
    let Some([schema, document]) = parts(bytes) else { return };
    let (Some(schema), Some(mut document)) = (object(schema), object(document)) else { return };
    let schema = Schema::structural(&schema);
    schema.prune(&mut document);
    assert_eq!(schema.unknown_fields(&document), [""; 0], "what is pruned is known");
    let pruned = document.clone();
    schema.prune(&mut document);
    assert_eq!(document, pruned, "what is pruned is not pruned again");
    let _ = schema.apply_defaults(&mut document);
    let filled = document.clone();
    let _ = schema.apply_defaults(&mut document);
    assert_eq!(document, filled, "what has its defaults gets no more");
    let _ = schema.validate(&document);
    schema.normalise(&mut document);
}

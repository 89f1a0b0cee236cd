//! Hashes that are part of names: of templates and of revisions.

use k8s_openapi::api::core::v1::PodTemplateSpec;

/// Letters and digits that cannot form words, as Kubernetes uses them in generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of a template. Collisions that happened before lead to another hash.
///
/// Stable across versions of this program: it is taken over the template's JSON, whose fields
/// and maps have a fixed order. It need not agree with another implementation's, because
/// templates are recognised by their content.
pub(crate) fn of_template(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let mut bytes = serde_json::to_vec(template).unwrap_or_default();
    if let Some(collisions) = collisions {
        bytes.extend_from_slice(&collisions.to_le_bytes());
    }
    let hash =
        bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(PRIME));
    safe(hash)
}

/// The hash of a revision's content, as Kubernetes computes it.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    safe(bytes.iter().fold(OFFSET, |hash, byte| hash.wrapping_mul(PRIME) ^ u32::from(*byte)))
}

/// Where FNV begins, and by what it multiplies, with 32 bits.
const OFFSET: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

/// A number in letters that cannot form words.
fn safe(number: u32) -> String {
    let digits = number.to_string();
    digits.bytes().map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()])).collect()
}

//! Objects as bytes: encoded once when written, spliced when read.
//!
//! A stored document is JSON that starts with `apiVersion`, `kind` and `metadata`, in that
//! order, and lacks `metadata.resourceVersion`, which is the revision of its entry. Readers
//! get the stored bytes with the resourceVersion put in right behind `"metadata":{`; nothing
//! is decoded. Metadata always holds a name, so a comma may follow.

use std::fmt::Display;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use steersman_rules::schema::Schema;
use steersman_rules::versions;
use steersman_store::{Entry, Revision};

use crate::status::{Result, Status};

/// Documents nested deeper than this are refused: the JSON reader would refuse them later.
const DEPTH_MAX: usize = 100;

/// How much larger than what is stored a list may become by the defaults of newer schemas.
const GROWN_MAX: usize = 64 << 20;

/// An object as it lies in the store, with the revision that wrote it.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The document, without its resourceVersion.
    pub bytes: Bytes,
    /// The revision of the last write.
    pub revision: Revision,
}

impl From<&Entry> for Stored {
    fn from(entry: &Entry) -> Self {
        Self { bytes: entry.value.clone(), revision: entry.modified }
    }
}

impl Stored {
    /// An object that is not stored, such as one of a dry run. It has no revision; whatever version
    /// its client says that it is of, it keeps.
    pub(crate) fn unwritten(object: &Value) -> Result<Self> {
        Ok(Self { bytes: encode_all(object, |_| true)?, revision: Revision(0) })
    }

    /// The document as a value in the wanted `apiVersion`, with its resourceVersion.
    pub fn decode(&self, api_version: &str) -> Result<Value> {
        let mut object = self.decode_as_stored()?;
        versions::to_api_version(&mut object, api_version);
        if self.revision != Revision(0) {
            object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        }
        Ok(object)
    }

    /// The document as a value in the `apiVersion` it was stored in, without its resourceVersion.
    pub(crate) fn decode_as_stored(&self) -> Result<Value> {
        let unreadable = |error: &dyn Display| Status::internal(&format!("stored object: {error}"));
        // That it is text is looked at once, and not again for each of its strings.
        let text = str::from_utf8(&self.bytes).map_err(|error| unreadable(&error))?;
        serde_json::from_str(text).map_err(|error| unreadable(&error))
    }

    /// The document as its schema has it now: what an older schema let be written is pruned, and
    /// gets the defaults that it lacks. Only custom resources' schemas change. Where the defaults
    /// would make it too large to be stored, it stays as it is.
    #[must_use]
    pub fn refreshed(self, schema: &Schema) -> Self {
        if !schema.is_newer_than(self.revision.0) {
            return self;
        }
        let Ok(mut object) = serde_json::from_slice(&self.bytes) else { return self };
        schema.prune(&mut object);
        if schema.apply_defaults(&mut object).is_err() {
            return self;
        }
        encode(&object).map_or(self.clone(), |bytes| Self { bytes, ..self })
    }

    /// The `apiVersion` in which the document was stored.
    pub(crate) fn api_version(&self) -> Option<&str> {
        versions::spoken(&self.bytes)
    }

    /// Whether the document was stored in this `apiVersion`.
    pub fn speaks(&self, api_version: &str) -> bool {
        versions::speaks(&self.bytes, api_version)
    }

    /// Appends the document as JSON in the wanted `apiVersion`. Only a document that was stored
    /// in another version is decoded.
    pub fn write_to(&self, out: &mut Vec<u8>, api_version: &str) {
        let at = self.bytes.windows(METADATA.len()).position(|window| window == METADATA);
        match at {
            Some(at) if self.speaks(api_version) => {
                let (head, rest) = self.bytes.split_at(at + METADATA.len());
                out.reserve(self.bytes.len() + 40);
                out.extend_from_slice(head);
                self.write_resource_version(out);
                out.extend_from_slice(rest);
            }
            _ => write_json(out, &self.decode(api_version).unwrap_or_default()),
        }
    }

    /// Appends the document as an item of a list of its kind, which says once what its items are.
    pub(crate) fn write_item_to(&self, out: &mut Vec<u8>, api_version: &str) {
        let at = self.bytes.windows(METADATA.len()).position(|window| window == METADATA);
        match at {
            Some(at) if self.speaks(api_version) => {
                out.reserve(self.bytes.len() + 40);
                out.push(b'{');
                out.extend_from_slice(METADATA);
                self.write_resource_version(out);
                out.extend_from_slice(&self.bytes[at + METADATA.len()..]);
            }
            _ => {
                let mut object = self.decode(api_version).unwrap_or_default();
                if let Some(fields) = object.as_object_mut() {
                    fields.retain(|field, _| !matches!(field.as_str(), "apiVersion" | "kind"));
                }
                write_json(out, &object);
            }
        }
    }

    /// Appends only the metadata, as a `PartialObjectMetadata` of this `apiVersion`.
    pub fn write_metadata_to(&self, out: &mut Vec<u8>, api_version: &str) {
        let metadata: Option<&RawValue> = metadata_of(&self.bytes).ok();
        out.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":""#);
        out.extend_from_slice(api_version.as_bytes());
        out.extend_from_slice(br#"","metadata":{"#);
        self.write_resource_version(out);
        if let Some(metadata) = metadata {
            out.extend_from_slice(&metadata.get().as_bytes()[1..]);
        }
        out.push(b'}');
    }

    /// What was not written, in a dry run, has no revision to tell.
    fn write_resource_version(&self, out: &mut Vec<u8>) {
        if self.revision == Revision(0) {
            return;
        }
        out.extend_from_slice(br#""resourceVersion":""#);
        out.extend_from_slice(self.revision.to_string().as_bytes());
        out.extend_from_slice(br#"","#);
    }
}

/// The bytes by which newer schemas have made the objects of an answer larger than they are stored.
#[derive(Debug, Default)]
pub(crate) struct Growth(usize);

impl Growth {
    /// An object as its schema has it now. If thousands of small objects have become large ones,
    /// the others are told as they are stored.
    pub(crate) fn refreshed(&mut self, object: Stored, schema: &Schema) -> Stored {
        if self.0 >= GROWN_MAX {
            return object;
        }
        let stored = object.bytes.len();
        let object = object.refreshed(schema);
        self.0 += object.bytes.len().saturating_sub(stored);
        object
    }
}

/// Encodes an object for the store.
pub fn encode(object: &Value) -> Result<Bytes> {
    encode_all(object, |field| field != "resourceVersion")
}

/// Whether an object takes more than so many bytes even without the record of who owns its fields.
/// What is counted is what it takes at least.
pub(crate) fn exceeds(object: &Value, max: usize) -> bool {
    fn spend(value: &Value, left: usize) -> Option<usize> {
        match value {
            Value::Object(fields) => {
                fields.iter().try_fold(left.checked_sub(1)?, |left, (key, value)| {
                    spend(value, left.checked_sub(key.len() + 4)?)
                })
            }
            Value::Array(items) => items
                .iter()
                .try_fold(left.checked_sub(1)?, |left, item| spend(item, left.checked_sub(1)?)),
            Value::String(text) => left.checked_sub(text.len() + 2),
            _ => left.checked_sub(1),
        }
    }
    let managed = object.pointer("/metadata/managedFields");
    // These are not counted, so there is as much more room.
    let room = managed.and_then(|managed| {
        Some(usize::MAX / 2 - spend(managed, usize::MAX / 2)? + "managedFields".len() + 4)
    });
    spend(object, max.saturating_add(room.unwrap_or(0))).is_none()
}

/// Encodes an object, with those fields of its metadata that are `told`.
fn encode_all(object: &Value, told: impl Fn(&str) -> bool) -> Result<Bytes> {
    let fields = object.as_object().ok_or_else(|| Status::internal("not an object"))?;
    if depth(object) > DEPTH_MAX {
        return Err(Status::bad_request("the object is nested too deeply"));
    }
    let mut out = Vec::with_capacity(2048);
    out.push(b'{');
    for (index, name) in ["apiVersion", "kind", "metadata"].into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_json(&mut out, &Value::from(name));
        out.push(b':');
        match (name, fields.get(name)) {
            ("metadata", Some(Value::Object(metadata))) => {
                write_metadata(&mut out, metadata, &told);
            }
            ("metadata", Some(_)) => return Err(Status::internal("metadata that is no object")),
            (_, Some(value)) => write_json(&mut out, value),
            (_, None) => return Err(Status::internal(&format!("an object without {name}"))),
        }
    }
    for (name, value) in fields {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            out.push(b',');
            write_json(&mut out, &Value::from(name.as_str()));
            out.push(b':');
            write_json(&mut out, value);
        }
    }
    out.push(b'}');
    // The store keeps this for long: no byte more than needed. It is copied, because an allocator
    // that shrinks in place keeps up to half of what it gave.
    Ok(Bytes::copy_from_slice(&out))
}

const METADATA: &[u8] = br#""metadata":{"#;

/// What is wanted of the metadata of a stored document. What comes after them is not read.
pub(crate) fn metadata_of<'a, T: Deserialize<'a>>(stored: &'a [u8]) -> Result<T> {
    let at = stored.windows(METADATA.len()).position(|window| window == METADATA);
    let at = at.ok_or_else(|| Status::internal("stored object: no metadata"))?;
    let mut metadata = serde_json::Deserializer::from_slice(&stored[at + METADATA.len() - 1..]);
    T::deserialize(&mut metadata)
        .map_err(|error| Status::internal(&format!("stored object: {error}")))
}

fn write_metadata(out: &mut Vec<u8>, metadata: &Map<String, Value>, told: impl Fn(&str) -> bool) {
    out.push(b'{');
    let fields = metadata.iter().filter(|(name, _)| told(name));
    for (index, (name, value)) in fields.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_json(out, &Value::from(name.as_str()));
        out.push(b':');
        write_json(out, value);
    }
    out.push(b'}');
}

/// Appends a value as compact JSON.
pub fn write_json(out: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(out, value).expect("writing a value to memory cannot fail");
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The list in a field; empty where there is none.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::{Revision, Stored, encode, metadata_of};
    use serde_json::{Value, json};

    fn stored() -> Stored {
        let object = json!({
            "spec": {"metadata": {}}, "kind": "Thing", "apiVersion": "example.com/v1",
            "metadata": {"resourceVersion": "3", "name": "\"metadata\":{", "labels": {"a": "b"}},
        });
        Stored { bytes: encode(&object).unwrap(), revision: Revision(7) }
    }

    #[test]
    fn what_is_stored_starts_with_its_type_and_lacks_the_resource_version() {
        let text = String::from_utf8(stored().bytes.to_vec()).unwrap();
        assert!(text.starts_with(r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"#));
        assert!(!text.contains("resourceVersion"));
    }

    #[test]
    fn reading_splices_the_revision_and_the_wanted_version_in() {
        let mut out = Vec::new();
        stored().write_to(&mut out, "example.com/v2");
        let read: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["apiVersion"], "example.com/v2");
        assert_eq!(read["metadata"]["resourceVersion"], "7");
        assert_eq!(read["metadata"]["name"], "\"metadata\":{");
        assert_eq!(read["spec"], json!({"metadata": {}}));
    }

    #[test]
    fn partial_object_metadata_is_cut_out_of_the_stored_bytes() {
        let mut out = Vec::new();
        stored().write_metadata_to(&mut out, "meta.k8s.io/v1");
        let read: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["kind"], "PartialObjectMetadata");
        assert_eq!(read["metadata"]["labels"]["a"], "b");
        assert_eq!(read["metadata"]["resourceVersion"], "7");
        assert!(read.get("spec").is_none());
    }

    #[test]
    fn metadata_are_read_without_what_comes_after_them() {
        #[derive(serde::Deserialize)]
        struct Named {
            name: String,
        }
        let Named { name } = metadata_of(&stored().bytes).unwrap();
        assert_eq!(name, "\"metadata\":{");
        let cut = br#"{"apiVersion":"v1","kind":"A","metadata":{"name":"a"},"spec":{"#;
        assert_eq!(metadata_of::<Named>(cut).unwrap().name, "a");
        assert_eq!(metadata_of::<Named>(b"{}").err().unwrap().code, 500);
    }

    #[test]
    fn an_object_nested_too_deeply_is_refused() {
        let mut value = json!("bottom");
        for _ in 0..120 {
            value = json!([value]);
        }
        let object =
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "x": value});
        assert_eq!(encode(&object).unwrap_err().code, 400);
    }
}

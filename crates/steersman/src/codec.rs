//! JSON in and out: the one place where the types of kinds meet serde.
//!
//! Decoding and encoding are what a kind costs the compiler. Both are compiled for every type,
//! every form of serde that they are called with, and every crate that calls them, and a Pod has
//! a thousand fields. So there is one form for each: text in, bytes out. Whoever wants a
//! [`Value`] takes the way over the text.

use std::sync::Arc;

use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::Value;

use crate::object::{Cacheable, ErasedObject, downcast_ref};

/// Decodes objects of one kind where its type has been forgotten.
#[derive(Clone, Copy)]
pub(crate) struct Codec {
    decode: fn(&str) -> serde_json::Result<Arc<dyn ErasedObject>>,
    /// What the type is called, for logs.
    pub(crate) type_name: &'static str,
}

impl Codec {
    /// The codec of the kind that `K` is the type of.
    pub(crate) fn of<K: Cacheable>() -> Self {
        let decode = |json: &str| -> serde_json::Result<Arc<dyn ErasedObject>> {
            Ok(Arc::new(decode::<K>(json)?))
        };
        Self { decode, type_name: std::any::type_name::<K>() }
    }

    /// The object that this JSON is.
    pub(crate) fn decode(&self, json: &str) -> serde_json::Result<Arc<dyn ErasedObject>> {
        (self.decode)(json)
    }

    /// The same for JSON of which nobody has checked that it is text.
    pub(crate) fn decode_bytes(&self, json: &[u8]) -> serde_json::Result<Arc<dyn ErasedObject>> {
        self.decode(text_of(json)?)
    }
}

/// The object that this JSON is.
#[inline(never)]
pub(crate) fn decode<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json)
}

/// What this JSON begins with; what comes after it is not read.
#[inline(never)]
pub(crate) fn decode_first<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    T::deserialize(&mut serde_json::Deserializer::from_str(json))
}

/// An object as JSON.
#[inline(never)]
pub(crate) fn encode<T: Serialize + ?Sized>(object: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(object)
}

/// An object as JSON, as text.
pub(crate) fn encode_text<T: Serialize + ?Sized>(object: &T) -> serde_json::Result<String> {
    String::from_utf8(encode(object)?).map_err(serde::ser::Error::custom)
}

/// JSON as text. To look at once whether it is text costs far less than to look at each of its strings,
/// as whoever reads it from bytes does.
pub(crate) fn text_of(json: &[u8]) -> serde_json::Result<&str> {
    std::str::from_utf8(json).map_err(serde_json::Error::custom)
}

/// An object as a document.
pub(crate) fn to_document<T: Serialize + ?Sized>(object: &T) -> serde_json::Result<Value> {
    decode(text_of(&encode(object)?)?)
}

/// The object that a document is.
pub(crate) fn from_document<T: DeserializeOwned>(document: &Value) -> serde_json::Result<T> {
    decode(&serde_json::to_string(document)?)
}

/// Kinds whose types are larger than this are encoded only where their type is known: what a type
/// costs the compiler grows with it.
const SMALL: usize = 768;

/// Encodes an object whose type has been forgotten; `None` if it is of another type.
pub(crate) type EncodeErased = fn(&dyn ErasedObject) -> Option<Vec<u8>>;

/// How objects of a kind are encoded where their type has been forgotten, if that type is small.
pub(crate) fn encode_small<K: Cacheable + Serialize>() -> Option<EncodeErased> {
    // Of a larger type, the code of this is not even compiled.
    if const { size_of::<K>() <= SMALL } {
        Some(|object| encode(downcast_ref::<K>(object)?).ok())
    } else {
        None
    }
}

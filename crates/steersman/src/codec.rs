//! JSON in and out: the one place where the types of kinds meet serde.
//!
//! Decoding and encoding are what a kind costs the compiler. Both are compiled for every type,
//! every form of serde that they are called with, and every crate that calls them, and a Pod has
//! a thousand fields. So there is one form for each: text in, bytes out. Whoever wants a
//! [`Value`] takes the way over the text.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::object::{Cacheable, ErasedObject};

/// The object that this JSON is.
#[inline(never)]
pub(crate) fn decode<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    serde_json::from_str(json)
}

/// An object as JSON.
#[inline(never)]
pub(crate) fn encode<T: Serialize + ?Sized>(object: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(object)
}

/// An object as a document.
pub(crate) fn to_document<T: Serialize + ?Sized>(object: &T) -> serde_json::Result<Value> {
    serde_json::from_slice(&encode(object)?)
}

/// The object that a document is.
pub(crate) fn from_document<T: DeserializeOwned>(document: &Value) -> serde_json::Result<T> {
    decode(&serde_json::to_string(document)?)
}

/// Decodes objects of a type that the caller has forgotten.
pub(crate) type DecodeErased = fn(&str) -> serde_json::Result<Arc<dyn ErasedObject>>;

/// The object that this JSON is, of which nobody is to know the type.
pub(crate) fn decode_erased<K: Cacheable>(json: &str) -> serde_json::Result<Arc<dyn ErasedObject>> {
    Ok(Arc::new(decode::<K>(json)?))
}

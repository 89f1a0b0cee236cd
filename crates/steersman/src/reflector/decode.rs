//! What objects become on their way in: the choice of whoever keeps them.

use std::error::Error;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kube::Resource;

use crate::codec;
use crate::error::panic_text;
use crate::object::{Cacheable, ObjectKey};

/// Why an object could not be decoded.
pub(crate) type DecodeError = Box<dyn Error + Send + Sync>;

/// Makes something to keep of an object's JSON: the typed object, or its bytes, or a view of it.
///
/// A panic counts as an error of the object that was being decoded, as does an object that comes
/// out without a name; the decoder is used again for the others.
pub trait Decode: Send + 'static {
    /// What is kept of an object.
    type Output: Keyed + Send + 'static;

    /// Decodes one object of its JSON; more than one, or less, is an error. The text is part of a
    /// page or of a watch: keep no reference to it.
    fn decode(&mut self, json: &str) -> Result<Self::Output, DecodeError>;

    /// Decodes an object that was added or changed while its kind is being watched; what is known
    /// of it so far stays if this fails, so it should find out now.
    fn decode_change(&mut self, json: &str) -> Result<Self::Output, DecodeError> {
        self.decode(json)
    }
}

/// Knows which object it is, and in which version. Every [`kube::Resource`] does.
pub trait Keyed {
    /// Which object this is.
    fn key(&self) -> ObjectKey;

    /// The version of the object.
    fn resource_version(&self) -> Option<&str>;

    /// Whether it has a name, without which nobody can keep it.
    fn has_name(&self) -> bool {
        !self.key().name.is_empty()
    }
}

impl<K: Resource> Keyed for K {
    fn key(&self) -> ObjectKey {
        ObjectKey::of_meta(self.meta())
    }

    fn resource_version(&self) -> Option<&str> {
        self.meta().resource_version.as_deref()
    }

    fn has_name(&self) -> bool {
        self.meta().name.as_deref().is_some_and(|name| !name.is_empty())
    }
}

/// Decodes objects into their type.
pub struct Typed<K>(PhantomData<fn() -> K>);

impl<K> Typed<K> {
    /// The decoder of a type.
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<K> Default for Typed<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Cacheable> Decode for Typed<K> {
    type Output = K;

    fn decode(&mut self, json: &str) -> Result<K, DecodeError> {
        Ok(codec::decode(json)?)
    }
}

/// Calls what somebody else wrote; a panic becomes its text.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panic_text(&*panic))
}

//! What is to be known of the type of a child, which is forgotten otherwise.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;

use crate::codec::{Codec, to_document};
use crate::context::{ErasedContext, erased};
use crate::error::{Error, Result};
use crate::kind::{ErasedKind, Kind, KindId};
use crate::object::{AnyObject, ErasedObject, ObjectKey};

/// The form in which children of one kind are read and seen.
pub(super) trait Form: Send + Sync {
    fn kind(&self) -> ErasedKind;

    fn id(&self) -> KindId;

    /// The child in the cache.
    fn cached(&self, ctx: &ErasedContext, key: &ObjectKey)
    -> Result<Option<Arc<dyn ErasedObject>>>;

    /// All children of the kind in the cache.
    fn children(&self, ctx: &ErasedContext) -> Result<Vec<Arc<dyn ErasedObject>>>;

    /// An object of the kind as a document.
    fn document(&self, object: &dyn ErasedObject) -> Result<Value>;

    fn codec(&self) -> Codec;
}

impl<C: AnyObject> Form for Kind<C> {
    fn kind(&self) -> ErasedKind {
        self.erased()
    }

    fn id(&self) -> KindId {
        Kind::id(self)
    }

    fn cached(
        &self,
        ctx: &ErasedContext,
        key: &ObjectKey,
    ) -> Result<Option<Arc<dyn ErasedObject>>> {
        Ok(ctx.of_kind(self).cached(key)?.map(|object| object as _))
    }

    fn children(&self, ctx: &ErasedContext) -> Result<Vec<Arc<dyn ErasedObject>>> {
        Ok(erased(&ctx.of_kind(self).children()?))
    }

    fn document(&self, object: &dyn ErasedObject) -> Result<Value> {
        let object: &dyn Any = object;
        let object = object.downcast_ref::<C>();
        let object = object.ok_or_else(|| Error::message("the object is of another type"))?;
        Ok(to_document(object)?)
    }

    fn codec(&self) -> Codec {
        Codec::of::<C>()
    }
}

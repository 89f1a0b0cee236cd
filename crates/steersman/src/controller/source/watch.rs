//! Which objects a controller watches besides its own.

use crate::kind::Kind;
use crate::object::{AnyObject, Object};

/// A kind to watch. A [`Kind`] is one as well.
#[must_use = "a watch does nothing until a controller has it"]
pub struct Watch<C> {
    pub(super) kind: Kind<C>,
}

impl<C: Object> Watch<C> {
    /// Watches the kind that the type `C` stands for.
    pub fn of() -> Self {
        Self::of_kind(&Kind::of())
    }
}

impl<C: AnyObject> Watch<C> {
    /// Watches a kind that may be known only at run time.
    pub fn of_kind(kind: &Kind<C>) -> Self {
        Self { kind: kind.clone() }
    }

    /// The kind that is watched.
    pub fn kind(&self) -> &Kind<C> {
        &self.kind
    }
}

/// What names a kind to watch: a [`Watch`], or a [`Kind`] alone.
pub trait IntoWatch {
    /// The type of the objects.
    type Object: AnyObject;

    /// The watch.
    fn into_watch(self) -> Watch<Self::Object>;
}

impl<C: AnyObject> IntoWatch for Watch<C> {
    type Object = C;

    fn into_watch(self) -> Watch<C> {
        self
    }
}

impl<C: AnyObject> IntoWatch for Kind<C> {
    type Object = C;

    fn into_watch(self) -> Watch<C> {
        Watch::of_kind(&self)
    }
}

impl<C: AnyObject> IntoWatch for &Kind<C> {
    type Object = C;

    fn into_watch(self) -> Watch<C> {
        Watch::of_kind(self)
    }
}

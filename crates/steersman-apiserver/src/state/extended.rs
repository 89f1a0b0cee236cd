//! What a server has that extends another: resources that are computed when asked for, and somebody
//! who is asked who users are and may do.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::Value;

use super::reviews::Reviews;
use crate::status::Result;
use crate::user::User;

/// What somebody reads of a resource that is computed.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Who reads.
    pub user: &'a User,
    /// The namespace; empty for all of them, and for resources of the cluster.
    pub namespace: &'a str,
    /// Which objects of a list are wanted, by their labels; empty for all. Others are left out
    /// anyway: this is for whoever can do with less work.
    pub label_selector: &'a str,
}

/// A resource whose objects are computed when somebody asks for them, and stored nowhere. Who asks
/// may do so; selectors and the form of the answer are looked after.
pub trait Computed: Send + Sync + 'static {
    /// All objects of a namespace, or of all namespaces, in the order in which they are listed.
    fn list<'a>(&'a self, reading: Reading<'a>) -> BoxFuture<'a, Result<Vec<Value>>>;

    /// The object of a name, if there is one.
    fn get<'a>(
        &'a self,
        reading: Reading<'a>,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>>> {
        Box::pin(async move {
            let all = self.list(reading).await?;
            Ok(all.into_iter().find(|object| object["metadata"]["name"] == name))
        })
    }

    /// How often it is looked for changes while somebody watches. Without it, nobody can.
    fn watch_period(&self) -> Option<Duration> {
        None
    }

    /// The same object with what only its columns show, if they show more than it has.
    fn in_table(&self, object: Value) -> Value {
        object
    }
}

/// What a server has that extends another; nothing, if it does not.
#[derive(Default)]
pub(crate) struct Extended {
    /// By the names of definitions.
    pub(crate) computed: HashMap<String, Arc<dyn Computed>>,
    pub(crate) reviews: Option<Reviews>,
}

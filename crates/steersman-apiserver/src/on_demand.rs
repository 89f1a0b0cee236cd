//! Objects that their writer keeps up to date only while somebody looks.
//!
//! The heartbeats of simulated nodes are such: nobody can tell a Lease that was renewed all the
//! time from one that is renewed whenever it is read. Whoever writes them registers here
//! ([`ApiServer::on_demand`](crate::ApiServer::on_demand)) and is told before each request about
//! such objects is performed, and for how long they are watched. The cluster's own parts are not
//! counted: a garbage collector that follows every kind would keep all of them awake.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use steersman_rules::resource::Verb;

/// Keeps objects up to date when it is told that somebody looks.
pub trait OnDemand: Send + Sync + 'static {
    /// Brings objects up to date before they are read, changed or watched; the request waits for
    /// it. What is given back for a watch is dropped when the watch ends: until then changes are
    /// to be written when they happen.
    fn wanted<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Option<Held>>;
}

/// Is held for as long as objects are watched.
pub type Held = Box<dyn Any + Send>;

/// Which objects somebody looks at, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Their group; empty for core.
    pub group: &'a str,
    /// The plural name of their kind.
    pub resource: &'a str,
    /// Their namespace; empty if it is all of them, or there are none.
    pub namespace: &'a str,
    /// The name of the object; empty if it is all of them.
    pub name: &'a str,
    /// What is done with them.
    pub access: Access,
}

/// What is done with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// They are read.
    Read,
    /// They are created, changed or deleted.
    Write,
    /// They are read, and their changes followed.
    Watch,
}

impl From<Verb> for Access {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Get | Verb::List => Self::Read,
            Verb::Watch => Self::Watch,
            _ => Self::Write,
        }
    }
}

/// Who is told, if anybody.
pub(crate) type Registered = OnceLock<Arc<dyn OnDemand>>;

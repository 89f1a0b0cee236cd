//! The verbs that write, one file each: what a call asks for, in the words of its verb.
//!
//! A body is read once, by [`decode`]; what comes of it goes through [`crate::write`]. Whether it is
//! about the object of the path, [`identity`] says.

pub(crate) mod apply;
pub(crate) mod binding;
mod budget;
mod condition;
pub(crate) mod create;
mod decode;
pub(crate) mod delete;
pub(crate) mod delete_collection;
mod delete_options;
pub(crate) mod eviction;
mod identity;
mod language;
mod options;
pub(crate) mod patch;
pub(crate) mod scale;
pub(crate) mod token_request;
pub(crate) mod update;

use serde_json::{Value, json};
use steersman_rules::resource::Place;

use crate::authz::{Attributes, Target};
use crate::call::Call;
use crate::conversion::Known;
use crate::status::Result;
use crate::write::Writer;

impl Call {
    /// The writer of this request.
    pub(crate) fn writer(&self) -> Result<Writer<'_>> {
        options::check(self)?;
        Ok(Writer {
            server: &self.server,
            resource: &self.resource,
            api_version: self.api_version.clone(),
            manager: self.manager(),
            subresource: self.subresource(),
            dry_run: self.info.dry_run()?,
            now: self.server.now(),
            user: Some(&self.user),
            trusted: false,
            turn: None,
            call: Some(self),
            asks: true,
            hooks: self.server.webhooks.of(&self.resource),
            scale: None,
            known: Known::default(),
        })
    }
}

impl Call {
    /// Refuses to create what an update or an apply finds missing, unless the user may create it.
    fn may_create(&self) -> Result<()> {
        let Place { namespace, name } = self.place();
        let target = Target::Resource {
            group: &self.resource.group,
            resource: &self.resource.plural,
            subresource: self.subresource(),
            namespace,
            name,
        };
        self.server.authorizer.authorize(&Attributes::new(&self.user, "create", target))
    }
}

/// The body of a call as an object of its resource's kind.
pub(crate) fn body(call: &Call) -> Result<Value> {
    decode::object(call)
}

/// A Status that says it worked.
fn success(code: u16, details: Option<Value>) -> Value {
    let mut status =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    match details {
        Some(details) => status["details"] = details,
        None => status["code"] = code.into(),
    }
    status
}

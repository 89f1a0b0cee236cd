//! Resources that are computed when asked for: a get, a list or a watch of what a
//! [`Computed`] makes.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;
use steersman_rules::resource::{Place, Verb};

use crate::call::Call;
use crate::document::Stored;
use crate::negotiate::Shape;
use crate::read::options::ListOptions;
use crate::read::polled;
use crate::reply::{Page, Reply};
use crate::state::extended::{Computed, Reading};
use crate::status::{Result, Status};

/// Answers what is asked of something that is computed; `None` if it is about something else.
pub(crate) async fn answer(call: &Call) -> Result<Option<Reply>> {
    let computed = &call.server.extended.computed;
    if computed.is_empty() {
        return Ok(None);
    }
    let Some(computed) = computed.get(&call.resource.qualified()) else { return Ok(None) };
    // On the heap, so that requests stay small that are about something else.
    Box::pin(computed_by(call, computed)).await.map(Some)
}

async fn computed_by(call: &Call, computed: &Arc<dyn Computed>) -> Result<Reply> {
    let label_selector = call.info.query.get("labelSelector").unwrap_or("");
    let reading = Reading { user: &call.user, namespace: call.namespace(), label_selector };
    let shown = |object: Value| match call.output.shape {
        Shape::Table => computed.in_table(object),
        _ => object,
    };
    let place = call.place();
    let named = call.resource.named(place.name);
    match call.info.verb {
        Verb::Get => {
            let object = computed.get(reading, place.name).await?;
            let object = object.ok_or_else(|| Status::not_found(named))?;
            let object = Stored::unwritten(&shown(object))?;
            Ok(Reply::Object { code: StatusCode::OK, object })
        }
        Verb::List => {
            let options = ListOptions::of_unversioned(call)?;
            let mut page = Page::default();
            for object in computed.list(reading).await? {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or("");
                let place = Place { namespace: text("namespace"), name: text("name") };
                let key = call.resource.key(place);
                let object = Stored::unwritten(&shown(object))?;
                if options.selector.matches(&call.resource, &key, &object.bytes) {
                    page.objects.push(object);
                }
            }
            Ok(Reply::List(page))
        }
        Verb::Watch => match computed.watch_period() {
            Some(period) => polled::watch(call, computed, period).await,
            None => Err(Status::verb_not_supported(named, "watch")),
        },
        verb => Err(Status::verb_not_supported(named, verb.name())),
    }
}

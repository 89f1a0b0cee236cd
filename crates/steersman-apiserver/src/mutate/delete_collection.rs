//! DELETE of a collection: every object that the selectors match, one by one.

use steersman_rules::metadata;
use steersman_rules::resource::Place;

use super::delete::warn_of_orphans;
use super::delete_options;
use crate::call::Call;
use crate::read::list;
use crate::read::options::ListOptions;
use crate::reply::Reply;
use crate::status::Result;
use crate::write::Writer;
use crate::write::delete::delete_object;

/// Deletes what matches, and answers with the list of it.
pub(crate) async fn delete_collection(call: &Call) -> Result<Reply> {
    let options = delete_options::of(call)?;
    warn_of_orphans(call, &options);
    let page = list::page(call, &ListOptions::of_list(call)?).await?;
    let writer = Writer { dry_run: options.dry_run, ..call.writer()? };
    for object in &page.objects {
        let object = object.decode(&call.api_version)?;
        let place = Place {
            namespace: metadata::text(&object, "namespace"),
            name: metadata::text(&object, "name"),
        };
        match delete_object(&writer, place, &options).await {
            Err(status) if status.code != 404 => return Err(status),
            // Someone else deleted it first: it is gone, as wished.
            _ => {}
        }
    }
    Ok(Reply::List(page))
}

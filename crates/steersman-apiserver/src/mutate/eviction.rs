//! Evicting a pod: a deletion that a disruption budget may refuse.
//!
//! The budget is written down first, with the pod's name, so that its controller does not count
//! the pod any more; then the pod gets a condition that says why it goes, then it is deleted.

use http::StatusCode;
use serde_json::{Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::metadata;
use steersman_rules::resource::Named;
use steersman_rules::resource::Place;
use steersman_store::RangeRequest;

use super::budget::{self, Claim};
use super::condition::set_condition;
use super::{decode, success};
use crate::admission::Request;
use crate::call::Call;
use crate::document::Stored;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::write::delete::delete_object;
use crate::write::{DeleteOptions, Writer, change};

/// How often a pod may change under an eviction that asks no budget.
const ATTEMPTS: usize = 20;

const SEVERAL: &str = "This pod has more than one PodDisruptionBudget, which the eviction \
                       subresource does not support.";

/// Deletes the pod of the path as the Eviction says, if its budget allows it.
pub(crate) async fn evict(call: &Call) -> Result<Reply> {
    let mut body = decode::other(call, "policy/v1", "Eviction")?;
    let options = options(call, &body)?;
    Request::body(call, options.dry_run, &mut body).await?;
    // What follows from an eviction is the server's own doing.
    let dry_run = options.dry_run;
    let writer = Writer { dry_run, asks: false, hooks: None, subresource: "", ..call.writer()? };
    let eviction = Eviction { writer, place: call.place(), options };
    let Some(pod) = eviction.without_budget().await? else { return Ok(done()) };
    let budgets = eviction.budgets(&pod).await?;
    let claim = match budgets.as_slice() {
        [] => Claim::Guarded,
        [budget] => budget::claim(budget, &pod),
        _ => {
            let value = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": SEVERAL, "code": 500,
            });
            return Ok(Reply::Document { code: StatusCode::INTERNAL_SERVER_ERROR, value });
        }
    };
    match budgets.first() {
        Some(budget) if claim == Claim::Unhealthy => eviction.of_unhealthy(&pod, budget).await?,
        Some(budget) => {
            eviction.ask(metadata::text(budget, "name")).await?;
            eviction.delete(&eviction.options).await?;
        }
        None => eviction.delete(&eviction.options).await?,
    }
    Ok(done())
}

fn done() -> Reply {
    Reply::Document { code: StatusCode::CREATED, value: success(201, None) }
}

/// The deletion that an Eviction asks for.
fn options(call: &Call, eviction: &Value) -> Result<DeleteOptions> {
    let given = metadata::text(eviction, "name");
    let name = call.place().name;
    if given != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = DeleteOptions::of_document(&eviction["deleteOptions"])?;
    if options.ignore_read_error {
        let field = "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential";
        let why = "can not be set for pod eviction, try after removing the option";
        let error = FieldError::invalid(field, &true.into(), why);
        let what = Named { group: "policy", resource: "Eviction", name };
        return Err(Status::invalid(what, &[error]));
    }
    options.dry_run |= call.info.dry_run()?;
    Ok(options)
}

/// One eviction on its way.
struct Eviction<'a> {
    writer: Writer<'a>,
    place: Place<'a>,
    options: DeleteOptions,
}

impl Eviction<'_> {
    /// Evicts a pod that no budget has a say in; gives the pod if one has.
    async fn without_budget(&self) -> Result<Option<Value>> {
        let retries = self.options.resource_version.is_none();
        let mut attempts = ATTEMPTS;
        loop {
            let pod = self.pod().await?;
            if !budget::is_beyond_budgets(&pod) {
                return Ok(Some(pod));
            }
            let deleted = if retries && !budget::has_ended(&pod) {
                // It may become healthy this very moment, and then a budget has a say.
                self.delete(&self.at_version(&pod)).await
            } else {
                self.delete(&self.options).await
            };
            attempts -= 1;
            match deleted {
                Err(status) if status.reason == "Conflict" && retries && attempts > 0 => {}
                deleted => return deleted.map(|()| None),
            }
        }
    }

    /// Evicts a pod that is not ready, if it stays so.
    async fn of_unhealthy(&self, pod: &Value, budget: &Value) -> Result<()> {
        let given = self.options.resource_version.is_some();
        match self.delete(&self.at_version(pod)).await {
            Err(status) if status.reason == "Conflict" && !given => {
                Err(budget::still_processed(metadata::text(budget, "name")))
            }
            deleted => deleted,
        }
    }

    fn at_version(&self, pod: &Value) -> DeleteOptions {
        let version = metadata::text(pod, "resourceVersion").to_owned();
        DeleteOptions { resource_version: Some(version), ..self.options.clone() }
    }

    async fn pod(&self) -> Result<Value> {
        let resource = self.writer.resource;
        let entry = self.writer.server.get(&resource.key(self.place)).await?;
        let entry = entry.ok_or_else(|| Status::not_found(resource.named(self.place.name)))?;
        Stored::from(&entry).decode(&self.writer.api_version)
    }

    /// The budgets that cover the pod.
    async fn budgets(&self, pod: &Value) -> Result<Vec<Value>> {
        let prefix = format!("/registry/poddisruptionbudgets/{}/", self.place.namespace);
        let request = RangeRequest { prefix, ..RangeRequest::default() };
        let found = self.writer.server.store.range(request).await?;
        let budgets = found.entries.iter().map(|entry| Stored::from(entry).decode("policy/v1"));
        let budgets: Vec<Value> = budgets.collect::<Result<_>>()?;
        Ok(budgets.into_iter().filter(|budget| budget::covers(budget, pod)).collect())
    }

    /// Takes one disruption from the budget.
    async fn ask(&self, budget: &str) -> Result<()> {
        let table = self.writer.server.registry.table();
        let resource = table.get("policy", "v1", "poddisruptionbudgets");
        let resource = resource.ok_or_else(Status::no_such_resource)?;
        let writer = Writer {
            subresource: "status",
            dry_run: self.writer.dry_run,
            ..Writer::internal(self.writer.server, resource)
        };
        let place = Place { namespace: self.place.namespace, name: budget };
        change::change(&writer, place, |old| {
            let mut granted = budget::grant(old, self.place.name, &writer.now)?;
            writer.track(Some(old), &mut granted);
            Ok(granted)
        })
        .await?;
        Ok(())
    }

    /// Says why the pod goes, then deletes it. The version that is asked for is the one before.
    async fn delete(&self, options: &DeleteOptions) -> Result<()> {
        let mut options = options.clone();
        if !options.dry_run {
            let marked = change::change(&self.writer, self.place, |pod| {
                check(pod, &options)?;
                let mut marked = pod.clone();
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True",
                    "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
                });
                set_condition(&mut marked, condition, &self.writer.now);
                Ok(marked)
            });
            let marked = marked.await?;
            options.resource_version =
                options.resource_version.map(|_| marked.revision.to_string());
        }
        delete_object(&self.writer, self.place, &options).await.map(drop)
    }
}

fn check(pod: &Value, options: &DeleteOptions) -> Result<()> {
    let named = Named { group: "", resource: "Pod", name: metadata::text(pod, "name") };
    let is = metadata::text(pod, "uid");
    if let Some(wanted) = options.uid.as_deref().filter(|uid| !uid.is_empty() && *uid != is) {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({is}). \
             The object might have been deleted and then recreated"
        );
        return Err(Status::conflict(named, &why));
    }
    let is = metadata::text(pod, "resourceVersion");
    let wanted = options.resource_version.as_deref().filter(|rv| !rv.is_empty() && *rv != is);
    if let Some(wanted) = wanted {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the \
             ResourceVersion in record ({is}). The object might have been modified"
        );
        return Err(Status::conflict(named, &why));
    }
    Ok(())
}

//! Whether the match conditions of a webhook hold for a request.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use steersman_cel::access::{self, Access, Question};
use steersman_cel::{Activation, Budget, MATCH_CONDITIONS_BUDGET};
use steersman_rules::match_conditions::{
    AUTHORIZER, NAMESPACE, OBJECT, OLD_OBJECT, REQUEST, REQUEST_RESOURCE,
};
use steersman_rules::resource::{Named, Resource};

use super::admission_review::{self, Objects};
use super::matching::Version;
use super::request::Request;
use crate::admission_registration::Webhook;
use crate::authz::{Attributes, Target};
use crate::state::Server;
use crate::status::{Result, Status};
use crate::user::User;

/// Whether a webhook is to be asked. One condition that does not hold decides; else one that cannot
/// be evaluated ends as the webhook's failure policy says.
pub(super) fn hold(
    request: &Request<'_>,
    webhook: &Webhook,
    version: &Version,
    objects: Objects<'_>,
) -> Result<bool> {
    if webhook.conditions.is_empty() {
        return Ok(true);
    }
    let asked = admission_review::asked(request, version, objects);
    let [authorizer, about] = authorizers(request);
    let activation = Activation::new()
        .json(OBJECT, objects.new.unwrap_or(&Value::Null))
        .json(OLD_OBJECT, objects.old.unwrap_or(&Value::Null))
        .json(NAMESPACE, &Value::Null)
        .json(REQUEST, &asked)
        .value(AUTHORIZER, authorizer)
        .value(REQUEST_RESOURCE, about);
    let mut left = MATCH_CONDITIONS_BUDGET;
    let mut failures = Vec::new();
    for condition in &webhook.conditions {
        let program = match &condition.program {
            Ok(program) => program,
            Err(why) => {
                failures.push(why.clone());
                continue;
            }
        };
        let outcome = program.evaluate(&activation, Budget::of(left.min(Budget::default().cost)));
        match left.checked_sub(outcome.cost) {
            Some(rest) => left = rest,
            None => {
                failures.push(OUT_OF_BUDGET.to_owned());
                break;
            }
        }
        match outcome.value {
            Ok(answer) if answer.as_bool() == Some(true) => {}
            Ok(answer) if answer.as_bool() == Some(false) => return Ok(false),
            Ok(_) => failures.push(format!("expression '{}' is no bool", condition.expression)),
            Err(why) => failures
                .push(format!("expression '{}' resulted in error: {why}", condition.expression)),
        }
    }
    match failures.as_slice() {
        [] => Ok(true),
        _ if !webhook.fails => Ok(false),
        [only] => Err(refused(request, only)),
        several => Err(refused(request, &format!("[{}]", several.join(", ")))),
    }
}

/// What `authorizer` and `authorizer.requestResource` are in expressions about a request.
pub(super) fn authorizers(request: &Request<'_>) -> [steersman_cel::Value<'static>; 2] {
    let authorizer: Arc<dyn access::Authorizer> = Arc::new(Asker::of(request));
    let about = Access::resource(Arc::clone(&authorizer), about(request));
    [Access::start(authorizer), about].map(steersman_cel::Value::access)
}

pub(super) const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be run";

fn refused(request: &Request<'_>, why: &str) -> Status {
    let Resource { group, plural, .. } = request.resource;
    let what = Named { group, resource: plural, name: request.place.name };
    Status::forbidden(what, why, Vec::new())
}

/// The resource of the request, as a question about it begins.
fn about(request: &Request<'_>) -> Question {
    Question {
        group: request.resource.group.to_string(),
        resource: request.resource.plural.to_string(),
        subresource: request.subresource.to_owned(),
        namespace: request.place.namespace.to_owned(),
        name: request.place.name.to_owned(),
        ..Question::default()
    }
}

/// Asks this server's authorizer what the user of a request may do.
struct Asker {
    server: Arc<Server>,
    user: Arc<User>,
}

impl Asker {
    fn of(request: &Request<'_>) -> Self {
        let call = request.call;
        Self { server: Arc::clone(&call.server), user: Arc::clone(&call.user) }
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asker").field(&self.user.name).finish()
    }
}

impl access::Authorizer for Asker {
    fn authorize(&self, question: &Question) -> access::Decision {
        let account = question.service_account.as_ref();
        let account = account.map(|(namespace, name)| User::service_account(namespace, name));
        let target = match &question.path {
            Some(path) => Target::Path(path),
            None => Target::Resource {
                group: &question.group,
                resource: &question.resource,
                subresource: &question.subresource,
                namespace: &question.namespace,
                name: &question.name,
            },
        };
        let user = account.as_ref().unwrap_or(&self.user);
        let (verb, fields) = (question.verb.as_str(), question.field_selector.as_str());
        let decided = self.server.authorizer.decide(&Attributes { user, verb, target, fields });
        access::Decision { allowed: decided.allowed, reason: decided.reason, error: None }
    }
}

//! Asking the webhooks: mutating ones in order, validating ones at once.

use std::collections::BTreeSet;
use std::mem;

use futures::future::join_all;
use serde_json::{Value, json};
use steersman_rules::apply::managers_fault;
use steersman_rules::metadata;
use steersman_rules::patch::{self, PatchError};
use steersman_rules::resource::{Resource, Subresource};
use steersman_rules::schema::Schema;
use steersman_values::html_escaped;
use tokio::time::Instant;

use super::admission_review::{self, JSON_PATCH, Objects, Response, Role};
use super::conditions;
use super::matching::{self, Version};
use super::request::Request;
use crate::admission_registration::{Hooks, Webhook};
use crate::conversion;
use crate::metrics::{Step, WebhookAnswer, WebhookOutcome};
use crate::status::{Result, Status};

/// Why a webhook gave no consent.
enum Refusal {
    /// It could not be asked, or not be understood; its failure policy says what that means.
    Unreachable {
        why: String,
        /// Under which status that is counted.
        code: u16,
    },
    /// It said no.
    Denied(Status),
    /// The server cannot ask it, or not do what it said.
    Failed(Status),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Failed(status)
    }
}

impl Refusal {
    /// It answered what cannot be understood.
    fn not_understood(why: String) -> Self {
        Self::Unreachable { why, code: 503 }
    }

    /// The end of the request, unless the webhook is one that need not answer.
    fn of(self, webhook: &Webhook) -> Result<()> {
        match self {
            Self::Denied(status) | Self::Failed(status) => Err(status),
            Self::Unreachable { why, .. } => {
                let name = &webhook.name;
                let configuration = &webhook.configuration;
                tracing::warn!(webhook = name, configuration, why, "failed calling webhook");
                if !webhook.fails {
                    return Ok(());
                }
                Err(Status::internal(&format!("failed calling webhook {name:?}: {why}")))
            }
        }
    }
}

/// What is counted, and told to those who audit, of one webhook's turn.
struct Notes<'a> {
    request: &'a Request<'a>,
    webhook: &'a Webhook,
    round: usize,
    index: usize,
}

impl Notes<'_> {
    fn annotate(&self, prefix: &str, value: String) {
        if let Some(trail) = &self.request.call.trail {
            let Self { round, index, .. } = self;
            let key = format!("{prefix}webhook.admission.k8s.io/round_{round}_index_{index}");
            trail.annotate(key, value);
        }
    }

    /// Whether the webhook has changed anything, and, to those who see bodies, how.
    fn mutated(&self, outcome: &Result<Mutated, Refusal>) {
        let Some(trail) = &self.request.call.trail else { return };
        let done = outcome.as_ref().ok();
        let configuration = &self.webhook.configuration;
        let webhook = &self.webhook.name;
        let mutated = done.is_some_and(|done| done.object.is_some());
        let value = format!(
            r#"{{"configuration":{},"webhook":{},"mutated":{mutated}}}"#,
            json!(configuration),
            json!(webhook)
        );
        self.annotate("mutation.", value);
        let patch = done.and_then(|done| done.patch.as_ref());
        if let Some(patch) = patch.filter(|_| trail.wants_request()) {
            let patch: Value = serde_json::from_slice(patch).unwrap_or_default();
            let value = format!(
                r#"{{"configuration":{},"webhook":{},"patch":{},"patchType":"JSONPatch"}}"#,
                json!(configuration),
                json!(webhook),
                html_escaped(&patch.to_string())
            );
            self.annotate("patch.", value);
        }
    }

    /// The webhook could not be asked, and need not be.
    fn failed_open(&self, step: Step) {
        self.request.call.server.metrics.admission.failed_open(&self.webhook.name, step);
        let prefix = match step {
            Step::Admit => "failed-open.mutation.",
            Step::Validate => "failed-open.validating.",
        };
        self.annotate(prefix, self.webhook.name.clone());
    }
}

/// Mutating webhooks that are asked in order, and those that wish so a second time if others have
/// changed the object after them: other webhooks, or plug-ins and policies, which look again at what
/// was changed.
pub(super) struct Mutating<'a> {
    hooks: &'a Hooks,
    /// Those that wish to be asked again if something changes from now on.
    seen: Vec<usize>,
    /// Those that are to be asked again.
    again: BTreeSet<usize>,
    /// What the first round made of the object, if anybody may want to know.
    output: Option<Value>,
}

impl<'a> Mutating<'a> {
    pub(super) fn new(hooks: &'a Hooks) -> Self {
        Self { hooks, seen: Vec::new(), again: BTreeSet::new(), output: None }
    }

    /// Asks those whose turn it is in the first or second round. Says whether anything changed.
    pub(super) async fn ask(
        &mut self,
        round: usize,
        request: &Request<'_>,
        object: &mut Option<Value>,
        old: Option<&Value>,
    ) -> Result<bool> {
        let mut changed = false;
        if round == 1 && self.output != *object {
            self.again.extend(mem::take(&mut self.seen));
        }
        for (index, webhook) in self.hooks.mutating.iter().enumerate() {
            if round == 1 && !self.again.contains(&index) {
                continue;
            }
            let version = matching::version(request, webhook, object.as_ref(), old).await?;
            let Some(version) = version else { continue };
            if !wants(request, webhook, &version, object.as_ref(), old).await? {
                continue;
            }
            let notes = Notes { request, webhook, round, index };
            let outcome = change(request, webhook, &version, object.as_ref(), old).await;
            notes.mutated(&outcome);
            match outcome {
                Ok(Mutated { object: Some(new), .. }) => {
                    *object = Some(new);
                    changed = true;
                    self.again.extend(mem::take(&mut self.seen));
                }
                Ok(_) => {}
                Err(refusal) => {
                    refusal.of(webhook)?;
                    notes.failed_open(Step::Admit);
                }
            }
            if webhook.is_reinvoked {
                self.seen.push(index);
            }
        }
        if round == 0 && !self.seen.is_empty() {
            self.output.clone_from(object);
        }
        Ok(changed)
    }
}

/// Asks all validating webhooks; of several that refuse, the first is told.
pub(super) async fn validate(
    hooks: &Hooks,
    request: &Request<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<()> {
    let mut asked = Vec::new();
    for webhook in &hooks.validating {
        let Some(version) = matching::version(request, webhook, object, old).await? else {
            continue;
        };
        if wants(request, webhook, &version, object, old).await? {
            asked.push((webhook, version));
        }
    }
    let answers = asked.iter().map(|(webhook, version)| async move {
        let objects = Versioned::of(request, version, object, old).await?;
        let began = Instant::now();
        let answer = heard(request, webhook, version, Role::Validating, objects.objects()).await;
        count(request, webhook, Step::Validate, &answer, began);
        answer
    });
    let began = Instant::now();
    let answers = join_all(answers).await;
    request.call.waited(began.elapsed());
    for (index, ((webhook, _), answer)) in asked.iter().zip(answers).enumerate() {
        if let Err(refusal) = answer {
            refusal.of(webhook)?;
            Notes { request, webhook, round: 0, index }.failed_open(Step::Validate);
        }
    }
    Ok(())
}

/// Whether the match conditions of a webhook let it be asked.
async fn wants(
    request: &Request<'_>,
    webhook: &Webhook,
    version: &Version,
    new: Option<&Value>,
    old: Option<&Value>,
) -> Result<bool> {
    if webhook.conditions.is_empty() {
        return Ok(true);
    }
    let objects = Versioned::of(request, version, new, old).await?;
    conditions::hold(request, webhook, version, objects.objects())
}

/// The objects of a request in the version of a webhook or policy.
pub(super) struct Versioned {
    pub(super) new: Option<Value>,
    pub(super) old: Option<Value>,
}

impl Versioned {
    pub(super) async fn of(
        request: &Request<'_>,
        version: &Version,
        new: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Self> {
        let resource = version.resource(request);
        let mut converted = Vec::new();
        for object in [new, old] {
            converted.push(match object {
                Some(object) => Some(in_version(request, object, resource).await?),
                None => None,
            });
        }
        let old = converted.pop().flatten();
        Ok(Self { new: converted.pop().flatten(), old })
    }

    pub(super) fn objects(&self) -> Objects<'_> {
        Objects { new: self.new.as_ref(), old: self.old.as_ref() }
    }
}

/// An object of the request in another version of its resource. What is sent to a subresource
/// with a kind of its own is the same in all.
pub(super) async fn in_version(
    request: &Request<'_>,
    object: &Value,
    resource: &Resource,
) -> Result<Value> {
    if object["kind"] != *request.resource.kind {
        return Ok(object.clone());
    }
    let converted = conversion::object(&request.call.server, resource, object).await;
    converted.map_err(|status| Status::internal(&status.message))
}

/// Counts what came of asking one webhook, and how long that took.
fn count<T>(
    request: &Request<'_>,
    webhook: &Webhook,
    step: Step,
    outcome: &Result<T, Refusal>,
    began: Instant,
) {
    let outcome = match outcome {
        Ok(_) => WebhookOutcome::Allowed,
        Err(Refusal::Denied(status)) => WebhookOutcome::Denied(status.code),
        Err(Refusal::Unreachable { code, .. }) => {
            WebhookOutcome::Unreachable { code: *code, refuses: webhook.fails }
        }
        Err(Refusal::Failed(_)) => WebhookOutcome::Failed,
    };
    let operation = request.operation.as_str();
    let answered = WebhookAnswer { name: &webhook.name, step, operation, outcome };
    request.call.server.metrics.admission.webhook(answered, began.elapsed());
}

/// Asks one webhook, and hears what it has to say.
async fn heard(
    request: &Request<'_>,
    webhook: &Webhook,
    version: &Version,
    role: Role,
    objects: Objects<'_>,
) -> Result<Response, Refusal> {
    if request.dry_run && !webhook.knows_dry_run {
        let why = format!("admission webhook {:?} does not support dry run", webhook.name);
        return Err(Status::bad_request(why).into());
    }
    let server = &request.call.server;
    let uid = server.random.uid();
    let question = admission_review::question(request, webhook, version, &uid, objects);
    let question = question.map_err(|why| Refusal::Unreachable { why, code: 400 })?;
    let answered =
        server.origins.post(&*server.store, &webhook.target, &question, webhook.timeout).await;
    let uncalled = |why: &str, code: u16| Refusal::Unreachable {
        why: format!("failed to call webhook: {why}"),
        code,
    };
    let answered = answered.map_err(|error| uncalled(&error.to_string(), error.code()))?;
    if let Some(why) = admission_review::mistake(webhook, &answered) {
        return Err(uncalled(&why, 503));
    }
    let response = admission_review::answer(webhook, &uid, role, &answered);
    let response = response.map_err(Refusal::not_understood)?;
    response.warnings.iter().for_each(|warning| request.call.warn(warning.clone()));
    if let Some(trail) = &request.call.trail {
        let annotations = response.annotations.iter();
        annotations.for_each(|(key, value)| trail.annotate(key.as_str(), value.as_str()));
    }
    if !response.allowed {
        return Err(Refusal::Denied(response.refusal(&webhook.name)));
    }
    Ok(response)
}

/// What a mutating webhook has done.
#[derive(Default)]
struct Mutated {
    /// What it has made of the object, if that is another one.
    object: Option<Value>,
    /// The patch that it answered, if any.
    patch: Option<Vec<u8>>,
}

/// Asks a mutating webhook, and does what it says.
async fn change(
    request: &Request<'_>,
    webhook: &Webhook,
    version: &Version,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Mutated, Refusal> {
    let objects = Versioned::of(request, version, object, old).await?;
    let began = Instant::now();
    let response = heard(request, webhook, version, Role::Mutating, objects.objects()).await;
    request.call.waited(began.elapsed());
    let outcome = match response {
        Ok(response) => mutated(request, webhook, version, objects.new, response).await,
        Err(refusal) => Err(refusal),
    };
    count(request, webhook, Step::Admit, &outcome, began);
    outcome
}

/// Does to an object what a webhook says.
async fn mutated(
    request: &Request<'_>,
    webhook: &Webhook,
    version: &Version,
    before: Option<Value>,
    response: Response,
) -> Result<Mutated, Refusal> {
    let Response { patch, patch_type, .. } = response;
    if patch.is_empty() || patch == b"[]" {
        return Ok(Mutated::default());
    }
    let Some(before) = before else {
        return Err(Status::internal(&format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for \
             this operation",
            webhook.name
        ))
        .into());
    };
    if patch_type != JSON_PATCH {
        let why = format!("unsupported patch type {patch_type:?}");
        return Err(Refusal::Unreachable { why, code: 400 });
    }
    let mut patched = patched(&before, &patch)?;
    name_itself(request, &before, &patched)?;
    keep_kind(webhook, &before, &mut patched)?;
    let mut patched = decoded(request, version, patched)?;
    keep_managers(request, &before, &mut patched);
    if patched == before {
        return Ok(Mutated { object: None, patch: Some(patch) });
    }
    let back = Version::Same;
    let mut object = in_version(request, &patched, back.resource(request)).await?;
    if object["apiVersion"] != patched["apiVersion"] {
        // The other version may have filled in what this one does not know.
        request.resource.schema.prune(&mut object);
    }
    Ok(Mutated { object: Some(object), patch: Some(patch) })
}

fn patched(object: &Value, patch: &[u8]) -> Result<Value, Refusal> {
    patch::json_patch(object, patch).map_err(|error| match error {
        PatchError::Malformed(why) => Refusal::not_understood(format!(
            "received undecodable patch in webhook response: {why}"
        )),
        error => Refusal::Failed(Status::internal(&error.to_string())),
    })
}

/// Refuses a patch after which a custom resource does not say what it is: unlike others, it has no
/// type that would say so for it.
fn name_itself(request: &Request<'_>, before: &Value, patched: &Value) -> Result<()> {
    let Request { resource, .. } = request;
    if !(resource.is_custom() && before["kind"] == *resource.kind && patched.is_object()) {
        return Ok(());
    }
    let lacks = |field: &str| patched[field].is_null() || patched[field] == "";
    if lacks("kind") {
        let text = html_escaped(&patched.to_string());
        return Err(Status::internal(&format!("Object 'Kind' is missing in '{text}'")));
    }
    if lacks("apiVersion") {
        let kind = patched["kind"].as_str().unwrap_or_default();
        return Err(Status::failure(format!(
            "/, Kind={kind} is unstructured and is not suitable for converting to {:?}",
            resource.api_version()
        )));
    }
    Ok(())
}

/// Refuses a patch that leaves no object, or one of another kind.
fn keep_kind(webhook: &Webhook, before: &Value, patched: &mut Value) -> Result<(), Refusal> {
    let fields = patched.as_object_mut();
    let fields = fields.ok_or_else(|| makes_another(webhook, before))?;
    for field in ["apiVersion", "kind"] {
        let is = fields.entry(field).or_insert(Value::Null);
        if is.is_null() {
            is.clone_from(&before[field]);
        }
        if *is != before[field] {
            return Err(makes_another(webhook, before));
        }
    }
    Ok(())
}

fn makes_another(webhook: &Webhook, before: &Value) -> Refusal {
    let name = &webhook.name;
    let kind = before["kind"].as_str().unwrap_or("");
    let why = format!("admission webhook {name:?} attempted to make something else of a {kind}");
    Status::internal(&why).into()
}

/// Puts back who owns which fields if a patch has left nothing that makes sense.
pub(super) fn keep_managers(request: &Request<'_>, before: &Value, patched: &mut Value) {
    let managers = &patched["metadata"]["managedFields"];
    if *managers == before["metadata"]["managedFields"] {
        return;
    }
    if let Some(fault) = managers_fault(managers) {
        request.call.warn(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused \
             by an outdated mutating admission controller; please fix your requests: {fault}"
        ));
        let kept = before["metadata"].get("managedFields").cloned();
        metadata::set(patched, "managedFields", kept);
    }
}

/// What a patch has made of an object, as an object of its kind again.
pub(super) fn decoded(
    request: &Request<'_>,
    version: &Version,
    mut object: Value,
) -> Result<Value> {
    let resource = version.resource(request);
    let schema = schema(request, version);
    schema.prune(&mut object);
    schema.normalise(&mut object);
    if let Some(error) = schema.type_errors(&object).first() {
        return Err(Status::internal(error));
    }
    schema.apply_defaults(&mut object)?;
    if part(resource, request).is_none() {
        resource.rules.fill_in(&mut object);
    }
    Ok(object)
}

/// The subresource of a request that has a kind of its own.
fn part<'a>(resource: &'a Resource, request: &Request<'_>) -> Option<&'a Subresource> {
    resource.subresource(request.subresource).filter(|part| part.kind != resource.kind)
}

/// The schema of what is sent to the path of a request.
pub(super) fn schema(request: &Request<'_>, version: &Version) -> Schema {
    let resource = version.resource(request);
    match part(resource, request) {
        None => resource.schema.clone(),
        Some(part) => {
            let own = (resource.group.clone(), resource.version.clone());
            let (group, version) = part.group_version.clone().unwrap_or(own);
            Schema::builtin(&group, &version, &part.kind).unwrap_or_else(Schema::untyped)
        }
    }
}

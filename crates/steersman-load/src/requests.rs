//! Requests to the cluster, each of them measured.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch};
use kube::core::DynamicObject;
use steersman::{Client, Error, ListOptions, Result};
use tokio::time::{Instant, sleep, timeout};

use crate::observer::Observer;
use crate::population::{Lent, Population, Subject};
use crate::recorder::Recorder;

/// A request that takes longer has failed.
const TIME_MAX: Duration = Duration::from_secs(60);
/// How often an object is tried to be made.
const TRIES: u32 = 6;
/// What is told of a failure is no longer than this.
const REASON_MAX: usize = 240;

/// Who sends them.
pub(crate) struct Requests {
    pub(crate) client: Client,
    pub(crate) population: Population,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) observer: Observer,
}

impl Requests {
    /// Makes an object, and tries again for a while if it cannot be made.
    pub(crate) async fn fill(&self, lent: Lent) -> bool {
        for attempt in 0..TRIES {
            if attempt > 0 {
                sleep(Duration::from_millis(250) * 2_u32.pow(attempt)).await;
            }
            if self.create(lent.subject, Instant::now()).await {
                self.population.give_back(lent, Some(lent.subject));
                return true;
            }
        }
        false
    }

    /// Makes an object.
    async fn create(&self, subject: Subject, due: Instant) -> bool {
        let object = match self.population.object(subject) {
            Ok(object) => object,
            Err(error) => return self.failed("create", subject, &error),
        };
        let kind = &self.population.sort(subject).kind;
        let client = self.client.of_kind(kind);
        self.write("create", subject, due, client.create(&object)).await
    }

    /// Changes an object.
    pub(crate) async fn update(&self, lent: Lent, number: u64, due: Instant) {
        let subject = lent.subject;
        let patch = Patch::Merge(self.population.patch(subject, number));
        let client = self.client.of_kind(&self.population.sort(subject).kind);
        let patched = client.patch(self.population.key(subject), &patch);
        self.write("patch", subject, due, patched).await;
        self.population.give_back(lent, Some(subject));
    }

    /// Deletes an object and makes another one in its place.
    pub(crate) async fn churn(&self, lent: Lent, due: Instant) {
        let subject = lent.subject;
        let sort = self.population.sort(subject);
        let client = self.client.of_kind(&sort.kind);
        let params = DeleteParams::background();
        let deleted = client.delete(self.population.key(subject), &params);
        if self.timed(&format!("delete {}", sort.resource()), due, deleted).await.is_none() {
            return self.population.give_back(lent, Some(subject));
        }
        let next = Subject { life: subject.life + 1, ..subject };
        let created = self.create(next, Instant::now()).await;
        self.population.give_back(lent, created.then_some(next));
    }

    /// Reads an object.
    pub(crate) async fn get(&self, lent: Lent, due: Instant) {
        let sort = self.population.sort(lent.subject);
        let client = self.client.of_kind(&sort.kind);
        let read = client.get(self.population.key(lent.subject));
        self.timed(&format!("get {}", sort.resource()), due, read).await;
        self.population.give_back(lent, Some(lent.subject));
    }

    /// Lists the objects of a sort in a namespace.
    pub(crate) async fn list(&self, due: Instant) {
        let (place, namespace) = self.population.somewhere();
        let sort = &self.population.sorts[place];
        let client = self.client.of_kind(&sort.kind);
        let namespace = sort.kind.is_namespaced().then(|| self.population.namespace(namespace));
        let labels = Some(self.population.selector(place));
        let options = ListOptions { namespace, labels, fields: None };
        self.timed(&format!("list {}", sort.resource()), due, client.list(&options)).await;
    }

    /// Removes an object at the end.
    pub(crate) async fn remove(&self, subject: Subject) {
        let sort = self.population.sort(subject);
        let client = self.client.of_kind(&sort.kind);
        let params = DeleteParams::background();
        let removed = client.delete(self.population.key(subject), &params);
        self.timed(&format!("delete {}", sort.resource()), Instant::now(), removed).await;
    }

    /// Removes a namespace at the end.
    pub(crate) async fn remove_namespace(&self, name: String) {
        let params = DeleteParams::background();
        let removed = self.client.delete::<Namespace>(name, &params);
        self.timed("delete namespaces", Instant::now(), removed).await;
    }

    /// A write of an object, of which the observer is told.
    async fn write(
        &self,
        verb: &str,
        subject: Subject,
        due: Instant,
        request: impl Future<Output = Result<DynamicObject>>,
    ) -> bool {
        let name = format!("{verb} {}", self.population.sort(subject).resource());
        let key = self.population.key(subject);
        self.observer.writing(subject.sort, &key, due);
        let answer = self.timed(&name, due, request).await;
        self.observer.written(subject.sort, &key, answer.as_ref());
        answer.is_some()
    }

    /// The answer to a request, whose time counts from when it was due.
    async fn timed<T>(
        &self,
        name: &str,
        due: Instant,
        request: impl Future<Output = Result<T>>,
    ) -> Option<T> {
        match timeout(TIME_MAX, request).await {
            Ok(Ok(answer)) => {
                self.recorder.done(name, due.elapsed());
                Some(answer)
            }
            Ok(Err(error)) => {
                self.recorder.failed(name, &reason(&error));
                None
            }
            Err(_) => {
                self.recorder.failed(name, &format!("no answer after {} s", TIME_MAX.as_secs()));
                None
            }
        }
    }

    fn failed(&self, verb: &str, subject: Subject, error: &Error) -> bool {
        let name = format!("{verb} {}", self.population.sort(subject).resource());
        self.recorder.failed(&name, &reason(error));
        false
    }
}

/// A failure in one line.
fn reason(error: &Error) -> String {
    let text = match error.status() {
        Some(status) => format!("{} {}: {}", status.code, status.reason, status.message),
        None => error.to_string(),
    };
    text.chars().take(REASON_MAX).collect()
}

//! One of the two servers, and how a scenario runs on it.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use steersman_bench_wire::{Connection, Server, trusting};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::step::{Kept, Role, Scenario, Step, Tidy};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait before asking again.
const PAUSE: Duration = Duration::from_millis(100);

/// Names the field manager, so it is the same for both.
const USER_AGENT: &str = "steersman-compare";

/// A server to be asked.
#[derive(Clone)]
pub(crate) struct Side {
    server: Server,
}

/// What a server said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// 0 if there was none.
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, Vec<String>>,
    pub(crate) body: Bytes,
}

impl Side {
    pub(crate) fn new(url: &str, token: &str) -> Result<Self, String> {
        Ok(Self { server: Server::new(url, trusting()?, Some(token))? })
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> &str {
        self.server.address()
    }

    /// Who the server takes us for, as `status.userInfo` of a SelfSubjectReview.
    pub(crate) async fn who(&self) -> Result<Value, String> {
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let step = Step::post("who", path, review);
        let answer = self.ask(&mut None, &step, &Kept::new()).await?;
        let review: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| format!("{} answers {}", self.address(), answer.status))?;
        match review.pointer("/status/userInfo") {
            Some(user) => Ok(user.clone()),
            None => Err(format!("{} does not say who we are: {review}", self.address())),
        }
    }

    /// Runs every step in order, watches next to each other at once; one answer each.
    pub(crate) async fn run(&self, scenario: &Scenario) -> Vec<Answer> {
        let mut connection = None;
        let mut kept = Kept::new();
        let mut answers = Vec::with_capacity(scenario.steps.len());
        let mut open: Vec<(usize, JoinHandle<Answer>)> = Vec::new();
        let is_watch = |step: &Step| step.role == Role::Watch;
        for steps in scenario.steps.chunk_by(|one, next| is_watch(one) && is_watch(next)) {
            if steps.iter().all(is_watch) {
                // One that is slow to begin must not use up the time of the others.
                let opened = steps.iter().map(|step| self.open(step, &kept));
                for opened in futures::future::join_all(opened).await {
                    let stream = opened.map(|stream| open.push((answers.len(), stream)));
                    answers.push(stream.err().map(Answer::failed).unwrap_or_default());
                }
                continue;
            }
            for step in steps {
                let answer = self.settled(&mut connection, step, &kept).await;
                if let Some(name) = step.keep {
                    kept.insert(name, serde_json::from_slice(&answer.body).unwrap_or_default());
                }
                answers.push(answer);
            }
        }
        for (index, stream) in open {
            answers[index] = stream.await.unwrap_or_default();
        }
        self.tidy(&mut connection, &scenario.tidy).await;
        answers
    }

    /// The answer to a step, or the first good one if it is to be waited for.
    async fn settled(
        &self,
        connection: &mut Option<Connection>,
        step: &Step,
        kept: &Kept,
    ) -> Answer {
        let end = Instant::now() + PATIENCE;
        loop {
            let answer = self.ask(connection, step, kept).await.unwrap_or_else(Answer::failed);
            let is_settled = match step.role {
                Role::Await => (200..300).contains(&answer.status),
                Role::AwaitGone => answer.status == 404,
                Role::AwaitText(text) => String::from_utf8_lossy(&answer.body).contains(text),
                Role::Compared | Role::Needed | Role::Setup | Role::Watch => true,
            };
            if is_settled || Instant::now() > end {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Starts a watch; returns once the server has begun to answer.
    async fn open(&self, step: &Step, kept: &Kept) -> Result<JoinHandle<Answer>, String> {
        let mut connection = self.server.connect().await?;
        let sent = tokio::time::timeout(PATIENCE, connection.send(request(step, kept)?));
        let response = sent.await.map_err(|_| "no answer in time")??;
        Ok(tokio::spawn(async move {
            let answer = tokio::time::timeout(PATIENCE, whole(response)).await;
            drop(connection);
            answer.unwrap_or_else(|_| Answer::failed("the stream does not end".into()))
        }))
    }

    async fn ask(
        &self,
        connection: &mut Option<Connection>,
        step: &Step,
        kept: &Kept,
    ) -> Result<Answer, String> {
        let asked = async {
            let mut open = match connection.take() {
                Some(open) => open,
                None => self.server.connect().await?,
            };
            let response = match open.send(request(step, kept)?).await {
                Ok(response) => response,
                // The server may have closed a connection that was idle, or was told too much.
                Err(_) => {
                    open = self.server.connect().await?;
                    open.send(request(step, kept)?).await?
                }
            };
            let answer = whole(response).await;
            *connection = Some(open);
            Ok::<_, String>(answer)
        };
        let answer = tokio::time::timeout(PATIENCE, asked).await;
        answer.map_err(|_| "no answer in time".to_owned())?
    }

    /// Removes what a scenario made, as far as the server lets us.
    async fn tidy(&self, connection: &mut Option<Connection>, tidy: &Tidy) {
        for collection in &tidy.collections {
            self.empty(connection, collection).await;
        }
        let Some(namespace) = &tidy.namespace else { return };
        let path = format!("/api/v1/namespaces/{namespace}");
        let accounts = format!("{path}/serviceaccounts");
        self.empty(connection, &accounts).await;
        let _ = self.ask(connection, &Step::delete("", &path), &Kept::new()).await;
        self.finalize(connection, namespace).await;
    }

    /// Lets a namespace go: nobody does where no controllers run.
    async fn finalize(&self, connection: &mut Option<Connection>, namespace: &str) {
        let body = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace}, "spec": {"finalizers": []},
        });
        let path = format!("/api/v1/namespaces/{namespace}/finalize");
        let _ = self.ask(connection, &Step::put("", &path, body), &Kept::new()).await;
    }

    /// Deletes what is in a collection, also what has finalizers.
    async fn empty(&self, connection: &mut Option<Connection>, collection: &str) {
        let kept = Kept::new();
        let list = self.ask(connection, &Step::get("", collection), &kept).await;
        let list: Value =
            list.ok().and_then(|a| serde_json::from_slice(&a.body).ok()).unwrap_or_default();
        let place = collection.split('?').next().unwrap_or(collection);
        for item in list["items"].as_array().into_iter().flatten() {
            let Some(name) = item["metadata"]["name"].as_str() else { continue };
            let path = format!("{place}/{name}");
            if item["metadata"]["finalizers"].is_array() {
                let free = json!({"metadata": {"finalizers": null}});
                let free = Step::patch("", &path, crate::step::Language::Merge, free);
                let _ = self.ask(connection, &free, &kept).await;
            }
            let gone = Step::delete("", &path).query("gracePeriodSeconds=0");
            let _ = self.ask(connection, &gone, &kept).await;
            if place == "/api/v1/namespaces" {
                self.finalize(connection, name).await;
            }
        }
    }
}

impl Answer {
    /// No answer at all, and why.
    pub(crate) fn failed(why: String) -> Self {
        Self { body: why.into(), ..Self::default() }
    }

    /// The first value of a header.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|values| values.first()).map_or("", String::as_str)
    }
}

fn request(step: &Step, kept: &Kept) -> Result<Request<Bytes>, String> {
    let body = step.filled_body(kept);
    let mut builder = Request::builder()
        .method(step.method)
        .uri(step.filled_path(kept))
        .header("user-agent", USER_AGENT);
    for (name, value) in &step.headers {
        builder = builder.header(*name, value);
    }
    let has = |wanted: &str| step.headers.iter().any(|(name, _)| *name == wanted);
    if !body.is_empty() && !has("content-type") {
        builder = builder.header("content-type", "application/json");
    }
    if !has("accept") {
        builder = builder.header("accept", "application/json");
    }
    builder.body(body.into()).map_err(|error| format!("{}: {error}", step.id))
}

/// The whole answer; a stream that breaks off is what came of it.
async fn whole(response: http::Response<Incoming>) -> Answer {
    let (parts, mut incoming) = response.into_parts();
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in &parts.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        headers.entry(name.to_string()).or_default().push(value);
    }
    let mut body = BytesMut::new();
    while let Some(Ok(frame)) = incoming.frame().await {
        if let Ok(data) = frame.into_data() {
            body.extend_from_slice(&data);
        }
    }
    Answer { status: parts.status.as_u16(), headers, body: body.freeze() }
}

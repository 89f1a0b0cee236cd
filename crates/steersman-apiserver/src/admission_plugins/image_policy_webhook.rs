//! `ImagePolicyWebhook` asks somebody elsewhere whether the images of a pod may be run. Its
//! configuration says whom, how long an answer counts, and what holds if there is none.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use steersman_rules::names;

use super::fields::items;
use super::stored::absent;
use crate::admission_registration::Operation;
use crate::state::Server;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;
use crate::webhook_client::{Answers, Inquiry, Key, Target, WebhookEndpoint};

const API_VERSION: &str = "imagepolicy.k8s.io/v1alpha1";
const KIND: &str = "ImageReview";
const EPHEMERAL: &str = "ephemeralcontainers";

/// What the annotations of a pod have in common that are shown to the webhook.
const SHOWN: &str = ".image-policy.k8s.io/";

/// What stands before what those are told who audit.
const AUDITED: &str = "imagepolicywebhook.image-policy.k8s.io/";

/// How long one answer may take.
const TIME_MAX: Duration = Duration::from_secs(30);

const MILLISECOND: i64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;

/// After how long it is asked again, where that may help.
const PAUSE: Setting =
    Setting { unit: MILLISECOND, usual: 500 * MILLISECOND, range: 1..=5 * MINUTE };
/// How long a consent counts.
const ALLOWED: Setting = Setting { unit: SECOND, usual: 5 * MINUTE, range: SECOND..=30 * MINUTE };
/// How long a refusal does.
const REFUSED: Setting = Setting { unit: SECOND, usual: 30 * SECOND, range: SECOND..=30 * MINUTE };

/// Makes the plug-in, with what its configuration says.
pub(super) fn plugin(told: Option<&Value>) -> Result<Box<dyn Plugin>, String> {
    let told = told.ok_or("no config specified")?;
    let document = Document::deserialize(told).map_err(|error| error.to_string())?;
    let Settings { kubeconfig, allow_ttl, deny_ttl, retry_backoff, default_allow } =
        document.settings;
    let pause = PAUSE.read(retry_backoff)?;
    let allowed_for = ALLOWED.read(allow_ttl)?;
    let refused_for = REFUSED.read(deny_ttl)?;
    let endpoint = WebhookEndpoint::of_kubeconfig(&kubeconfig).map_err(|why| why.to_string())?;
    let WebhookEndpoint { url, authorities, identity, token } = endpoint;
    let target = Target::at(&url, authorities).showing(identity);
    let answers = Answers::default();
    let plugin = ImagePolicyWebhook {
        target,
        token,
        pause,
        allowed_for,
        refused_for,
        default_allow,
        answers,
    };
    Ok(Box::new(plugin))
}

/// The configuration, which has no version.
#[derive(Deserialize)]
struct Document {
    #[serde(default, rename = "imagePolicy")]
    settings: Settings,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Settings {
    #[serde(rename = "kubeConfigFile")]
    kubeconfig: PathBuf,
    #[serde(rename = "allowTTL")]
    allow_ttl: i64,
    #[serde(rename = "denyTTL")]
    deny_ttl: i64,
    #[serde(rename = "retryBackoff")]
    retry_backoff: i64,
    #[serde(rename = "defaultAllow")]
    default_allow: bool,
}

/// A time that can be set, in nanoseconds.
struct Setting {
    /// In what it is given.
    unit: i64,
    /// What it is unless it is given.
    usual: i64,
    range: RangeInclusive<i64>,
}

impl Setting {
    /// What is given: the usual time for 0, and none for -1.
    fn read(&self, given: i64) -> Result<Duration, String> {
        let nanos = match given {
            -1 => return Ok(Duration::ZERO),
            0 => self.usual,
            given => given.saturating_mul(self.unit),
        };
        if self.range.contains(&nanos) {
            return Ok(Duration::from_nanos(nanos.unsigned_abs()));
        }
        let told = [*self.range.start(), *self.range.end(), nanos];
        let [least, most, nanos] = told.map(|nanos| steersman_cel::Duration { nanos });
        Err(format!("valid value is between {least} and {most}, got {nanos}"))
    }
}

/// Asks about images.
struct ImagePolicyWebhook {
    target: Target,
    token: Option<String>,
    /// After how long it is asked again, where that may help.
    pause: Duration,
    /// How long a consent counts, and a refusal.
    allowed_for: Duration,
    refused_for: Duration,
    /// Whether images may be run that nobody can be asked about.
    default_allow: bool,
    answers: Answers<Verdict>,
}

/// What was answered.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Verdict {
    allowed: bool,
    #[serde(deserialize_with = "absent")]
    reason: String,
    /// What those are told who audit.
    #[serde(deserialize_with = "absent")]
    audit_annotations: BTreeMap<String, String>,
}

impl Plugin for ImagePolicyWebhook {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.operation != Operation::Delete
            && matches!(write.subresource, "" | EPHEMERAL)
            && write.resource.is("", "pods")
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(pod) = new else { return Ok(()) };
            let judged = self.judge(write, question(&write, pod)).await;
            judged.map_err(|why| write.forbidden(pod, &why))
        })
    }
}

/// What is asked about a pod: the images that come with this write.
fn question(write: &Attributes<'_>, pod: &Value) -> Value {
    let lists: &[&str] = match write.subresource {
        EPHEMERAL => &["ephemeralContainers"],
        _ => &["containers", "initContainers"],
    };
    let containers = lists.iter().flat_map(|list| items(&pod["spec"][*list]));
    let images: Vec<Value> =
        containers.map(|container| json!({"image": container["image"]})).collect();
    let annotations = pod["metadata"]["annotations"].as_object().into_iter().flatten();
    let shown = annotations.filter(|(key, _)| key.contains(SHOWN));
    let shown: Map<String, Value> =
        shown.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut question = json!({"containers": images, "namespace": write.place.namespace});
    if !shown.is_empty() {
        question["annotations"] = shown.into();
    }
    question
}

impl ImagePolicyWebhook {
    /// Refuses what the webhook does, or what nobody can be asked about.
    async fn judge(&self, write: Attributes<'_>, question: Value) -> Result<(), String> {
        let key = Key::of(question.to_string().as_bytes());
        let verdict = match self.answers.recall(&key) {
            Some(verdict) => verdict,
            None => match self.ask(write.server, question).await {
                Ok(verdict) => {
                    let lasts = if verdict.allowed { self.allowed_for } else { self.refused_for };
                    self.answers.keep(key, verdict.clone(), lasts);
                    verdict
                }
                Err(_) if self.default_allow => {
                    audit(write, "failed-open", "true");
                    return Ok(());
                }
                Err(why) => return Err(why),
            },
        };
        for (key, text) in &verdict.audit_annotations {
            audit(write, key, text);
        }
        match (verdict.allowed, verdict.reason.as_str()) {
            (true, _) => Ok(()),
            (false, "") => Err("one or more images rejected by webhook backend".to_owned()),
            (false, why) => {
                Err(format!("image policy webhook backend denied one or more images: {why}"))
            }
        }
    }

    async fn ask(&self, server: &Server, question: Value) -> Result<Verdict, String> {
        let review = json!({
            "kind": KIND, "apiVersion": API_VERSION, "metadata": {}, "spec": question,
            "status": {"allowed": false},
        });
        let inquiry = Inquiry {
            target: &self.target,
            token: self.token.as_deref(),
            review: &review,
            within: TIME_MAX,
            pause: self.pause,
        };
        let answered = server.origins.inquire(&*server.store, inquiry).await;
        let mut answer = answered.map_err(|error| {
            tracing::warn!(%error, "the image policy webhook cannot be asked");
            error.to_string()
        })?;
        if answer["kind"] != KIND || answer["apiVersion"] != API_VERSION {
            return Err(format!("the image policy webhook answered no {KIND} of {API_VERSION}"));
        }
        let verdict: Option<Verdict> =
            serde_json::from_value(answer["status"].take()).map_err(|error| error.to_string())?;
        Ok(verdict.unwrap_or_default())
    }
}

/// Tells those who audit, if it has a name with which they can be told.
fn audit(write: Attributes<'_>, key: &str, text: &str) {
    let key = format!("{AUDITED}{key}");
    if let Some(trail) = write.trail.filter(|_| names::qualified_name(&key).is_empty()) {
        trail.annotate(key, text);
    }
}

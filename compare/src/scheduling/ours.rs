//! Our cluster, in which nothing moves but our scheduler, for Pods that name it.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};

use steersman_cluster::{Cluster, SchedulerConfiguration};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, filter};

use super::scores::Told;
use crate::api::Api;

/// The scheduler name of its Pods.
pub(super) const NAME: &str = "steersman";
/// Where our scheduler tells scores.
const SCORES: &str = "steersman_scheduler::scores";

/// The cluster; it ends when dropped.
pub(super) struct Ours {
    pub(super) told: Told,
    pub(super) api: Api,
    pub(super) kubeconfig: String,
    _cluster: Cluster,
}

impl Ours {
    pub(super) async fn start() -> Result<Self, String> {
        let told = Told::default();
        let scores = Listener(told.clone()).with_filter(only_scores());
        let listening = tracing_subscriber::registry().with(scores).try_init();
        listening.map_err(|error| error.to_string())?;
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let only = "kube-scheduler".parse::<steersman_cluster::Controllers>();
        let only = only.map_err(|error| error.to_string())?;
        let builder = Cluster::builder().nodes(0).controllers(only).listen(any_port);
        let builder = builder.scheduler(SchedulerConfiguration::default().named(NAME));
        let builder = builder.map_err(|error| error.to_string())?;
        let cluster = builder.start().await.map_err(|error| error.to_string())?;
        let endpoint = cluster.endpoint().ok_or("the cluster does not listen")?;
        let kubeconfig = endpoint.kubeconfig.clone();
        Ok(Self { told, api: Api(cluster.client()), kubeconfig, _cluster: cluster })
    }
}

fn only_scores<S: Subscriber>() -> impl Filter<S> {
    filter::Targets::new().with_target(SCORES, LevelFilter::TRACE)
}

/// Notes scores.
struct Listener(Told);

impl<S: Subscriber> Layer<S> for Listener {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut score = Score::default();
        event.record(&mut score);
        self.0.note(&score.pod, &score.plugin, &score.node, score.score);
    }
}

/// What an event tells.
#[derive(Default)]
struct Score {
    pod: String,
    plugin: String,
    node: String,
    score: i64,
}

impl Score {
    fn set(&mut self, field: &Field, text: String) {
        match field.name() {
            "pod" => self.pod = text,
            "plugin" => self.plugin = text,
            "node" => self.node = text,
            _ => {}
        }
    }
}

impl Visit for Score {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        if field.name() == "score" {
            self.score = value;
        }
    }
}

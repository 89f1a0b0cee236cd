//! `/metrics`: what the server counts, as Prometheus reads it.
//!
//! Most of it is counted where it happens ([`crate::metrics`]); the rest is looked up when somebody
//! asks: how many objects there are, and what the process takes ([`process`]). Others in this
//! process can [tell](Others) what they count. Checks of health are told apart ([`slis`]).

pub(crate) mod process;
pub(crate) mod slis;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use http::{HeaderValue, Response, header};
use steersman_rules::resource::Verb;
use steersman_store::RangeRequest;

use crate::aggregation;
use crate::discovery;
use crate::lookup;
use crate::metrics::Page;
use crate::reply::ResponseBody;
use crate::state::Server;

const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Tells metrics of others, in the text format of Prometheus, version 0.0.4.
pub type MetricsSource = Arc<dyn Fn() -> String + Send + Sync>;

/// Who else of this process has metrics that are told here.
#[derive(Default)]
pub(crate) struct Others(Mutex<BTreeMap<&'static str, MetricsSource>>);

impl Others {
    pub(crate) fn set(&self, part: &'static str, source: MetricsSource) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(part, source);
    }

    fn write(&self, out: &mut String) {
        let sources = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for source in sources.values() {
            out.push_str(&source());
        }
    }
}

/// Answers with all metrics.
pub(crate) async fn answer(server: &Server, others: &Others) -> Response<ResponseBody> {
    let mut out = String::new();
    server.metrics.registry.write(&mut out);
    write_objects(server, &mut out).await;
    write_api_services(server, &mut out).await;
    process::write(&mut out);
    write_build(&mut out);
    others.write(&mut out);
    page(out)
}

fn page(text: String) -> Response<ResponseBody> {
    let mut response = Response::new(text.into_bytes().into());
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
}

/// How many objects there are of each kind, as far as this server has heard; -1 if it cannot say.
async fn write_objects(server: &Server, out: &mut String) {
    let table = server.registry.table();
    let mut folders = HashSet::new();
    let mut counted = Vec::new();
    for resource in table.resources().filter(|resource| resource.verbs.contains(&Verb::Watch)) {
        let prefix = resource.prefix("");
        if !folders.insert(prefix.clone()) {
            continue;
        }
        let counts = lookup::stock(&*server.store, prefix).await.ok().and_then(|stock| {
            let bytes = stock.objects.saturating_mul(stock.size);
            Some((i64::try_from(stock.objects).ok()?, i64::try_from(bytes).ok()?))
        });
        counted.push((resource, counts.unwrap_or((-1, -1))));
    }
    let help = "Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.";
    let name = "apiserver_resource_objects";
    let mut page = Page::begin(out, name, "gauge", &format!("[ALPHA] {help}"));
    for (resource, (number, _)) in &counted {
        let labels = [("group", &*resource.group), ("resource", &*resource.plural)];
        page.sample("", &labels, *number);
    }
    let help_of_size = "[ALPHA] Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of serialized objects. In case of a fetching error, the value will be -1.";
    let name = "apiserver_resource_size_estimate_bytes";
    let mut page = Page::begin(out, name, "gauge", help_of_size);
    for (resource, (_, bytes)) in &counted {
        let labels = [("group", &*resource.group), ("resource", &*resource.plural)];
        page.sample("", &labels, *bytes);
    }
    let name = "apiserver_storage_objects";
    let instead = "[DEPRECATED, consider using apiserver_resource_objects instead]";
    let mut page = Page::begin(out, name, "gauge", &format!("[STABLE] {instead} {help}"));
    for (resource, (number, _)) in &counted {
        page.sample("", &[("resource", &resource.qualified())], *number);
    }
}

/// Which APIServices are not available: what is served here always is.
async fn write_api_services(server: &Server, out: &mut String) {
    let request =
        RangeRequest { prefix: aggregation::folder(), stale: true, ..RangeRequest::default() };
    let Ok(found) = server.store.range(request).await else { return };
    if found.entries.is_empty() {
        return;
    }
    let help = "[ALPHA] Gauge of APIServices which are marked as unavailable broken down by APIService name.";
    let mut page = Page::begin(out, "aggregator_unavailable_apiservice", "gauge", help);
    let remotes = server.remotes.table();
    for entry in &found.entries {
        let name = entry.key.rsplit_once('/').map_or(&*entry.key, |(_, name)| name);
        let is_gone = remotes.get(name).is_some_and(|remote| !remote.is_available());
        page.sample("", &[("name", name)], u64::from(is_gone));
    }
}

fn write_build(out: &mut String) {
    let help = "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.";
    let mut page = Page::begin(out, "kubernetes_build_info", "gauge", help);
    let labels = discovery::build_labels();
    let labels: Vec<(&str, &str)> =
        labels.iter().map(|(label, value)| (*label, &**value)).collect();
    page.sample("", &labels, 1_u64);
}

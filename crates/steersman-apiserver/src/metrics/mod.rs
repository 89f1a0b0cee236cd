//! `/metrics`: what the server counts, as Prometheus reads it, under upstream's names.
//!
//! Requests are counted where they pass, in atomic numbers ([`requests`]); everything else is
//! looked up when somebody asks: how many objects there are, and what the process takes
//! ([`process`]). A library would build the labels of every request anew; here a request finds
//! its series by what it holds anyway.

mod process;
mod requests;

use std::fmt::Write;

use http::{HeaderValue, Response, header};
use steersman_store::RangeRequest;

pub(crate) use requests::{Asked, Requests};
use steersman_rules::resource::Verb;

use crate::discovery;
use crate::reply::ResponseBody;
use crate::state::Server;

const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Answers with all metrics.
pub(crate) async fn answer(server: &Server, requests: &Requests) -> Response<ResponseBody> {
    let mut out = String::new();
    requests.write(&mut out);
    write_objects(server, &mut out).await;
    process::write(&mut out);
    write_build(&mut out);
    let mut response = Response::new(out.into_bytes().into());
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
}

/// Begins a family.
fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// How many objects there are of each kind, as far as this server has heard; -1 if it cannot say.
async fn write_objects(server: &Server, out: &mut String) {
    let help = "Number of stored objects at the time of last check split by kind.";
    let table = server.registry.table();
    let mut folders = Vec::new();
    let mut counted = Vec::new();
    for resource in table.resources().filter(|resource| resource.verbs.contains(&Verb::Watch)) {
        let prefix = resource.prefix("");
        if folders.contains(&prefix) {
            continue;
        }
        folders.push(prefix.clone());
        let request =
            RangeRequest { prefix, limit: 1, count: true, stale: true, ..RangeRequest::default() };
        let number = match server.store.range(request).await {
            Ok(page) => i64::try_from(page.entries.len() + page.remaining.unwrap_or(0)),
            Err(_) => Ok(-1),
        };
        counted.push((resource, number.unwrap_or(-1)));
    }
    let name = "apiserver_resource_objects";
    family(out, name, "gauge", help);
    for (resource, number) in &counted {
        let group = &resource.group;
        let plural = &resource.plural;
        let _ = writeln!(out, "{name}{{group=\"{group}\",resource=\"{plural}\"}} {number}");
    }
    let name = "apiserver_storage_objects";
    family(out, name, "gauge", help);
    for (resource, number) in &counted {
        let _ = writeln!(out, "{name}{{resource=\"{}\"}} {number}", resource.qualified());
    }
}

fn write_build(out: &mut String) {
    let name = "kubernetes_build_info";
    let help = "A metric with a constant '1' value labeled by what the server was built from.";
    family(out, name, "gauge", help);
    let labels = discovery::build_labels();
    let labels: Vec<String> =
        labels.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
    let _ = writeln!(out, "{name}{{{}}} 1", labels.join(","));
}

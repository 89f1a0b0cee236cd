//! `/statusz` and `/flagz`: what this server is and what it was told, as text for people. Machines ask
//! for documents of `config.k8s.io`.

use std::collections::{BTreeMap, BTreeSet};

use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use jiff::Timestamp;
use serde::Serialize;

use crate::discovery;
use crate::negotiate::Wishes;
use crate::reply::{self, ResponseBody};
use crate::scrape::process;
use crate::state::Server;
use crate::status::Result;

const COMPONENT: &str = "apiserver";
const GROUP: &str = "config.k8s.io";

/// The versions of the documents; the first is on its way out.
const VERSIONS: [&str; 2] = ["v1alpha1", "v1beta1"];

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no \
                       formatting compatibility guarantees and is for debugging purposes only.";

/// What stands between a name and its value: one of these, so that nobody comes to rely on it.
const DELIMITERS: [&str; 4] = [":", ": ", "=", " "];

/// What has paths below it that are not for finding mistakes.
const OTHERS: [&str; 5] = [".well-known", "api", "apis", "openapi", "openid"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    kind: &'static str,
    api_version: String,
    metadata: Metadata,
}

#[derive(Serialize)]
struct Metadata {
    name: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Statusz {
    #[serde(flatten)]
    head: Head,
    start_time: String,
    uptime_seconds: i64,
    go_version: &'static str,
    binary_version: &'static str,
    emulation_version: String,
    paths: Vec<String>,
}

#[derive(Serialize)]
struct Flagz<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    flags: &'a BTreeMap<&'static str, String>,
}

/// Answers one of the two paths.
pub(crate) fn answer(server: &Server, path: &str, parts: &Parts) -> Result<Response<ResponseBody>> {
    let kind = if path == "flagz" { "Flagz" } else { "Statusz" };
    let wishes = Wishes::of(&parts.uri, &parts.headers);
    let Some((output, version)) = wishes.choose_page(kind, GROUP, &VERSIONS)? else {
        return Ok(page(server, kind));
    };
    let head = Head {
        kind,
        api_version: format!("{GROUP}/{version}"),
        metadata: Metadata { name: COMPONENT },
    };
    let mut response = match kind {
        "Flagz" => reply::document(StatusCode::OK, output, &Flagz { head, flags: &server.flags }),
        _ => reply::document(StatusCode::OK, output, &statusz(server, head)),
    };
    let media_type = output.encoding.media_type();
    let media_type = format!("{media_type};g={GROUP};v={version};as={kind}");
    if let Ok(media_type) = HeaderValue::from_str(&media_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    }
    if version == VERSIONS[0] {
        let why = format!(
            "This version of the {path} endpoint is deprecated. Please use a newer version."
        );
        reply::tell(&mut response, &[why]);
    }
    Ok(response)
}

/// The page for people.
fn page(server: &Server, kind: &str) -> Response<ResponseBody> {
    let choice = server.request_ids.below(DELIMITERS.len() as u64);
    let delimiter = usize::try_from(choice).ok().and_then(|choice| DELIMITERS.get(choice));
    let delimiter = delimiter.copied().unwrap_or(":");
    let name = kind.to_lowercase();
    let mut text = format!("\n{COMPONENT} {name}\n{WARNING}\n");
    if kind == "Flagz" {
        for (flag, value) in &server.flags {
            text += &format!("{flag}{delimiter}{value}\n");
        }
    } else {
        text += &status_text(server, delimiter);
    }
    let mut response = Response::new(text.into_bytes().into());
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}

fn status_text(server: &Server, delimiter: &str) -> String {
    let (started, up) = started(server);
    let started = started.strftime("%a %b %e %H:%M:%S UTC %Y");
    let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
    let version = discovery::version();
    let (major, minor) = (version.emulation_major, version.emulation_minor);
    [
        String::new(),
        format!("Started{delimiter} {started}"),
        format!("Up{delimiter} {hours} hr {minutes:02} min {seconds:02} sec"),
        format!("Go version{delimiter} {}", version.go_version),
        format!("Binary version{delimiter} {}", binary_version()),
        format!("Emulation version{delimiter} {major}.{minor}"),
        format!("Paths{delimiter} {}", paths(server).join(" ")),
        String::new(),
    ]
    .join("\n")
}

fn statusz(server: &Server, head: Head) -> Statusz {
    let (started, uptime_seconds) = started(server);
    let version = discovery::version();
    Statusz {
        head,
        start_time: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        uptime_seconds,
        go_version: version.go_version,
        binary_version: binary_version(),
        emulation_version: format!("{}.{}", version.emulation_major, version.emulation_minor),
        paths: paths(server),
    }
}

/// The version of the program, as versions are written that are no tags.
fn binary_version() -> &'static str {
    let version = discovery::version().git_version;
    version.strip_prefix('v').unwrap_or(version)
}

/// When the process started, and how many seconds ago.
fn started(server: &Server) -> (Timestamp, i64) {
    let now = (server.clock)();
    let started = process::started().and_then(|second| Timestamp::from_second(second).ok());
    let started = started.unwrap_or(now);
    (started, (now.as_second() - started.as_second()).max(0))
}

/// Where else one finds out what is wrong: the first parts of all paths that say something.
fn paths(server: &Server) -> Vec<String> {
    let all = discovery::paths(&server.registry.table(), &server.remotes.table());
    let firsts = all.iter().filter_map(|path| path.split('/').nth(1));
    let firsts: BTreeSet<&str> =
        firsts.filter(|first| !first.is_empty() && !OTHERS.contains(first)).collect();
    firsts.into_iter().map(|first| format!("/{first}")).collect()
}

//! What the annotations of a Pod say about its containers:
//!
//! | `steersman.dev/…` | |
//! |---|---|
//! | `exit-code` | they exit with this code; `1,1,0`: the first two times with 1 |
//! | `runs-for` | after so long, such as `90s` or `1h30m`; with 0 unless there is a code |
//! | `ready-after` | they are ready after so long, or `never` |
//! | `image-pull` | `fails`: their images cannot be pulled |
//! | `pre-stop` | so long takes what they do before they stop |
//! | `termination` | so long they take to end when they are told to |
//! | `cpu`, `memory` | so much each of them uses while it runs, such as `250m` and `64Mi` |
//!
//! They are about all containers but init containers. `steersman.dev/NAME.exit-code` is about the
//! one of this name, also if it is an init container, and counts more.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use steersman_values::Quantity;

use super::{Exits, Ready, Script};

/// How all of them begin.
const PREFIX: &str = "steersman.dev/";

/// What the annotations say about a container; `main` if it is no init container.
pub(super) fn script(annotations: &BTreeMap<String, String>, name: &str, main: bool) -> Script {
    let own = read(annotations, &format!("{PREFIX}{name}."));
    if main { own.or(read(annotations, PREFIX)) } else { own }
}

fn read(annotations: &BTreeMap<String, String>, prefix: &str) -> Script {
    let value = |key: &str| annotations.get(&format!("{prefix}{key}")).map(|value| value.trim());
    let time = |key: &str| value(key).and_then(|text| understood(key, text, duration(text)));
    let amount = |key: &str| value(key).and_then(|text| understood(key, text, quantity(text)));
    Script {
        exits: value("exit-code").and_then(|text| understood("exit-code", text, codes(text))),
        after: time("runs-for"),
        reason: None,
        ready: value("ready-after").and_then(|text| understood("ready-after", text, ready(text))),
        pullable: (value("image-pull") == Some("fails")).then_some(false),
        pre_stop: time("pre-stop"),
        termination: time("termination"),
        cpu: amount("cpu"),
        memory: amount("memory"),
    }
}

/// Tells of an annotation that says nothing.
fn understood<T>(key: &str, text: &str, read: Option<T>) -> Option<T> {
    if read.is_none() {
        tracing::warn!(key, text, "annotation of a simulated Pod is not understood, and ignored");
    }
    read
}

fn codes(text: &str) -> Option<Exits> {
    let codes: Option<Vec<i32>> = text.split(',').map(|code| code.trim().parse().ok()).collect();
    codes.map(Exits::With)
}

fn ready(text: &str) -> Option<Ready> {
    if text == "never" { Some(Ready::Never) } else { duration(text).map(Ready::After) }
}

/// An amount such as `250m`.
fn quantity(text: &str) -> Option<Quantity> {
    Quantity::parse(text).ok().filter(|amount| !amount.is_negative())
}

/// A time such as `1m30s`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let duration: SignedDuration = text.parse().ok()?;
    Duration::try_from(duration).ok()
}

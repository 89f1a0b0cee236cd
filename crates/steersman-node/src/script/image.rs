//! What the name of an image says about its containers, for those who can say nothing else, as with
//! `kubectl create job hello --image=steersman.dev/exit:0`:
//!
//! `steersman.dev/exit:3` exits with 3, `steersman.dev/exit:0-after-90s` with 0 after so long,
//! `steersman.dev/never-ready` is never ready, and `steersman.dev/unpullable` cannot be pulled.

use super::annotations::duration;
use super::{Exits, Ready, Script};

/// How their names begin.
const REGISTRY: &str = "steersman.dev/";

/// What the name of an image says about its containers.
pub(super) fn script(image: &str) -> Script {
    let Some(rest) = image.strip_prefix(REGISTRY) else {
        return Script::default();
    };
    let (name, tag) = rest.split_once(':').unwrap_or((rest, ""));
    match name {
        "exit" => exit(tag),
        "never-ready" => Script { ready: Some(Ready::Never), ..Script::default() },
        "unpullable" => Script { pullable: Some(false), ..Script::default() },
        _ => Script::default(),
    }
}

fn exit(tag: &str) -> Script {
    let (code, after) = match tag.split_once("-after-") {
        Some((code, after)) => (code, duration(after)),
        None => (tag, None),
    };
    let code = code.parse().unwrap_or(0); // such as "latest"
    Script { exits: Some(Exits::With(vec![code])), after, ..Script::default() }
}

//! What a Pod needs as a whole.
//!
//! Its containers run together, its init containers before them and one after the other, so it
//! needs the sum of the former, or more if one of the latter does. An init container that restarts
//! always runs on beside whatever comes after it. What the Pod itself says of CPU and memory
//! comes before all of that.
//!
//! | | `a` | `b`, restarts always | `c` | containers | |
//! |---|---|---|---|---|---|
//! | requests | 5 | 1 | 2 | 1, 1 | |
//! | at once | 5 | 1 | 3 | 3 | so it needs 5 |

use serde_json::Value;

use super::super::fields::items;
use super::amounts::{Amounts, Requirements};

/// What a Pod may say itself.
const OF_POD: [&str; 2] = ["cpu", "memory"];

/// What a Pod needs.
pub(super) fn of_pod(spec: &Value) -> Requirements {
    Requirements { requests: total(spec, "requests"), limits: total(spec, "limits") }
}

fn total(spec: &Value, list: &str) -> Amounts {
    let of = |container: &Value| Amounts::of(&container["resources"][list]);
    let mut together = Amounts::default();
    for container in items(&spec["containers"]) {
        together.add(&of(container));
    }
    let mut restarting = Amounts::default();
    let mut most = Amounts::default();
    for container in items(&spec["initContainers"]) {
        let own = of(container);
        if container["restartPolicy"] == "Always" {
            together.add(&own);
            restarting.add(&own);
            most.raise_to(&restarting);
        } else {
            let mut at_once = own;
            at_once.add(&restarting);
            most.raise_to(&at_once);
        }
    }
    together.raise_to(&most);
    for (name, amount) in Amounts::of(&spec["resources"][list]).iter() {
        if OF_POD.contains(&name) {
            together.set(name, amount);
        }
    }
    together
}

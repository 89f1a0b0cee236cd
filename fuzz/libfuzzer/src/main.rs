//! Every target under libFuzzer: the environment's `STEERSMAN_FUZZ_TARGET` names one.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use steersman_fuzz::{TARGETS, Target};

static CHOSEN: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("STEERSMAN_FUZZ_TARGET").unwrap_or_default();
    let chosen = TARGETS.iter().find(|target| target.name == name);
    chosen.unwrap_or_else(|| panic!("there is no target {name:?}"))
});

fuzz_target!(|bytes: &[u8]| (CHOSEN.run)(bytes));

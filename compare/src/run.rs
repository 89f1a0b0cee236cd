//! Runs scenarios on both servers, several at once, and compares step by step.

use std::hash::{BuildHasher, Hasher};

use futures::StreamExt;

use crate::corpus;
use crate::difference::Pair;
use crate::glob;
use crate::mask::Masks;
use crate::report::Findings;
use crate::side::{Answer, Side};
use crate::step::{Role, Scenario, Step};

/// How many scenarios run at once; both servers share the machine.
const AT_ONCE: usize = 24;

/// The two servers.
pub(crate) struct Sides {
    pub(crate) theirs: Side,
    pub(crate) ours: Side,
}

/// Runs the corpus, telling how far it is, or what has a request that fits the pattern.
#[expect(clippy::print_stderr, reason = "it takes minutes")]
pub(crate) async fn all(sides: &Sides, only: Option<&str>) -> Findings {
    let run = name_of_run();
    let mut findings = Findings::default();
    // What is told about all objects is asked before any are made.
    for phase in corpus::phases(&run) {
        let wanted = |step: &Step| only.is_none_or(|pattern| glob::fits(pattern, &step.id));
        let scenarios = phase.into_iter().filter(|scenario| scenario.steps.iter().any(wanted));
        let scenarios: Vec<Scenario> = scenarios.collect();
        let count = scenarios.len();
        let runs = scenarios.into_iter().map(|scenario| one(sides, &run, scenario));
        let mut done = futures::stream::iter(runs).buffer_unordered(AT_ONCE);
        while let Some(mut found) = done.next().await {
            if let Some(pattern) = only {
                found.differences.retain(|difference| glob::fits(pattern, &difference.id));
            }
            findings.scenarios += 1;
            if findings.scenarios.is_multiple_of(50) {
                let scenarios = findings.scenarios;
                let requests = findings.requests;
                eprintln!("compare: {requests} requests, {scenarios} scenarios of {count} or more");
            }
            findings.requests += found.requests;
            findings.skipped += found.skipped;
            findings.differences.extend(found.differences);
        }
    }
    findings.differences.sort_by(|a, b| (a.class, &a.id).cmp(&(b.class, &b.id)));
    findings
}

/// Runs a scenario on both and compares.
async fn one(sides: &Sides, run: &str, scenario: Scenario) -> Findings {
    let (theirs, ours) = tokio::join!(sides.theirs.run(&scenario), sides.ours.run(&scenario));
    let masks = |side: &Side| Masks { run: run.to_owned(), address: side.address().to_owned() };
    let their_masks = masks(&sides.theirs);
    let our_masks = masks(&sides.ours);
    let mut findings = Findings::default();
    for (index, step) in scenario.steps.iter().enumerate() {
        let theirs = &theirs[index];
        let ours = &ours[index];
        if step.role.is_compared() {
            let pair = Pair { step, theirs: (theirs, &their_masks), ours: (ours, &our_masks) };
            findings.requests += 1;
            findings.differences.extend(pair.differences());
        }
        if step.role == Role::Needed && succeeded(theirs) != succeeded(ours) {
            let rest = &scenario.steps[index + 1..];
            findings.skipped = rest.iter().filter(|step| step.role.is_compared()).count();
            break;
        }
    }
    findings
}

fn succeeded(answer: &Answer) -> bool {
    (200..300).contains(&answer.status)
}

/// A word that no other run has, so that several can use one server, and no text contains.
fn name_of_run() -> String {
    let mut number = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let mut letters = String::from("zq");
    for _ in 0..4 {
        letters.push(char::from(b'a' + u8::try_from(number % 26).unwrap_or_default()));
        number /= 26;
    }
    letters
}

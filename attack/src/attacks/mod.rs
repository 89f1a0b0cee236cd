//! Every attack there is: one function in a file, and one line in the list.
//!
//! An attack sends what it sends and says what it saw; what that means is decided elsewhere. It
//! calls [`Field::begin`] once everything is prepared that is not part of it.

mod bombs;
mod corruption;
mod defaults;
mod definitions;
mod disk_full;
mod expressions;
mod idle;
mod kills;
mod lists;
mod managers;
mod merge;
mod paths;
mod patterns;
mod quadratic;
mod spikes;
mod strangers;
mod updates;
mod variables;
mod webhooks;
mod yaml;

use std::path::PathBuf;

use futures::future::BoxFuture;

use crate::caller::Who;
use crate::field::Field;
use crate::seen::Seen;

/// An attack: its name, who attacks, and what they do.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) by: Who,
    /// What the program is started with besides.
    pub(crate) flags: &'static [&'static str],
    /// Whether it is too long for the short form.
    pub(crate) only_full: bool,
    pub(crate) run: Run,
}

/// What is seen in the end, or why it could not be tried.
pub(crate) type Outcome = BoxFuture<'static, Result<Seen, String>>;

/// How an attack is run.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// By an attacker in another process, on a program that runs, beside an innocent client.
    Sends(fn(Field) -> Outcome),
    /// On programs that the attack starts and ends itself.
    Owns(fn(Ground) -> Outcome),
}

/// What an attack is given that starts programs itself.
#[derive(Clone)]
pub(crate) struct Ground {
    pub(crate) program: PathBuf,
    pub(crate) short: bool,
}

/// An attack of somebody who is nobody.
const fn strangers(name: &'static str, run: fn(Field) -> Outcome) -> Attack {
    Attack { name, by: Who::Stranger, flags: &[], only_full: false, run: Run::Sends(run) }
}

/// An attack of a user who may do everything, fairly.
const fn users(name: &'static str, run: fn(Field) -> Outcome) -> Attack {
    Attack { name, by: Who::Attacker, flags: &[], only_full: false, run: Run::Sends(run) }
}

/// An attack on the process and its files.
const fn machines(name: &'static str, run: fn(Ground) -> Outcome) -> Attack {
    Attack { name, by: Who::Admin, flags: &[], only_full: false, run: Run::Owns(run) }
}

impl Attack {
    const fn only_full(self) -> Self {
        Self { only_full: true, ..self }
    }

    const fn with(self, flags: &'static [&'static str]) -> Self {
        Self { flags, ..self }
    }
}

/// The list.
pub(crate) const ATTACKS: &[Attack] = &[
    strangers("strangers-bodies", |field| Box::pin(strangers::bodies(field))),
    strangers("idle-connections", |field| Box::pin(idle::connections(field))),
    strangers("idle-http2", |field| Box::pin(idle::http2(field))).only_full(),
    strangers("half-requests", |field| Box::pin(idle::halves(field))),
    users("defaults", |field| Box::pin(defaults::of_definitions(field))),
    users("empty-containers", |field| Box::pin(defaults::of_pods(field))),
    users("patterns", |field| Box::pin(patterns::run(field))),
    users("expression-costs", |field| Box::pin(expressions::costs(field))),
    users("expression-patterns", |field| Box::pin(expressions::matches(field))),
    users("large-definitions", |field| Box::pin(definitions::large(field))),
    users("many-definitions", |field| Box::pin(definitions::many(field))),
    users("updates", |field| Box::pin(updates::run(field))),
    users("managed-fields", |field| Box::pin(managers::run(field))),
    users("yaml-aliases", |field| Box::pin(yaml::aliases(field))),
    users("lists", |field| Box::pin(lists::run(field))),
    users("variables", |field| Box::pin(variables::run(field))),
    users("strategic-merge", |field| Box::pin(merge::run(field))),
    users("spikes", |field| Box::pin(spikes::run(field))).with(&["--history", "5"]),
    users("quadratic", |field| Box::pin(quadratic::run(field))),
    users("paths", |field| Box::pin(paths::run(field))),
    users("gzip-bombs", |field| Box::pin(bombs::gzip(field))),
    users("protobuf-bombs", |field| Box::pin(bombs::protobuf(field))),
    users("deep-documents", |field| Box::pin(bombs::deep(field))),
    users("webhook-recursion", |field| Box::pin(webhooks::recursion(field))),
    users("webhook-loop", |field| Box::pin(webhooks::to_itself(field))),
    users("webhook-reinvocation", |field| Box::pin(webhooks::reinvocation(field))),
    users("webhook-endless", |field| Box::pin(webhooks::endless(field))),
    machines("disk-full", |ground| Box::pin(disk_full::run(ground))),
    machines("kills", |ground| Box::pin(kills::run(ground))),
    machines("corruption", |ground| Box::pin(corruption::run(ground))),
];

//! kube-runtime's controller, as its users have it.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use kube_runtime::controller::{Action, Config};
use kube_runtime::{Controller, watcher};
use serde_json::json;
use tokio::task::JoinHandle;

use super::tally::{Tally, Verdict};
use super::widget::Widget;

/// What its reconciler works with.
struct Context {
    client: kube::Client,
    tally: Arc<Tally>,
}

/// Starts a controller of Widgets.
pub(super) fn start(client: kube::Client, workers: usize, tally: &Arc<Tally>) -> JoinHandle<()> {
    let concurrency = u16::try_from(workers).unwrap_or(u16::MAX);
    let context = Arc::new(Context { client: client.clone(), tally: Arc::clone(tally) });
    let controller = Controller::new(Api::<Widget>::all(client), watcher::Config::default())
        .with_config(Config::default().concurrency(concurrency))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), context);
    tokio::spawn(controller.for_each(|_| ready(())))
}

async fn reconcile(widget: Arc<Widget>, context: Arc<Context>) -> Result<Action, kube::Error> {
    match context.tally.judge(&widget) {
        Verdict::Done => Ok(Action::await_change()),
        Verdict::Again => Ok(Action::requeue(Duration::ZERO)),
        Verdict::Write(status) => {
            let namespace = widget.namespace().unwrap_or_default();
            let widgets = Api::<Widget>::namespaced(context.client.clone(), &namespace);
            let patch = Patch::Merge(json!({ "status": status }));
            widgets.patch_status(&widget.name_any(), &PatchParams::default(), &patch).await?;
            Ok(Action::await_change())
        }
    }
}
